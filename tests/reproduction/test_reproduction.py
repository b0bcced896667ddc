from __future__ import annotations

import io
import json
import re
import shlex
import shutil
import statistics
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import NamedTuple
from unittest.mock import patch
from xml.etree import ElementTree

import pytest
from training.tiny import ARGUMENTS, Watcher

from vbsix.cli import main
from vbsix.config.presets import preset
from vbsix.data.synthetic import write_corpus
from vbsix.evaluation.report import report
from vbsix.models.heads import Networks
from vbsix.parsing.evaluation import predict_rows
from vbsix.parsing.loading import load
from vbsix.reproduction import page, runs
from vbsix.reproduction.incomplete import incomplete_rows
from vbsix.reproduction.page import fill_page, read_results, table_note, table_rows
from vbsix.reproduction.runs import INCOMPLETE, MOST_POINTS, System, Timed, finish, plan, system_of
from vbsix.reproduction.targets import TARGETS, FigureTarget, correlation
from vbsix.runs.folder import Best, Run, open_run, read_dataset
from vbsix.runs.loop import Interrupted, Trained
from vbsix.training.step import Learner

pytestmark = pytest.mark.integration


SETTINGS = [argument.removeprefix("--set=") for argument in ARGUMENTS]
VBSIX, MML = System("vbsix"), System("mml")
PLAIN = ["--recipes=stochastic", "--variants=none"]
# As many seeds as other tests have, so that what they have compiled is found on disk.
TINY = [*ARGUMENTS, "--seeds=3", "--domains=tangrams", "--methods=vbsix", *PLAIN]
NAME = "synthetic-tangrams-vbsix-stochastic-five-instructions"
ROW = "| tangrams | vbsix | stochastic | none, changed |"
KEYS = {
    "format", "method", "recipe", "variant", "domain", "data", "steps", "seconds", "seeds", "accuracy", "best",
    "ensemble", "spurious", "intermediate", "critic", "config", "metrics", "dev", "command", "date", "device",
    "processor", "cores", "versions",
}  # fmt: skip


class Ended(NamedTuple):
    code: int
    out: str
    err: str


def reproduce(target: str, out: Path, *arguments: str, data: str = "synthetic") -> Ended:
    """Calls the command line as a shell would."""
    command = ["vbsix", "reproduce", target, f"--data={data}", f"--out={out}", *arguments]
    stdout, stderr = io.StringIO(), io.StringIO()
    with (
        patch("sys.argv", command),
        redirect_stdout(stdout),
        redirect_stderr(stderr),
        pytest.raises(SystemExit) as end,
    ):
        main()
    return Ended(int(end.value.code or 0), stdout.getvalue(), stderr.getvalue())


def read_result(out: Path, name: str) -> dict:
    return json.loads((out / "results" / f"{name}.json").read_text())


@pytest.fixture(scope="module")
def ended(tmp_path_factory):
    """A folder with one run that was left alone, what was printed for two targets, and the result after the first."""
    out = tmp_path_factory.mktemp("reproduction")
    first = reproduce("critic", out, *TINY), read_result(out, NAME)
    return out, reproduce("table1", out, *TINY), first


@pytest.fixture
def untrained(monkeypatch):
    """Nothing may be trained, nor data opened."""
    for name in ("train", "read_dataset", "create_run"):
        monkeypatch.setattr(runs, name, lambda *_: pytest.fail("this was done before"))


@pytest.fixture
def faked(monkeypatch):
    """Training and evaluation that take no time: an accuracy is the number of rows that it would be of."""

    def train(run, dataset, observer):
        run.metrics.touch()
        return Trained(Learner(Networks("last", None, None), None), {"dev": {}}, Best("best", [6], [0.1]), 1.0)

    def evaluate_splits(dataset, policies, config):
        return {name: {"1": [len(split.rows)], "of": policies} for name, split in dataset.splits.items()}

    monkeypatch.setattr(runs, "train", train)
    monkeypatch.setattr(runs, "evaluate_splits", evaluate_splits)
    monkeypatch.setattr(runs, "_analyse", lambda *_: {})
    monkeypatch.setattr(runs, "evaluate_ensemble", lambda *_: {"test": {"1": [5], "of": "all"}})


