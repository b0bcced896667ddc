from __future__ import annotations

import json
import shutil
from collections import Counter
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from safetensors.numpy import save_file
from tiny_run import SEEDS, STEPS

import vbsix
from vbsix import VbsixError
from vbsix.config.schema import override
from vbsix.evaluation.accuracy import predict_examples
from vbsix.evaluation.confidence import ConfidenceModel
from vbsix.models.heads import policy_head
from vbsix.parsing.loading import load_all
from vbsix.runs.folder import Best, open_run, save_best
from vbsix.utilities.files import read_json, read_tensors, write_json, write_tensors

pytestmark = pytest.mark.integration


ROW = "1:0 2:3 3:4"


@pytest.fixture(scope="module")
def parser(tiny_run):
    return vbsix.load(tiny_run.run.folder, seed=SEEDS[0])


@pytest.fixture(scope="module")
def model(parser, tmp_path_factory):
    path = tmp_path_factory.mktemp("models") / "model.safetensors"
    parser.export(path)
    return path


@pytest.fixture(scope="module")
def requests(tiny_run):
    rows = tiny_run.dataset.splits["dev"].rows
    return [(row.worlds[0], row.utterances[:length]) for row in rows for length in (1, 2)]


@pytest.fixture(scope="module")
def parses(parser, requests):
    return parser.parse_many(requests, best=3)


def test_readings_do_what_they_say(parses):
    readings = [(parse, reading) for parse in parses for reading in parse.readings]
    assert {len(parse.utterances) for parse, _ in readings} == {1, 2}
    for parse, reading in readings:
        after = {step.commands: step.world for step in reversed(vbsix.execute("tangrams", parse.world, reading.tokens))}
        assert reading.worlds == tuple(after[number] for number in range(1, len(parse.utterances) + 1))
        assert " ".join(reading.commands).split() == list(reading.tokens)
        assert all(command.split()[-1] in ("AAdd", "ASwap", "ARemove", "H0") for command in reading.commands)


@pytest.mark.slow
def test_room_for_fewer_utterances_changes_nothing(parser, requests, parses):
    for request, parse in zip(requests[:6], parses, strict=False):
        again = parser.parse(*request, best=3, room=2)
        assert [reading.tokens for reading in again.readings] == [reading.tokens for reading in parse.readings]


def test_probabilities_are_those_of_the_policy(parses):
    assert any(len(parse.readings) > 1 for parse in parses)
    for parse in parses:
        probabilities = [reading.probability for reading in parse.readings]
        assert probabilities == sorted(probabilities, reverse=True)
        for reading in parse.readings:
            assert np.prod(reading.command_probabilities) == pytest.approx(reading.probability, rel=1e-4)
            assert reading.share * probabilities[0] == pytest.approx(reading.probability * parse.readings[0].share)
        assert sum(reading.share for reading in parse.readings) <= 1 + 1e-6


def test_without_calibration_confidence_is_the_probability_of_what_leads_to_the_same_world(parser, requests):
    beam = parser.config.run.evaluation_beam
    shared = False
    for parse in parser.parse_many(requests[:6], best=beam):
        by_world = Counter()
        for reading in parse.readings:
            by_world[reading.worlds[-1]] += reading.probability
        shared |= len(by_world) < len(parse.readings) < beam
        if parse.readings and len(parse.readings) < beam:  # else there may be more of them
            assert parse.confidence == pytest.approx(by_world[parse.readings[0].worlds[-1]], rel=1e-4)
        assert sum(outcome.confidence for outcome in parse.outcomes) <= 1 + 1e-6
    assert shared


