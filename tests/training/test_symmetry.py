"""Interchangeable constants: declared, checked against the executor, and permuted in training examples."""

from __future__ import annotations

import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import vbsix
from vbsix import InvalidDomain, PythonDomain, Symmetry, VbsixError, get_domain
from vbsix.data.examples import Example, targets_of, to_arrays
from vbsix.data.words import UNKNOWN, random_words
from vbsix.domains.alchemy import NAMES, Alchemy
from vbsix.domains.names import BUILT_IN, base_name
from vbsix.domains.symmetry import colour_words, rename
from vbsix.testing import check_domain
from vbsix.training.symmetry import make_renaming, permute_example, sample_permutation
from vbsix.utilities.trees import choose

STAGE = "1:__ 2:r_ 3:__ 4:by 5:__ 6:op 7:gg 8:__ 9:__ 10:__"
BEAKERS = "1:ggg 2:_ 3:yo 4:r 5:pp 6:_ 7:bo"
WORLDS = {"scene": STAGE, "alchemy": BEAKERS}
COLOURED = [name for name in BUILT_IN if base_name(name) in WORLDS]


def exchanged(world: str, letters: dict[str, str]) -> str:
    return " ".join(
        position + ":" + "".join(letters.get(letter, letter) for letter in content)
        for position, _, content in (cell.partition(":") for cell in world.split())
    )


@pytest.mark.parametrize("name", COLOURED)
def test_words_world_and_target_change_together(name):
    domain, world = get_domain(name), WORLDS[base_name(name)]
    text = "the red one, reds purple violet green-shirted orange-shirted BROWN person"
    words = random_words([text, "yellow green orange oranges blue brown"], 4)
    example = Example("1", world, (text,), exchanged(world, {"g": "y"}))
    arrays = choose(to_arrays(domain, [example], words, 1, 12), 0)
    renaming = make_renaming(domain, words)
    letters = dict(zip("rygop", "oprgy", strict=True))
    tokens = np.arange(len(domain.tokens))
    for old, new in letters.items():
        tokens[domain.tokens.index(old)] = domain.tokens.index(new)
    found = jax.tree.map(np.asarray, permute_example(domain, renaming, arrays, jnp.asarray(tokens)))
    assert domain.format_world(found.world) == exchanged(world, letters)
    assert domain.format_world(found.target) == exchanged(exchanged(world, {"g": "y"}), letters)
    violet = "yellow" if base_name(name) == "alchemy" else "violet"  # no word there has a second form
    said = [words.words[id_] for id_ in found.words[0]]
    # There is no `red-shirted`, so the usual word stands in; the plural is kept.
    assert said[:9] == ["the", "orange", "one", "oranges", "yellow", violet, "red", "green-shirted", "brown"]
    assert said[9:] == ["person", "<padding>", "<padding>"]
    np.testing.assert_array_equal(
        permute_example(domain, renaming, arrays, jnp.arange(len(domain.tokens))).words, arrays.words
    )


@pytest.mark.parametrize("name", COLOURED)
def test_waypoints_change_with_the_target(name):
    domain, world = get_domain(name), WORLDS[base_name(name)]
    between, target = exchanged(world, {"g": "y"}), exchanged(world, {"g": "o"})
    examples = [Example("1", world, ("red",), between), Example("2", world, ("red", "green"), target)]
    words = random_words(["red yellow green orange purple blue"], 4)
    longer = choose(to_arrays(domain, examples, words, 2, 4, targets_of(examples)), 1)
    letters = {"y": "r", "r": "y"}
    tokens = np.arange(len(domain.tokens))
    tokens[[domain.tokens.index(letter) for letter in "yr"]] = [domain.tokens.index(letter) for letter in "ry"]
    found = permute_example(domain, make_renaming(domain, words), longer, jnp.asarray(tokens))
    assert found.waypoints.known.tolist() == [True, False]
    assert domain.format_target(found.waypoints.targets[0]) == exchanged(between, letters)