@pytest.mark.slow
def test_a_result_says_what_was_run_and_what_came_of_it(ended):
    out, printed, _ = ended
    assert (printed.code, printed.err) == (0, "")
    result = read_result(out, NAME)
    assert result.keys() == KEYS
    assert (result["method"], result["recipe"], result["variant"]) == ("vbsix", "stochastic", "five-instructions")
    assert (result["domain"], result["data"]) == ("tangrams", "synthetic")
    assert (result["steps"], result["seeds"]) == (10, [0, 1, 2])
    assert result["accuracy"].keys() == {"dev", "held-out"}
    assert result["best"]["accuracy"].keys() == {"held-out"}
    for measured in (result["accuracy"], result["best"]["accuracy"]):
        assert all(len(shares) == 3 for by_length in measured.values() for shares in by_length.values())
    dataset = read_dataset(open_run(out / "runs" / NAME))
    ensemble = load(out / "runs" / NAME, best=True, ensemble=True)
    accuracy = report([predict_rows(ensemble, dataset.splits["held-out"].rows)]).accuracy
    assert result["ensemble"]["accuracy"] == {"held-out": accuracy}
    assert set(result["best"]["steps"]) <= {6, 10}
    by_length = {name + kind for name in ("hit", "paths", "correct_discarded") for kind in ("", "_longest")}
    assert by_length | {"value_error", "policy_loss"} <= result["metrics"].keys()
    assert result["metrics"]["hit"]["steps"] == [4, 6, 8, 10]
    assert result["dev"]["steps"] == [6, 10]
    for length, last in result["accuracy"]["dev"].items():
        assert result["dev"][length][-1] == last
    assert str(out.parent) not in json.dumps(result)


@pytest.mark.slow
def test_the_command_of_a_result_gives_it_again(ended, untrained):
    out = ended[0]
    program, command, target, *arguments = shlex.split(read_result(out, NAME)["command"])
    assert (program, command) == ("vbsix", "reproduce")
    assert reproduce(target, out, *arguments).code == 0


@pytest.mark.slow
def test_the_table_has_a_line_for_each_run_and_dashes_for_those_that_are_missing(ended):
    out, printed, _ = ended
    lines = (out / "synthetic-table1.md").read_text().splitlines()
    cells = [line.strip("| ").split(" | ") for line in lines if line.startswith("|")]
    by_run = {tuple(cell[:5]): cell[5:] for cell in cells[2:]}
    assert len(by_run) == 3 * 16
    shares = read_result(out, NAME)["accuracy"]["held-out"]["1"]
    assert by_run["tangrams", "vbsix", "stochastic", "none, changed", "1"][0].startswith(
        f"{100 * sum(shares) / 3:.1f} ± "
    )
    missing = ("tangrams", "mml", "stochastic"), ("scene", "vbsix", "published")
    assert all(by_run[*name, "none, changed", "1"] == ["-", "-", "-", "-"] for name in missing)
    assert sum(line.startswith(f"- {NAME}: 10 steps in ") for line in lines) == 1
    assert "Mean ± standard deviation over 3 seeds, on the built-in corpus" in printed.out
    assert "best on dev" in printed.out
    assert f"written to {out}/synthetic-table1.md" in printed.out
    assert "still to do" not in printed.out


@pytest.mark.slow
def test_what_has_ended_is_not_done_again(ended, untrained):
    out, printed, _ = ended
    before = (out / "synthetic-table1.md").read_text()
    again = reproduce("table1", out, *TINY)
    assert again.code == 0
    assert "learns" in printed.out and "learns" not in again.out
    assert (out / "synthetic-table1.md").read_text() == before


@pytest.mark.slow
def test_an_interrupted_run_continues_elsewhere_with_the_same_result(ended, tmp_path):
    stopped = reproduce("table1", tmp_path / "here", *TINY, "--minutes=0")
    assert (stopped.code, stopped.err) == (0, "")
    assert f"still to do: {NAME}; the same command goes on" in stopped.out
    assert [path.name for path in tmp_path.glob("here/runs/*/checkpoints/*")] == ["step-00000002"]
    assert not (tmp_path / "here" / "results").exists()
    shutil.move(tmp_path / "here", tmp_path / "there")
    resumed = reproduce("table1", tmp_path / "there", *TINY)
    assert resumed.code == 0
    assert "from step 2" in resumed.out
    found, wanted = (read_result(out, NAME) for out in (tmp_path / "there", ended[0]))
    for name in KEYS - {"seconds", "date"}:
        assert found[name] == wanted[name], name