def test_predictions_are_those_of_training(tiny_run, requests, parses):
    run, dataset, learners = tiny_run
    dev, domain = dataset.splits["dev"], dataset.domain
    arrays = dataset.arrays([example for length in (1, 2) for example in dev.examples(length)])
    found = predict_examples(
        domain,
        learners.networks.policy,
        dataset.words.vectors,
        arrays,
        beam=run.config.run.evaluation_beam,
        batch=run.config.run.evaluation_batch,
    )
    some = 0
    for place in range(2 * len(dev.rows)):
        length, row = divmod(place, len(dev.rows))
        readings = parses[2 * row + length].readings
        tokens = [domain.tokens[token] for token in found.tokens[0, place] if token >= 0]
        assert list(readings[0].tokens if readings else ()) == tokens
        reached = readings[0].worlds[-1] if readings else None
        assert (reached == dev.rows[row].worlds[length + 1]) == found.correct[0, place]
        some += bool(readings)
    assert some


def test_a_request_does_not_depend_on_its_neighbours(parser, requests, parses):
    alone = parser.parse(*requests[0], best=3)
    assert alone.readings[0].tokens == parses[0].readings[0].tokens
    longer = (requests[0][0], requests[0][1] * 6)  # makes room for ten utterances
    among = parser.parse_many([longer, requests[0]], best=3)
    assert len(among[0].utterances) == 6
    assert [reading.tokens for reading in among[1].readings] == [reading.tokens for reading in parses[0].readings]
    assert among[1].confidence == pytest.approx(alone.confidence, rel=1e-3)
    assert parser.parse_many([]) == []


def test_an_exported_model_predicts_what_the_run_predicts(model, requests, parses, parser):
    exported = vbsix.load(model)
    assert exported.parse_many(requests, best=3) == parses
    assert (
        exported.provenance
        == parser.provenance
        == {
            "method": "mml",
            "recipe": "stochastic",
            "variant": "",
            "steps": STEPS,
            "seed": SEEDS[0],
            "data": "synthetic",
            "vbsix": vbsix.__version__,
        }
    )
    assert exported.config == parser.config


def test_parsers_that_may_answer_differently_have_different_fingerprints(model, parser):
    others = [
        replace(parser, policy=jax.tree.map(lambda leaf: 2 * leaf, parser.policy)),
        replace(parser, config=override(parser.config, {"data.max_words": 3})),
        replace(parser, confidence_model=ConfidenceModel(np.zeros(4), 0.5, np.zeros(len(parser.words.words) + 1))),
    ]
    assert vbsix.load(model).fingerprint() == parser.fingerprint()
    assert len({one.fingerprint() for one in [parser, *others]}) == 4


def test_word_vectors_are_not_passed_on(tiny_run, model):
    tensors, metadata = read_tensors(model)
    vectors, units = tiny_run.dataset.words.vectors, tiny_run.run.config.network.lstm
    assert tensors["words"].shape == (len(vectors), 8 * units)
    assert not any(vectors.shape[1] in array.shape for array in tensors.values())
    assert "vectors" not in metadata and metadata["config"]["data"]["vectors"] == ""
    assert not any("input" in name for name in tensors)


def test_half_precision_halves_the_file(parser, model, requests, parses, tmp_path):
    path = tmp_path / "half.safetensors"
    parser.export(path, half=True)
    assert path.stat().st_size < 0.6 * model.stat().st_size
    found = vbsix.load(path).parse_many(requests, best=3)
    both = [pair for pair in zip(found, parses, strict=True) if all(parse.readings for parse in pair)]
    same = [one.readings[0].tokens == other.readings[0].tokens for one, other in both]
    assert sum(same) > 0.8 * len(parses) / 2
    assert vbsix.load(path).policy.tokens.dtype == jnp.float32


def test_the_seed_that_did_best_is_taken_unless_one_is_named(tiny_run):
    folder = tiny_run.run.folder
    assert vbsix.load(str(folder)).provenance["seed"] == SEEDS[-1]
    assert vbsix.load(folder, seed=SEEDS[0]).provenance["seed"] == SEEDS[0]
    assert [one.provenance["seed"] for one in load_all(folder)] == list(SEEDS)
    with pytest.raises(VbsixError, match=r"run: has no seed 9; it has 1, 4\."):
        vbsix.load(folder, seed=9)


