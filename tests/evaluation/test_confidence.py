from __future__ import annotations

import numpy as np
import pytest

from vbsix.data.words import PADDING, UNKNOWN
from vbsix.evaluation.confidence import (
    KEPT,
    ConfidenceModel,
    Outcomes,
    corrupt,
    fallback_steps,
    fit_confidence,
    read_confidence,
    word_rarity,
)
from vbsix.utilities.errors import VbsixError

RARITY = word_rarity([[2, 2, 2, 3, 3, 4]] * 50 + [[5]], words=7)
WORDS = np.array([[[2, 3, 0], [4, 2, 2]], [[3, 0, 0], [0, 0, 0]]])


def test_words_that_never_occur_are_the_rarest():
    assert RARITY[2] < RARITY[3] < RARITY[4] < RARITY[5] < RARITY[6] == RARITY[UNKNOWN] == RARITY[PADDING]


@pytest.mark.parametrize("how", ["unknown", "random"])
def test_only_words_of_the_last_utterance_are_replaced(how):
    words = np.repeat(WORDS, 50, axis=0)
    changed = corrupt(words, np.repeat([2, 1], 50), how, vocabulary=7)
    assert (changed[:50, 0] == words[:50, 0]).all() and (changed[50:, 1] == PADDING).all()
    assert ((changed == PADDING) == (words == PADDING)).all()
    new = changed[:50, 1][changed[:50, 1] != words[:50, 1]]
    assert len(new) and (set(new) == {UNKNOWN} if how == "unknown" else UNKNOWN not in new)
    assert (changed == corrupt(words, np.repeat([2, 1], 50), how, vocabulary=7)).all()


def outcomes(weights: np.ndarray, count: int, generator: np.random.Generator) -> Outcomes:
    """Predictions that are right as often as these weights say."""
    instructions = generator.integers(1, 4, count)
    inside = np.arange(3) < instructions[:, None]
    words = np.where(inside[..., None], generator.integers(1, 7, (count, 3, 4)), PADDING)
    log_commands = np.where(inside, -generator.exponential(1.0, (count, 3)), 0.0)
    made = Outcomes(log_commands, log_commands.sum(axis=1), words, instructions, np.zeros(count, bool))
    model = ConfidenceModel(weights, 0.5, RARITY)
    steps = [
        model.steps(commands[:n], np.array(commands[:n].sum()), ids[:n])
        for commands, ids, n in zip(log_commands, words.tolist(), instructions, strict=True)
    ]
    right = generator.random(count) < np.array([np.prod(step) for step in steps])
    return Outcomes(made.log_commands, made.log_outcome, words, instructions, right)


def test_the_weights_that_made_the_outcomes_are_found():
    weights, generator = np.array([2.0, 0.8, -0.5, -0.3]), np.random.default_rng(3)
    made = outcomes(weights, 20_000, generator)
    found = fit_confidence([made], [], RARITY)
    assert found is not None
    assert found.weights == pytest.approx(weights, abs=0.3)
    least = [
        found.steps(commands[:n], np.array(commands[:n].sum()), ids[:n]).min()
        for commands, ids, n in zip(made.log_commands, made.words.tolist(), made.instructions, strict=True)
    ]
    assert np.mean(np.array(least)[made.right] >= found.threshold) == pytest.approx(0.98, abs=0.002)


@pytest.mark.parametrize("accuracy", [0.8, 0.92, 1.0])
def test_copies_with_other_words_do_not_lower_the_confidence_in_real_ones(accuracy):
    """In a small language, words say little: what tells copies apart is that commands are less probable there."""
    generator = np.random.default_rng(5)

    def predict(surprise: float, accuracy: float, count: int = 300) -> Outcomes:
        log_commands = -generator.exponential(surprise, (count, 1))
        words = generator.integers(2, 5, (count, 1, 4))
        right = generator.random(count) < accuracy
        return Outcomes(log_commands, log_commands[:, 0], words, np.ones(count, int), right)

    def confidence(made: Outcomes) -> float:
        assert model is not None
        requests = zip(made.log_commands, made.words.tolist(), strict=True)
        return float(np.mean([model.steps(commands, np.array(commands[0]), ids) for commands, ids in requests]))

    clean, corrupted = predict(0.1, accuracy), [predict(1.0, 0.3), predict(1.0, 0.1)]
    model = fit_confidence([clean], corrupted, RARITY)
    assert confidence(clean) == pytest.approx(clean.right.mean(), abs=0.08)
    assert all(confidence(made) < confidence(clean) - 0.1 for made in corrupted)