@pytest.mark.slow
def test_an_interrupted_run_is_incomplete_until_it_ends(ended, tmp_path):
    (run,) = (run for run in plan([VBSIX], "synthetic", tmp_path, 3, SETTINGS) if run.config.domain == "tangrams")
    with pytest.raises(Interrupted):
        finish("accuracy", run, Watcher(stop_at=8), "vbsix ...")
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "results.md").write_text("<!-- incomplete -->\n<!-- end -->\n")
    assert reproduce("page", tmp_path).code == 0
    assert "None." in (tmp_path / "docs" / "results.md").read_text(), "the table is of SCONE"
    (found,) = read_results(tmp_path / "results" / INCOMPLETE).values()
    assert (found["steps"], found["command"], found["dev"]["steps"]) == (6, "vbsix ...", [6]), "step 8 has no row yet"
    wanted = read_result(ended[0], NAME)
    assert found["dev"]["1"][0] == wanted["dev"]["1"][0]
    assert found["config"] == wanted["config"]
    assert finish("accuracy", run, Watcher(), "vbsix ...")["dev"] == wanted["dev"]
    assert not read_results(tmp_path / "results" / INCOMPLETE)


def test_an_incomplete_run_stands_beside_the_most_similar_result(tmp_path):
    def measured(steps, three, five):
        dev = {"steps": steps, "3": [[share, share + 0.5] for share in three], "5": [[share] for share in five]}
        hits = {"steps": [5, 10, 13], "mean": [0.125, 0.875, 1.0]}
        return {"dev": dev, "metrics": {"hit_longest": hits}, "accuracy": {"dev": {"3": [0.75], "5": [0.5]}}}

    def planned(system, *changes):
        return plan([system], "data", tmp_path, 2, changes)[1]

    results = {
        planned(VBSIX): measured([5, 10, 15], [0.0, 0.2, 0.4], [0.0, 0.1, 0.2]),
        planned(MML, "data.suffixes=true", "search.beam=9"): measured([5], [0.0], [0.0]),  # other data: less similar
        planned(MML): measured([10], [0.25], [0.125]),
        plan([VBSIX], "data", tmp_path, 2, ["search.epsilon=0.5"])[2]: measured([10], [0.0], [0.0]),
    }
    shorter, falling = "training.steps=10", "training.decay_share=0.5"
    one_length = measured([10], [0.5], [0.25])
    del one_length["dev"]["3"], one_length["metrics"]["hit_longest"]
    incomplete = {
        planned(VBSIX, "search.epsilon=0.5", shorter): measured([5, 10], [0.0, 0.5], [0.0, 0.25]),
        planned(VBSIX, shorter, falling): one_length,
        planned(MML, "search.beam=9"): measured([5], [0.1], [0.2]),
        planned(MML, "search.epsilon=0.5"): measured([20], [0.1], [0.2]),
    }
    ours = ["75.0 ± 35.4", "25.0", "vbsix-stochastic", "45.0 ± 35.4", "10.0"]
    mml = ["mml-stochastic", "at its end: 75.0", "at its end: 50.0"]
    assert incomplete_rows(incomplete, results) == [
        ["alchemy", "vbsix-stochastic", "`search.epsilon=0.5`", "10", "0.88", *ours],
        ["alchemy", "vbsix-stochastic", f"`{shorter} {falling}`", "10", "-", "-", *ours[1:]],
        ["alchemy", "mml-stochastic", "`search.beam=9`", "5", "0.12", "35.0 ± 35.4", "20.0", *mml],
        ["alchemy", "mml-stochastic", "`search.epsilon=0.5`", "20", "1.00", "35.0 ± 35.4", "20.0", *mml],
    ]
    assert incomplete_rows({planned(VBSIX): measured([10], [0.5], [0.25])}, results)[0][2] == "none"
    assert incomplete_rows({planned(VBSIX): measured([10], [0.5], [0.25])}, {})[0][-3:] == ["-", "-", "-"]