def test_a_run_never_evaluated_gives_its_first_seed(tiny_run, tmp_path):
    folder = shutil.copytree(tiny_run.run.folder, tmp_path / "run")
    (folder / "metrics.jsonl").unlink()
    assert vbsix.load(folder).provenance["seed"] == SEEDS[0]


def test_the_step_that_did_best_can_be_asked_for(tiny_run, tmp_path):
    run, _, learners = tiny_run
    folder = shutil.copytree(run.folder, tmp_path / "run")
    with pytest.raises(VbsixError, match="has not been evaluated"):
        vbsix.load(folder, best=True)
    other = jax.tree.map(lambda leaf: leaf + 1, learners.networks.policy)
    save_best(open_run(folder), Best(other, [3, 5], [0.1, 0.2]))
    for seed, step, place in ((SEEDS[0], 3, 0), (SEEDS[1], 5, 1)):
        parser = vbsix.load(folder, seed, best=True)
        assert (parser.provenance["seed"], parser.provenance["steps"]) == (seed, step)
        np.testing.assert_array_equal(parser.policy.tokens, other.tokens[place])


def test_a_damaged_checkpoint_is_passed_over(tiny_run, tmp_path, caplog):
    folder = shutil.copytree(tiny_run.run.folder, tmp_path / "run")
    newest = shutil.copytree(folder / "checkpoints" / f"step-{STEPS:08d}", folder / "checkpoints" / "step-00000099")
    (newest / f"seed-{SEEDS[-1]}.safetensors").write_bytes(b"")
    (newest / "manifest.json").write_text("{")
    assert {one.provenance["steps"] for one in load_all(folder)} == {STEPS}
    assert "step-00000099" in caplog.text
    shutil.rmtree(folder / "checkpoints" / f"step-{STEPS:08d}")
    with pytest.raises(VbsixError, match="no checkpoint is intact"):
        vbsix.load(folder)
    shutil.rmtree(folder / "checkpoints")
    with pytest.raises(VbsixError, match="has no checkpoint yet; continue it with: vbsix train --resume"):
        vbsix.load(folder)


def test_readings_begin_with_commands_that_are_chosen(parser, requests, parses):
    parse, (world, utterances) = next(
        (parse, request)
        for parse, request in zip(parses, requests, strict=True)
        if len(parse.utterances) == 2 and len(parse.readings) > 1
    )
    free = parser.parse(world, utterances, best=3, begin=[]).readings
    assert [(one.commands, one.worlds) for one in free] == [(one.commands, one.worlds) for one in parse.readings]
    for one, other in zip(free, parse.readings, strict=True):
        assert one.command_probabilities == pytest.approx(other.command_probabilities, rel=1e-4)
    for reading in parse.readings:
        (first, *_) = parser.parse(world, utterances, best=3, begin=reading.commands).readings
        assert (first.tokens, first.worlds) == (reading.tokens, reading.worlds)
        assert first.probability == pytest.approx(reading.probability)
        assert first.confidence == 1
    unlikely = "all-objects -1 index all-objects 1 index ASwap"
    assert unlikely not in {reading.commands[0] for reading in parse.readings}
    found = parser.parse(world, utterances, best=3, begin=[unlikely]).readings
    assert {reading.commands[0] for reading in found} == {unlikely}
    assert not parser.parse(world, utterances, best=3, begin=["ASwap"]).readings
    with pytest.raises(VbsixError, match="unknown token 'AJump'"):
        parser.parse(world, utterances, begin=["1 AJump"])
    with pytest.raises(VbsixError, match="the commands to begin with have 99 tokens"):
        parser.parse(world, utterances, begin=["1"] * 99)


def test_words_out_of_the_model_s_reach_are_named(parser):
    parse = parser.parse(ROW, ["swap the Flurb, and the flurb,", "delete " * 12 + "the last one"], best=3)
    assert parse.unknown_words == ("flurb,",)
    assert parse.unread_words == ("the", "last", "one")