def test_waypoints_of_a_plain_python_language_change_and_examples_are_not_forgotten(monkeypatch):
    monkeypatch.setattr("vbsix.domains.python.KEPT_TEXTS", 8)  # as many as a long run would meet
    domain, said = PythonDomain(Paint), ("paint it red", "paint it blue")
    examples = [
        Example("1", '{"wall": []}', said[:1], '{"layers": ["red"]}'),
        Example("2", '{"wall": []}', said, '{"layers": ["red", "blue"]}'),
    ]
    words = random_words([*said, "green"], 4)
    longer = choose(to_arrays(domain, examples, words, 2, 4, targets_of(examples)), 1)
    renaming = make_renaming(domain, words)
    for key in jax.random.split(jax.random.key(0), 20):
        tokens = sample_permutation(renaming, key)
        found = permute_example(domain, renaming, longer, tokens)
        new = {old: domain.tokens[int(tokens[domain.tokens.index(old)])] for old in ("red", "blue")}
        passed = choose(found.waypoints.targets, 0)
        assert json.loads(domain.format_target(passed)) == {"layers": [new["red"]]}
        assert json.loads(domain.format_target(found.target)) == {"layers": [new["red"], new["blue"]]}


def test_identities_do_not_change():
    domain = get_domain("scene")
    words = random_words(["red yellow green orange purple blue"], 4)
    tokens = sample_permutation(make_renaming(domain, words), jax.random.key(3))
    world = domain.parse_world(STAGE)
    np.testing.assert_array_equal(domain.permute(world, world, tokens)[0] // 64, world // 64)


def test_permutations_are_of_the_constants_that_have_words_and_all_occur():
    domain = get_domain("alchemy")
    renaming = make_renaming(domain, random_words(["red orange purple brown"], 4))
    keys = jax.random.split(jax.random.key(0), 200)
    drawn = np.asarray(jax.vmap(lambda key: sample_permutation(renaming, key))(keys))
    moved = [domain.tokens.index(letter) for letter in "rop"]
    others = [place for place in range(len(domain.tokens)) if place not in moved]
    assert (drawn[:, others] == others).all()
    seen, counts = np.unique(drawn[:, moved], axis=0, return_counts=True)
    assert len(seen) == 6
    assert counts.min() > 15


@pytest.mark.parametrize("name", COLOURED)
def test_built_in_symmetries_hold(name):
    check_domain(get_domain(name), [WORLDS[base_name(name)]])


def test_brown_is_what_mixing_makes():
    class WithBrown(Alchemy):
        name = "with-brown"
        symmetries = (Symmetry(tuple("rygopb"), colour_words(NAMES | {"b": "brown"})),)

    with pytest.raises(InvalidDomain, match=r"symmetries: a program leads from .* and not to"):
        check_domain(WithBrown(), [BEAKERS])


@pytest.mark.parametrize(
    ("constants", "words", "problem"),
    [
        (("r",), {"r": ["red"]}, "two or more constants"),
        (("r", "z"), {"r": ["red"], "z": ["zinc"]}, "'z' is not a token"),
        (("r", "g"), {"r": ["red"]}, "list of words for 'g', not None"),
        (("r", "g"), {"r": "red", "g": ["green"]}, "list of words for 'r', not 'red'"),
        (("r", "g"), {"r": ["dark red"], "g": ["green"]}, "'dark red' for 'r' is not a single word"),
        (("r", "g"), {"r": ["red"], "g": ["red"]}, "the word 'red' names two constants"),
        (("r", "g", "r"), {"r": ["red"], "g": ["green"]}, "'r' is among the constants twice"),
    ],
)
def test_wrong_constants_and_words_are_refused(constants, words, problem):
    class Wrong(Alchemy):
        name = "wrong"
        symmetries = (Symmetry(constants, words),)

    with pytest.raises(InvalidDomain, match=problem):
        check_domain(Wrong(), [BEAKERS])


def test_what_is_no_symmetry_is_refused():
    class Wrong(Alchemy):
        name = "wrong"
        symmetries = [("r", "g")]

    with pytest.raises(InvalidDomain, match=r"expected a list of `vbsix.Symmetry`, not \('r', 'g'\)"):
        check_domain(Wrong(), [BEAKERS])


class Paint:
    """A wall that is painted in one colour after the other; `twice` paints in the last one again."""

    name = "paint"
    tokens = ("red", "green", "blue", "twice")
    max_tokens_per_instruction = 1
    attributes = {"last": ["red", "green", "blue"]}
    symmetries = [Symmetry(("red", "green", "blue"), {one: [one] for one in ("red", "green", "blue")})]

    def start(self, context):
        return (tuple(context["wall"]), 0)

    def step(self, state, token):
        wall, done = state
        if token == "twice":
            return ((*wall, wall[-1]), done + 1) if wall else None
        return ((*wall, token), done + 1)

    def instructions_done(self, state):
        return state[1]

    def denotation(self, state):
        return {"layers": state[0]}

    def describe(self, state):
        return {"last": state[0][-1] if state[0] else None}


class Fading(Paint):
    """Blue is not like the others."""

    def step(self, state, token):
        return None if token == "blue" and state[0] else super().step(state, token)


class Bleeding(Paint):
    """Green turns what lies below it green."""

    def step(self, state, token):
        if token == "green":
            return (("green",) * (len(state[0]) + 1), state[1] + 1)
        return super().step(state, token)


CONTEXTS = [{"wall": []}, {"wall": ["red"]}, {"wall": ["blue", "green"]}]


def test_a_python_language_needs_no_more_than_the_declaration():
    domain = PythonDomain(Paint)
    check_domain(domain, CONTEXTS)
    world, target = (
        domain.parse_world('{"wall": ["red", "blue"]}'),
        domain.parse_target('{"layers": ["red", "blue", "blue"]}'),
    )
    permuted = domain.permute(world, target, jnp.array([2, 1, 0, 3]))
    assert json.loads(domain.format_world(permuted[0])) == {"wall": ["blue", "red"]}
    assert json.loads(domain.format_target(permuted[1])) == {"layers": ["blue", "red", "red"]}
    assert rename({"red": ["red", 1, "reddish"]}, {"red": "blue"}) == {"blue": ["blue", 1, "reddish"]}


@pytest.mark.parametrize(
    ("language", "problem"),
    [(Fading, "should be (in)?valid where"), (Bleeding, "symmetries: a program leads from")],
)
def test_a_python_language_that_is_not_symmetric_is_refused(language, problem):
    with pytest.raises(InvalidDomain, match=problem):
        check_domain(PythonDomain(language), CONTEXTS)


def test_what_cannot_be_permuted_is_refused(tmp_path):
    with pytest.raises(VbsixError, match=r"training.symmetry: the domain tangrams declares no symmetry"):
        vbsix.train("tangrams", out=tmp_path / "run", training__symmetry=True, data__synthetic_rows=5)
    assert not (tmp_path / "run").exists()
    with pytest.raises(VbsixError, match=r"training.symmetry: the domain tangrams declares no symmetry"):
        make_renaming(get_domain("tangrams"), random_words(["red"], 4))
    with pytest.raises(VbsixError, match="fewer than two of the words red, yellow, green, orange, purple"):
        make_renaming(get_domain("alchemy"), random_words(["red shapes"], 4))


@pytest.mark.integration
@pytest.mark.parametrize("symmetry", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_a_colour_never_seen_in_training_is_learned_from_the_others(tmp_path, symmetry):
    """All training examples are red. Where constants are permuted, that teaches what blue means, too."""

    def write(name: str, colours: list[str]) -> str:
        walls = [[], ["red"], ["green", "green"], ["blue", "red"], ["red", "green", "blue"], ["green", "blue"]]
        lines = [
            {"context": {"wall": wall}, "instructions": [f"paint it {colour}"], "target": {"layers": [*wall, colour]}}
            for wall in walls
            for colour in colours
        ]
        (tmp_path / name).write_text("".join(json.dumps(line) + "\n" for line in lines))
        return str(tmp_path / name)

    run = vbsix.train(
        Paint,
        write("red.jsonl", ["red"]),
        out=tmp_path / "run",
        method="mml",
        training__steps=80,
        data__dev_file=write("all.jsonl", ["blue", "green"]),
        training__symmetry=symmetry,
        training__learning_rate=0.01,
        progress=False,
    )
    ((accuracy,),) = run.accuracy["dev"].values()
    assert accuracy == (1.0 if symmetry else 0.0)


def test_scone_s_words_for_colours_are_declared(scone_data):
    """In training rows, so that an undeclared word cannot contradict a permuted world more than a few times."""
    for name, names in (("scene", [*NAMES.values(), "blue"]), ("alchemy", list(NAMES.values()))):
        domain = get_domain(name)
        lines = (scone_data / f"{name}-train.tsv").read_text(encoding="utf-8").splitlines()
        texts = [text for line in lines for text in line.split("\t")[2::2]]
        words = random_words(texts, 4)
        renaming = make_renaming(domain, words)
        ids = [id_ for text in texts for id_ in words.encode(text)]
        undeclared = [
            id_
            for id_ in ids
            if id_ != UNKNOWN
            and renaming.token_of[id_] < 0
            and any(words.words[id_].startswith(colour) for colour in names if colour != "red")
        ]
        declared = sum(bool(renaming.token_of[id_] >= 0) for id_ in ids)
        assert len(undeclared) < declared / 500