def test_when_time_is_up_no_other_run_is_begun(tmp_path, monkeypatch):
    monkeypatch.setattr(runs, "finish", lambda _, run, *__: {"accuracy": {}})
    monkeypatch.setattr(page, "write_figure", lambda *_: [])
    stopped = reproduce("figure5", tmp_path, *TINY, "--methods=value-only,execution-only,vbsix", "--minutes=0")
    assert stopped.code == 0
    assert (
        "still to do: synthetic-tangrams-value-only-stochastic-five-instructions, synthetic-tangrams-vbsix-stochastic"
        in stopped.out
    )


@pytest.mark.parametrize(
    ("target", "labels"),
    [
        ("figure5", ["mml, stochastic: -", "vbsix, stochastic"]),
        ("figure6", ["vbsix, stochastic, all states", "vbsix, published, reward above 0.7: -"]),
    ],
)
@pytest.mark.slow
def test_a_figure_is_drawn_from_the_same_runs(ended, untrained, target, labels):
    out = ended[0]
    drawn = reproduce(target, out, *TINY)
    assert drawn == (0, f"drawn in {out}/synthetic-{target}.png and {out}/synthetic-{target}.svg\n", "")
    assert (out / f"synthetic-{target}.png").read_bytes().startswith(b"\x89PNG")
    text = (out / f"synthetic-{target}.svg").read_text()
    ElementTree.fromstring(text)
    for label in [*labels, "scene", "alchemy", "tangrams"]:
        assert f"<!-- {label} -->" in text


@pytest.mark.slow
def test_the_analysis_averages_over_the_whole_run(ended, untrained):
    out = ended[0]
    assert reproduce("analysis", out, *TINY).code == 0
    rows = [json.loads(line) for line in (out / "runs" / NAME / "metrics.jsonl").read_text().splitlines()]
    mean = sum(row["paths"] for row in rows) / len(rows)
    table = (out / "synthetic-analysis.md").read_text()
    assert f"{ROW} paths | {mean:.1f} ± " in table
    assert "| scene | vbsix | stochastic | none, changed | paths | - | - |" in table, "the paper's numbers are of SCONE"


@pytest.mark.slow
def test_the_critic_is_analysed(ended, untrained):
    out, _, (printed, result) = ended
    assert printed.code == 0
    assert result["critic"] == read_result(out, NAME)["critic"]
    lines = (out / "synthetic-critic.md").read_text()
    for name, found in result["critic"].items():
        assert len(found["states"]) == len(found["share"]) == 3
        row = f"{ROW} {name} | {sum(found['states']) / 3:.1f} ± "
        assert (row in lines) == ("people" not in name), "there are none in tangrams"


@pytest.mark.slow
def test_spurious_programs_are_counted(ended, untrained):
    out = ended[0]
    result = read_result(out, NAME)
    assert result["spurious"].keys() == {"train", "dev", "held-out"}
    assert reproduce("spurious", out, *TINY).code == 0
    assert f"{ROW} 0.0 ± 0.0 |" in (out / "synthetic-spurious.md").read_text()
    run = next(run for run in read_results(out / "results") if run.folder.name == NAME)
    longest = str(max(run.config.data.evaluation))
    known = {"accuracy": {"dev": {longest: [0.5, 0.4, 0.3]}}}
    (row,) = table_rows(TARGETS["spurious"], {run: known | {"spurious": {"train": [0.1, 0.2, 0.3]}}})
    assert (row[4], row[-2:]) == ("20.0 ± 10.0", ["40.0 ± 10.0", "-1.00"])
    (row,) = table_rows(TARGETS["spurious"], {run: known})
    assert row[4:] == [*["-"] * 6, "40.0 ± 10.0", "-"], "it was measured for another table alone"


def test_a_correlation_is_of_seeds_where_both_are_known_and_differ():
    assert correlation([0.1, None, 0.2, 0.3], [0.9, 0.0, 0.8, 0.7]) == "-1.00"
    assert correlation([1, 2, 3, 4], [2, 1, 4, 3]) == "0.60", "the deviations' products sum to 3, their squares to 5"
    for shares, others in ([], []), ([0.1, 0.2], [1, 2]), ([0.5] * 3, [1, 2, 3]), ([1, 2, 3], [0, 0, 0]):
        assert correlation(shares, others) == "-"