@pytest.mark.parametrize(
    ("world", "utterances", "best", "message"),
    [
        ("1:9", ["swap"], 1, r"context: position 1 \('9'\): expected a shape"),
        (ROW, [], 1, "0 instructions: expected 1 to 80"),
        (ROW, ["swap"] * 81, 1, "81 instructions: expected 1 to 80"),
        (ROW, ["swap", " "], 1, "instruction 2 is empty"),
        (ROW, ["swap"], 0, "0 readings cannot be given: ask for 1 to 32"),
        (ROW, ["swap"], 33, "33 readings cannot be given: ask for 1 to 32"),
    ],
)
def test_bad_requests_are_refused_with_the_reason(parser, world, utterances, best, message):
    with pytest.raises(VbsixError, match=message):
        parser.parse(world, utterances, best)


def test_old_names_are_taken_with_a_warning(parser):
    with pytest.warns(FutureWarning, match="world is now called context"):
        assert parser.parse(world=ROW, instructions=["swap"]) == parser.parse(context=ROW, instructions=["swap"])
    with pytest.warns(FutureWarning, match="world is now called context"):
        assert vbsix.execute("tangrams", world=ROW, program="1") == vbsix.execute("tangrams", ROW, "1")


def _settings(metadata, **network):
    return {**metadata["config"], "network": {**metadata["config"]["network"], **network}}


def _without(mapping, name):
    return {key: value for key, value in mapping.items() if key != name}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda t, m: (t, _without(m, "config")), "not a model that `vbsix export` has written"),
        (lambda t, m: (t, {**m, "config": 3}), "not a model that `vbsix export` has written"),
        (lambda t, m: (t, {**m, "provenance": {}}), "not a model that `vbsix export` has written"),
        (lambda t, m: (_without(t, "words"), m), "not a model that `vbsix export` has written"),
        (lambda t, m: (t, {**m, "config": {"method": "mml", "domain": "chess"}}), "unknown domain 'chess'"),
        (lambda t, m: (t, {**m, "config": _settings(m, lstm="x")}), "network.lstm: expected a whole number"),
        (lambda t, m: (t, {**m, "config": _settings(m, lstm=5)}), "its words do not fit"),
        (lambda t, m: (t, {**m, "config": _settings(m, hidden=-5)}), "model"),
        (lambda t, m: (t, {**m, "config": _settings(m, hidden=9)}), r"has shape \(\d+, 8\), expected \(\d+, 9\)"),
        (lambda t, m: (t, {**m, "words": m["words"][:-1]}), "its words do not fit"),
        (lambda t, m: (t, {**m, "tokens": m["tokens"][::-1]}), "its tokens differ"),
        (lambda t, m: (_without(t, ".tokens"), m), "has other parameters"),
        (lambda t, m: ({**t, "more": np.zeros(1)}, m), "has other parameters"),
        (lambda t, m: ({**t, ".tokens": t[".tokens"] * np.nan}, m), r"not finite numbers: \.tokens"),
    ],
)
def test_a_file_that_is_no_model_is_refused_with_the_reason(model, tmp_path, change, message):
    path = tmp_path / "changed.safetensors"
    write_tensors(path, *change(*read_tensors(model)))
    with pytest.raises(VbsixError, match=message) as error:
        vbsix.load(path)
    assert str(error.value).startswith(str(path))


