from __future__ import annotations

from vbsix.reproduction.page import fill_page
from vbsix.reproduction.runs import Result, System, plan
from vbsix.reproduction.summary import accuracy_on_test, best_rows, best_tested, draw_summary
from vbsix.runs.folder import Run


def planned(tmp_path, method: str, variant: str = "", domain: str = "alchemy", source: str = "data") -> Run:
    runs = plan([System(method, variant=variant)], source, tmp_path, 2, [])
    return next(run for run in runs if run.config.domain == domain)


def measured(dev: float, test: list[float] | None = None, best: list[float] | None = None, ensemble=0.0) -> Result:
    def on(shares):
        return {"accuracy": {"test": {"5": shares}} if shares else {}}

    accuracy = {"dev": {"5": [dev, dev]}, **on(test)["accuracy"]}
    return {"accuracy": accuracy, "best": on(best), "ensemble": on([ensemble] if ensemble else None)}


def test_the_best_run_is_chosen_on_dev_of_those_that_were_measured_on_test(tmp_path):
    chosen = planned(tmp_path, "mml")
    results = {
        planned(tmp_path, "vbsix"): measured(0.3, [0.9, 0.9]),
        chosen: measured(0.4, best=[0.1, 0.3]),
        planned(tmp_path, "value-only"): measured(0.5),
        planned(tmp_path, "mml", "prior-work"): measured(0.6, [0.6, 0.6]),
        planned(tmp_path, "mml", domain="scene"): measured(0.7, [0.7, 0.7]),
        planned(tmp_path, "mml", source="synthetic"): measured(0.8, [0.8, 0.8]),
    }
    assert best_tested(results, "alchemy") == chosen
    assert best_tested(results, "tangrams") is None
    assert accuracy_on_test(results[chosen]) == [0.1, 0.3]


def test_a_domain_has_a_bar_for_each_accuracy_that_is_known(tmp_path):
    wide = planned(tmp_path, "execution-only", "beam-256")
    results = {
        planned(tmp_path, "vbsix"): measured(0.3, [0.5, 0.7]),
        wide: measured(0.4, [0.7, 0.8], ensemble=0.9),
        planned(tmp_path, "mml", domain="scene"): measured(0.7, [0.25, 0.25]),
    }
    figure = draw_summary(results)
    assert figure
    (axes,) = figure.axes
    heights = [round(bar.get_height(), 6) for bar in axes.patches]
    assert heights == [28.2, 25.0, 64.8, 60.0, 75.0, 90.0], "scene has neither VBSiX nor an ensemble"
    assert [text.get_text() for text in axes.texts] == [f"{height:.1f}" for height in heights]
    assert [label.get_text() for label in axes.get_xticklabels()] == [
        "scene\nbest: mml, none",
        "alchemy\nbest: execution-only, beam-256",
    ]
    assert draw_summary({}) is None


def test_without_a_run_measured_on_test_the_page_has_no_figure(tmp_path):
    page = "<!-- summary -->\n<!-- end -->"
    run = planned(tmp_path, "vbsix")
    assert "No run of these has ended yet." in fill_page(page, {run: measured(0.3)}, {}, {})
    assert "](figures/summary.svg)" in fill_page(page, {run: measured(0.3, [0.5, 0.7])}, {}, {})


def test_the_table_has_a_row_for_the_best_run_of_each_domain(tmp_path):
    results = {
        planned(tmp_path, "vbsix"): measured(0.3, [0.5, 0.7]),
        planned(tmp_path, "execution-only", "beam-256"): measured(0.4, [0.7, 0.8], ensemble=0.9),
        planned(tmp_path, "mml", domain="scene"): {**measured(0.7, best=[0.25, 0.25]), "schedule": "context"},
    }
    assert best_rows(results) == [
        ["scene", "`mml`, `context`", "25.0 ± 0.0 (best step)", "-", "28.2 ± 20.7", "-3.2"],
        ["alchemy", "`execution-only`, `beam-256`", "75.0 ± 7.1", "90.0", "64.8 ± 1.5", "+10.2"],
    ]
    page = "<!-- best -->\n<!-- end -->"
    alchemy, scene = (
        {run: found for run, found in results.items() if run.config.domain == name} for name in ("alchemy", "scene")
    )
    filled = fill_page(page, alchemy, {}, scene)
    assert "| scene | `mml`, `context` |" in filled and "| alchemy | `execution-only`, `beam-256` |" in filled
    assert "No run of these has ended yet." in fill_page(page, {}, {}, {})