def test_prior_work_s_examples_have_one_and_two_instructions(tmp_path, faked):
    found = reproduce("prior-work", tmp_path, *TINY[:-1], "--variants=prior-work")
    assert (found.code, found.err) == (0, "")
    assert read_result(tmp_path, f"{NAME}+prior-work")["config"]["data"]["split"] == "train-orig"
    assert (
        "| tangrams | vbsix | stochastic | prior-work, changed | 1 | 600.0 | 600.0 |"
        in (tmp_path / "synthetic-prior-work.md").read_text()
    )
    folder = tmp_path / "data"
    write_corpus("tangrams", 10, 0, folder)
    rows = ["1\t1:0 2:1\tremove the last\t1:0", "2\t1:0 2:1\tdrop it\t?\tagain\t1:0"]
    (folder / "tangrams-train-orig.tsv").write_text("\n".join(rows))
    few = ["data.synthetic_rows=2", "data.synthetic_dev_rows=1"]
    for source, lengths in (("synthetic", [1, 2, 1, 2]), (str(folder), [1, 2])):
        planned = plan([MML._replace(variant="prior-work")], source, tmp_path, 1, few)[-1]
        assert [len(example.instructions) for example in read_dataset(planned).examples] == lengths


@pytest.mark.slow
def test_the_test_split_is_read_only_where_it_is_shown(ended, tmp_path):
    out, printed, (_, before) = ended
    after = read_result(out, NAME)
    assert before["best"]["accuracy"] == {}
    assert after["best"]["accuracy"].keys() == {"held-out"}
    assert "from step 10" in printed.out, "it was measured, not trained again"
    changing = {"best", "ensemble", "accuracy", "seconds", "date", "command"}
    assert {name: before[name] for name in KEYS - changing} == {name: after[name] for name in KEYS - changing}
    (tmp_path / "results").mkdir()
    (tmp_path / "results" / f"{NAME}.json").write_text(json.dumps(before))
    assert reproduce("table2", tmp_path, *TINY).code == 0
    refused = reproduce("table1", tmp_path, *TINY)
    assert refused.code == 2
    assert f"{NAME}.json: has no test, and {tmp_path}/runs/{NAME} is not there" in refused.err


def test_the_committed_page_agrees_with_the_committed_results():
    root = Path(__file__).parents[2]
    results = read_results(root / "results")
    others = read_results(root / "results" / INCOMPLETE), read_results(root / "results" / page.STAGED)
    text = ""
    for path in [root / page.README, *(root / "docs").rglob("*.md")]:
        found = path.read_text()
        assert fill_page(found, results, *others) == found, "run: vbsix reproduce page --out ."
        text += found
    for name, target in TARGETS.items():
        assert f"<!-- {name} -->" in text
        if isinstance(target, FigureTarget):
            drawn = (root / "docs" / "figures" / f"{name}.svg").read_text()
            shown = [run for run in results if run.source == "scone" and system_of(run) in target.systems]
            for label in target.curves.values():
                assert all(f"<!-- {label.format(system=system_of(run).label)} -->" in drawn for run in shown)


@pytest.mark.slow
def test_a_page_is_filled_between_its_comments(ended, tmp_path, untrained):
    (tmp_path / "docs" / "figures").mkdir(parents=True)
    (tmp_path / "docs" / "results.md").write_text(
        "Ours.\n<!-- ours -->\n<!-- table2 synthetic -->\nold\n<!-- end -->\nkept\n<!-- table1 -->\n<!-- end -->\n"
        "<!-- figure5 synthetic -->\n<!-- end -->\n<!-- incomplete -->\n<!-- end -->\n<!-- runs -->\n<!-- end -->\n"
    )
    shutil.copytree(ended[0] / "results", tmp_path / "results")
    made = reproduce("page", tmp_path)
    assert (made.code, made.err) == (0, "")
    text = (tmp_path / "docs" / "results.md").read_text()
    assert text.startswith(
        "Ours.\n<!-- ours -->\n<!-- table2 synthetic -->\n\n| domain | method | variant | utterances |"
    )
    shares = read_result(ended[0], NAME)["accuracy"]["held-out"]["1"]
    assert re.search(
        rf"\| vbsix \| none, changed \| 1 \| [\d.]+ ± [\d.]+ \| {100 * statistics.mean(shares):.1f} ± ",
        text,
    )
    assert "old" not in text and "<!-- end -->\nkept\n<!-- table1 -->\n\nNo run of these" in text
    assert "![Figure 5: hit accuracy on the longest training examples](figures/figure5-synthetic.svg)" in text
    assert f"- {NAME}: 10 steps in " in text
    figure = tmp_path / "docs" / "figures" / "figure5-synthetic.svg"
    drawn = figure.read_text()
    assert "<!-- vbsix, stochastic -->" in drawn
    assert reproduce("page", tmp_path).code == 0
    assert figure.read_text() == drawn
    assert (tmp_path / "docs" / "results.md").read_text() == text
    refused = reproduce("page", tmp_path / "docs")
    assert refused.code == 2 and "no such file; --out names the folder" in refused.err