def test_damaged_and_foreign_files_are_refused_with_the_reason(tiny_run, model, tmp_path):
    path = tmp_path / "model.safetensors"
    with pytest.raises(VbsixError, match=r"no such run or model.*comes with vbsix: alchemy, scene, tangrams"):
        vbsix.load(path)
    content = model.read_bytes()
    for damaged in (b"", content[:7], content[:5000], content[:-1], b"x" * 1000):
        path.write_bytes(damaged)
        with pytest.raises(VbsixError, match="cannot be read"):
            vbsix.load(path)
    save_file({"weight": np.zeros(3)}, path)
    with pytest.raises(VbsixError, match="has format None"):
        vbsix.load(path)
    with pytest.raises(VbsixError, match="not a model that `vbsix export` has written"):
        vbsix.load(tiny_run.run.folder / "words.safetensors")
    with pytest.raises(VbsixError, match=r"has no seed 9; it has 1\."):
        vbsix.load(model, seed=9)
    with pytest.raises(VbsixError, match="holds no run"):
        vbsix.load(tmp_path)


def test_a_model_too_large_for_half_precision_is_not_written(parser, tmp_path):
    words = replace(parser.words, vectors=parser.words.vectors * 1e6)
    with pytest.raises(VbsixError, match="not finite numbers: words"):
        replace(parser, words=words).export(tmp_path / "half.safetensors", half=True)
    assert not list(tmp_path.iterdir())


@pytest.fixture(scope="module")
def ensemble(tiny_run):
    return vbsix.load(tiny_run.run.folder, ensemble=True)


@pytest.fixture(scope="module")
def ensemble_parses(ensemble, requests):
    return ensemble.parse_many(requests, best=3)


def test_an_ensemble_gives_the_mean_of_its_members_probabilities(tiny_run, ensemble):
    members, domain = load_all(tiny_run.run.folder), ensemble.domain
    assert len(members) == ensemble.policy.size == len(SEEDS) > 1

    def probabilities(parser):
        @jax.jit
        def evaluate():
            state = domain.start(domain.parse_world(ROW), 1)
            ids = parser.word_ids(["swap the first and the last"], 1)
            return policy_head(domain, parser.policy, parser.words.vectors, ids)(state, domain.expand(state)[1])

        return np.exp(evaluate())

    together = probabilities(ensemble)
    np.testing.assert_allclose(together, np.mean([probabilities(member) for member in members], axis=0), rtol=1e-4)
    assert np.abs(together - probabilities(members[0])).max() > 1e-5


def test_readings_of_an_ensemble_are_of_different_worlds(ensemble_parses):
    assert any(len(parse.readings) > 1 for parse in ensemble_parses)
    for parse in ensemble_parses:
        last = [reading.worlds[-1] for reading in parse.readings]
        assert len(set(last)) == len(last)
        probabilities = [reading.probability for reading in parse.readings]
        assert probabilities == sorted(probabilities, reverse=True)
        for reading in parse.readings:
            assert np.prod(reading.command_probabilities) <= reading.probability * (1 + 1e-4)
            assert vbsix.execute("tangrams", parse.world, reading.tokens)[-1].world == reading.worlds[-1]


def test_an_ensemble_can_be_exported(tiny_run, ensemble, ensemble_parses, requests, tmp_path):
    path = tmp_path / "ensemble.safetensors"
    ensemble.export(path)
    again = vbsix.load(path)
    assert again.provenance["seed"] == list(SEEDS)
    for one, other in zip(ensemble_parses, again.parse_many(requests, best=3), strict=True):
        assert [reading.tokens for reading in one.readings] == [reading.tokens for reading in other.readings]
    with pytest.raises(VbsixError, match="is an ensemble; its seeds cannot be loaded one by one"):
        vbsix.load(path, seed=SEEDS[0])
    with pytest.raises(VbsixError, match="an ensemble, and other words, need a run's folder"):
        vbsix.load(path, ensemble=True)
    with pytest.raises(VbsixError, match="an ensemble has all seeds; leave out the seed"):
        vbsix.load(tiny_run.run.folder, seed=SEEDS[0], ensemble=True)