def test_the_second_fit_does_not_reverse_which_step_is_more_certain():
    """Here, only in the copies, probable commands are the right ones."""
    ones, words = np.ones(20, int), np.random.default_rng(0).integers(2, 6, (20, 1, 3))
    log_commands = np.where(np.arange(20) < 10, -3.0, -0.1)[:, None]
    right = np.arange(20) < 10
    clean = Outcomes(log_commands, log_commands[:, 0], words, ones, right)
    corrupted = [
        Outcomes(log_commands, log_commands[:, 0], ids, ones, ~right) for ids in (np.full_like(words, UNKNOWN), words)
    ]
    model = fit_confidence([clean], corrupted, RARITY)
    assert model is not None
    improbable, probable = (model.steps(np.array([log]), np.array(log), [[2, 3]])[0] for log in (-3.0, -0.1))
    assert improbable < probable


def test_rare_words_and_improbable_commands_lower_confidence():
    model = ConfidenceModel(np.array([2.0, 0.8, -0.5, -0.3]), 0.5, RARITY)
    common, unknown = (model.steps(np.array([-0.1]), np.array(-0.1), [ids]) for ids in ([2, 2, 3], [2, 2, UNKNOWN]))
    improbable = model.steps(np.array([-3.0]), np.array(-3.0), [[2, 2, 3]])
    assert common > unknown and common > improbable
    both_ways = model.steps(np.array([-3.0]), np.array(-0.1), [[2, 2, 3]])  # other programs have the same outcome
    assert both_ways == pytest.approx(common)


def test_where_nothing_is_right_or_found_there_is_nothing_to_fit():
    nothing = np.zeros(2, bool)
    log = np.zeros((2, 2))
    assert fit_confidence([Outcomes(log, np.zeros(2), WORDS, np.array([2, 1]), nothing)], [], RARITY) is None
    lost = np.full(2, -np.inf)
    assert fit_confidence([Outcomes(log, lost, WORDS, np.array([2, 1]), ~nothing)], [], RARITY) is None


def test_without_calibration_it_is_the_probability_times_the_share_of_known_words():
    steps = fallback_steps(np.log([[0.5, 0.8]]), np.log([0.4]), [[2, 3], [2, UNKNOWN, UNKNOWN, 3]])
    assert steps[0] == pytest.approx([0.5, 0.4])


@pytest.mark.parametrize(("surprise", "count"), [(1e-5, 40), (0.001, 20), (0.1, 50), (0.1, 300)])
def test_what_is_saved_understands_the_promised_share_of_right_answers(surprise, count):
    """Also where no step is less certain than 0.99995."""
    generator = np.random.default_rng(1)

    def predict(words: np.ndarray) -> Outcomes:
        log_commands = -generator.exponential(surprise, (count, 1))
        return Outcomes(log_commands, log_commands[:, 0], words, np.ones(count, int), np.ones(count, bool))

    clean = predict(generator.integers(2, 6, (count, 1, 3)))
    model = fit_confidence([clean], [predict(np.full((count, 1, 3), UNKNOWN))], RARITY)
    assert model is not None
    again = read_confidence(model.to_json(), len(RARITY))
    assert again is not None
    requests = zip(clean.log_commands, clean.words.tolist(), strict=True)
    steps = [again.steps(commands, np.array(commands[0]), ids) for commands, ids in requests]
    assert np.mean(np.array(steps) >= again.threshold) >= KEPT


def test_it_is_saved_and_read():
    model = ConfidenceModel(np.array([2.0, 0.8, -0.5, -0.3]), 0.5, RARITY)
    again = read_confidence(model.to_json(), len(RARITY))
    assert again is not None
    assert (again.weights == model.weights).all() and again.threshold == 0.5
    assert (again.rarity == RARITY).all()
    assert read_confidence(model.to_json(), len(RARITY) + 1) is None  # of another vocabulary
    for damage in ({"weights": [1.0]}, {"threshold": "x"}, {"rarity": [float("nan")]}, {"weights": None}):
        with pytest.raises(VbsixError, match="its confidence model cannot be read"):
            read_confidence({**model.to_json(), **damage}, len(RARITY))