def test_a_row_with_changed_settings_says_so_and_has_no_number_of_the_paper(tmp_path):
    results = dict.fromkeys(plan([VBSIX], "data", tmp_path, 6, ["search.beam=9", "training.steps=7"]))
    assert {run.folder.name for run in results} >= {"scene-vbsix-stochastic"}, "the name of its file is the same"
    rows = table_rows(TARGETS["table1"], results)
    assert rows[0] == ["scene", "vbsix", "stochastic", "none, changed", "3", "-", "-", "-", "-"]
    assert table_note(TARGETS["table1"], results).endswith("stand for: search.beam.")
    plain = dict.fromkeys(plan([VBSIX], "data", tmp_path, 6, ["training.steps=7"]))
    assert "hanged" not in table_note(TARGETS["table1"], plain)


def test_the_paper_s_numbers_stand_beside_ours(tmp_path):
    results: dict[Run, None] = dict.fromkeys(plan(TARGETS["table1"].systems, "data", tmp_path, 6, []))
    rows = table_rows(TARGETS["table1"], results)
    assert ["scene", "vbsix", "published", "none", "3", "-", "-", "-", "34.2 ± 27.5"] in rows
    assert ["tangrams", "mml", "stochastic", "none", "5", "-", "-", "-", "16.8 ± 14.1"] in rows
    assert ["alchemy", "execution-only", "stochastic", "beam-256+oov-words+suffixes", "5", "-", "-", "-", "-"] in rows
    wide = next(
        run for run in results if run.folder.name == "scene-execution-only-stochastic-beam-256+oov-words+suffixes"
    )
    assert (wide.config.search.beam, wide.config.data.suffixes, wide.config.training.critic) == (256, True, False)
    assert len(rows) == 3 * 16 * 2
    one = next(run for run in results if run.folder.name == "alchemy-vbsix-stochastic")
    half, all_of_them = {"test": {"3": [0.25, 0.75], "5": [0.5]}}, {"test": {"3": [1.0, 1.0], "5": [None]}}
    result = {"accuracy": half, "best": {"accuracy": all_of_them}, "ensemble": {"accuracy": {"test": {"3": [0.625]}}}}
    assert table_rows(TARGETS["table1"], {one: result}) == [
        ["alchemy", "vbsix", "stochastic", "none", "3", "50.0 ± 35.4", "100.0 ± 0.0", "62.5", "74.5 ± 1.1"],
        ["alchemy", "vbsix", "stochastic", "none", "5", "50.0", "-", "-", "64.8 ± 1.5"],
    ]
    prior = dict.fromkeys(plan([VBSIX._replace(variant="prior-work")], "data", tmp_path, 6, []))
    assert table_rows(TARGETS["prior-work"], prior)[:2] == [
        ["scene", "vbsix", "stochastic", "prior-work", "3", "-", "-", "-", "23.2", "64.8", "73.9", "-", "34.2 ± 27.5"],
        [
            "scene",
            "vbsix",
            "stochastic",
            "prior-work",
            "5",
            "-",
            "-",
            "-",
            "14.7",
            "46.2",
            "62.0",
            "72.7",
            "28.2 ± 20.7",
        ],
    ]
    rows = table_rows(TARGETS["critic"], dict.fromkeys(plan([VBSIX], "data", tmp_path, 6, [])))
    assert [row[-1] for row in rows[:5]] == ["87.0", "78.9", "86.1", "82.1", "-"]
    assert [row[4] for row in rows[4:]] == ["many differences", "one difference"] * 2, "no others have people"