def as_of_0_1(config: dict) -> dict:
    """A saved config under the names of vbsix 0.1, with the settings that are gone since."""
    config = json.loads(json.dumps({name: value for name, value in config.items() if name not in NAMES}))
    for section, names in ADDED.items():
        config[section] = _without_all(config[section], names)
    for new, old in RENAMED.items():
        section, _, name = new.partition(".")
        config[section][old] = config[section].pop(name)
    config["search"]["exploration"] = {"stochastic": "sampling", "epsilon-greedy": "slots"}[
        config["search"]["exploration"]
    ]
    config["search"] |= {"pool": "all", "quota": 0, "critic_score": "sum"}
    config["network"] |= {"own_encoders": False, "slots": 3, "objects": 5, "elements": 9}
    config["training"] |= {"alpha": 0.0}
    return config


NAMES = ("method", "recipe", "variant")
ADDED = {
    "network": ("encoder", "policy", "initialisation", "output_biases"),
    "training": ("critic_updates", "sample_gradient"),
}
"""Settings that vbsix 0.1 did not have."""
RENAMED = {
    "data.suffixes": "rests",
    "data.oov_min_count": "own_words",
    "network.embedding_init_std": "embedding_spread",
    "network.token_init_std": "token_spread",
    "search.selection": "exploration",
    "search.prune_dead_ends": "prune",
    "search.critic_window": "critic_instructions",
    "training.curriculum_steps": "short_first",
}


def test_a_run_of_0_1_is_read(tiny_run, tmp_path, requests, parses):
    folder = shutil.copytree(tiny_run.run.folder, tmp_path / "run")
    description = read_json(folder / "run.json")
    description |= {"vbsix": "0.1.0", "method": "mml", "config": as_of_0_1(description["config"])}
    description["attributes"] = description.pop("observation_spec")
    write_json(folder / "run.json", description)
    tensors, words = read_tensors(folder / "words.safetensors")
    write_tensors(folder / "words.safetensors", tensors, {"words": words["words"], "normalise": words["normalise"]})
    assert open_run(folder).config == tiny_run.run.config
    parser = vbsix.load(folder, seed=SEEDS[0])
    assert parser.parse_many(requests, best=3) == parses
    description["attributes"] = description["attributes"][:-1]
    write_json(folder / "run.json", description)
    with pytest.raises(VbsixError, match="its attributes differ"):
        vbsix.load(folder)


@pytest.mark.parametrize(
    ("method", "names"),
    [
        ("mml", ("mml", "stochastic", "")),
        ("paper-mml", ("mml", "published-0.1", "")),
        ("mml-rests", ("mml", "stochastic", "oov-words+suffixes")),
        ("custom", ("custom", "custom", "")),
    ],
)
def test_a_model_of_0_1_is_read(model, tmp_path, requests, parses, method, names):
    path = tmp_path / "old.safetensors"
    tensors, metadata = read_tensors(model)
    metadata |= {"config": as_of_0_1(metadata["config"]), "attributes": metadata.pop("observation_spec")}
    metadata["provenance"] = {**_without_all(metadata["provenance"], NAMES), "method": method, "vbsix": "0.1.0"}
    write_tensors(path, tensors, _without(metadata, "normalise"))
    parser = vbsix.load(path)
    assert tuple(parser.provenance[name] for name in NAMES) == names
    assert (parser.config.method, parser.config.recipe, parser.config.variant) == names
    assert parser.parse_many(requests, best=3) == parses


def test_a_model_of_0_1_with_a_setting_that_is_gone_loads(model, tmp_path):
    path = tmp_path / "old.safetensors"
    tensors, metadata = read_tensors(model)
    metadata["config"] = as_of_0_1(metadata["config"])
    metadata["config"]["network"]["own_encoders"] = True
    metadata["provenance"] = _without_all(metadata["provenance"], ("recipe", "variant"))
    write_tensors(path, tensors, metadata)
    request = "1:0 2:3 3:4", ["remove the first"]
    assert vbsix.load(path).parse(*request) == vbsix.load(model).parse(*request)


def _without_all(mapping, names):
    return {name: value for name, value in mapping.items() if name not in names}