def test_settings_are_the_paper_s_for_scone_and_quicker_ones_for_the_embedded_corpus(tmp_path):
    def embedded(domain, method):
        return preset(domain, method, variant="five-instructions", data="synthetic")

    for source, settings in (("data", preset), ("synthetic", embedded)):
        planned = plan([VBSIX], source, tmp_path, 6, [])
        assert [run.config for run in planned] == [settings(name, "vbsix") for name in ("scene", "alchemy", "tangrams")]
        assert all(run.seeds == (0, 1, 2, 3, 4, 5) for run in planned)
        assert {run.config.data.evaluation for run in planned} == {(3, 5)}
    changed = plan([VBSIX], "data", tmp_path, 1, ["search.beam=7", "domain=scene"])
    assert [(run.config.domain, run.config.search.beam) for run in changed] == [
        ("scene", 7), ("alchemy", 7), ("tangrams", 7)
    ]  # fmt: skip


def test_a_data_folder_is_measured_on_its_test_split_with_the_last_and_the_best_policies(tmp_path, faked):
    data = tmp_path / "my data"
    write_corpus("tangrams", 40, 0, data)
    assert reproduce("table1", tmp_path / "out", *TINY, data=str(data)).code == 0
    result = read_result(tmp_path / "out", "tangrams-vbsix-stochastic")
    assert result["data"] == "scone"
    assert result["accuracy"] == {"dev": {}, "test": {"1": [4], "of": "last"}}
    assert result["best"] == {"steps": [6], "accuracy": {"test": {"1": [4], "of": "best"}}}
    assert "--data 'my data'" in result["command"]
    assert str(tmp_path) not in json.dumps(result)


def test_metrics_are_thinned():
    rows = [{"step": step, "seed": seed, "hit": step + seed} for step in range(1, 502) for seed in (0, 2)]
    found = runs.sum_up(rows, "hit")
    assert len(found["steps"]) == 167 <= MOST_POINTS
    assert found["steps"][:2] + found["steps"][-1:] == [3, 6, 501]
    assert found["mean"][0] == 3
    assert found["std"] == [1.0] * 167
    assert found["average"] == [251, 253]


def test_an_observer_stops_when_time_is_up_or_its_user_wants_to():
    class Patient:
        on_progress = on_metrics = on_evaluation = on_message = print
        stops = False

        def wants_to_stop(self):
            return self.stops

    assert Timed(Patient(), 0).wants_to_stop()
    user = Patient()
    assert not Timed(user, float("inf")).wants_to_stop()
    user.stops = True
    assert Timed(user, float("inf")).wants_to_stop()


@pytest.mark.parametrize(
    ("target", "arguments", "message"),
    [
        ("table9", [], "unknown target 'table9'. Did you mean 'table2'?"),
        ("table1", ["--domains=scene,tangram"], "unknown domain 'tangram'. Did you mean 'tangrams'?"),
        ("table1", ["--methods=value-only"], "unknown method of table1 'value-only'"),
        ("table1", ["--set=search.bean=3"], "unknown setting 'search.bean'"),
        (
            "table1",
            ["--data=missing"],
            "missing: no such folder; give a folder with SCONE's files, a file of JSON lines",
        ),
    ],
)
def test_a_user_s_mistake_is_one_message(tmp_path, target, arguments, message):
    found = reproduce(target, tmp_path, *arguments)
    assert found.code == 2
    assert found.err.startswith("error: ")
    assert message in found.err
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
def test_results_and_runs_with_other_settings_are_refused(ended, tmp_path):
    out = ended[0]
    refused = reproduce("table1", out, *TINY, "--set=search.epsilon=0.5")
    assert refused.code == 2
    assert f"{NAME}/run.json: made with other settings: search.epsilon is 0.1, not 0.5." in refused.err
    shutil.copytree(out / "results", tmp_path / "results")
    refused = reproduce("table1", tmp_path, *ARGUMENTS, "--seeds=4")
    assert refused.code == 2
    assert f"{NAME}.json: made with other settings: seeds is [0, 1, 2], not [0, 1, 2, 3]." in refused.err
    assert "another folder with --out" in refused.err


@pytest.mark.slow
def test_a_result_from_before_a_setting_was_there_counts(ended, tmp_path, untrained):
    result = read_result(ended[0], NAME)
    del result["config"]["training"]["beta"]
    (tmp_path / "results").mkdir()
    (tmp_path / "results" / f"{NAME}.json").write_text(json.dumps(result))
    assert reproduce("table1", tmp_path, *TINY).code == 0
