"""The built-in corpus: true, varied, learnable from words alone, and the same for the same seed."""

from __future__ import annotations

import contextlib
import functools
import json
import re
import time
from itertools import chain, pairwise
from random import Random

import jaxtyping
import pytest
from reference.language import Language

import vbsix
from vbsix.data.examples import PAPER_SETTINGS
from vbsix.data.scone import read_rows
from vbsix.data.synthetic import Synthetic, generate, write_corpus
from vbsix.data.synthetic.corpus import GRAMMARS
from vbsix.data.synthetic.grammar import Grammar, Phrase, command

DOMAINS = ("alchemy", "scene", "tangrams")
every_domain = pytest.mark.parametrize("name", DOMAINS)


@contextlib.contextmanager
def unchecked():
    """Without the run-time type checks of the test session, which make much plain Python twenty times slower."""
    before = jaxtyping.config.jaxtyping_disable
    jaxtyping.config.update("jaxtyping_disable", True)
    try:
        yield
    finally:
        jaxtyping.config.update("jaxtyping_disable", before)


@functools.cache
def corpus(name: str, rows: int = 5000, phrasings: str = "all") -> list[Synthetic]:
    with unchecked():
        return generate(name, rows, seed=7, phrasings=phrasings)


def said(made: list[Synthetic]) -> list[tuple[str, str]]:
    return [pair for one in made for pair in zip(one.row.utterances, one.programs, strict=True)]


@every_domain
def test_the_programs_lead_from_each_world_to_the_next(name):
    for made in corpus(name)[:4]:
        steps = iter(vbsix.execute(name, made.row.worlds[0] or "", " ".join(made.programs)))
        ends = [[next(steps) for _ in program.split()][-1] for program in made.programs]
        assert [end.commands for end in ends] == [1, 2, 3, 4, 5]
        assert tuple(end.world for end in ends) == made.row.worlds[1:]


@every_domain
def test_the_plain_python_twin_agrees_on_every_row(name):
    language = Language(name, instructions=5)
    for made in corpus(name):
        state = language.start(made.row.worlds[0] or "")
        for program, world in zip(made.programs, made.row.worlds[1:], strict=True):
            for token in program.split():
                state = language.successor(state, token)
            assert language.world_text(state) == world


@every_domain
def test_every_instruction_changes_the_world_and_keeps_to_the_limits(name):
    longest = PAPER_SETTINGS[name].max_words
    for made in corpus(name):
        worlds = made.row.worlds
        assert all(before != after for before, after in pairwise(worlds))
        assert all(len(program.split()) <= 7 for program in made.programs)
        assert all(len(utterance.split()) <= longest for utterance in made.row.utterances)


@every_domain
def test_the_words_alone_tell_the_program(name):
    meanings: dict[str, str] = {}
    for utterance, program in said(corpus(name)):
        assert meanings.setdefault(utterance, program) == program, utterance


@every_domain
def test_the_history_is_needed(name):
    programs = [program for _, program in said(corpus(name))]
    for tokens in (("H0",), ("H1", "H2"), ("H0", "H1", "H2")):
        share = sum(any(token in program.split() for token in tokens) for program in programs) / len(programs)
        assert share >= (0.15 if len(tokens) == 3 else 0.02)
    assert any(re.search(r"\b[1-4] H[012]", program) for program in programs), "steps by number"


@every_domain
def test_all_tokens_that_can_be_of_use_are_used(name):
    used = {token for _, program in said(corpus(name)) for token in program.split()}
    # A scene's H3 is never an argument: no command has three.
    assert set(vbsix.get_domain(name).tokens) - used <= {"H3"}


@every_domain
def test_the_english_varies(name):
    wordings = {wording for one in GRAMMARS[name].commands for wording in one.wordings}
    assert len(wordings) >= 150
    assert len({utterance for utterance, _ in said(corpus(name))}) >= 8000
    assert len({made.row.worlds[0] for made in corpus(name)}) >= 100


@pytest.mark.parametrize(
    ("name", "texts"),
    [
        ("alchemy", ["do it again", "empty it", "mix them", "the last beaker", "the second red beaker", "beaker 3"]),
        ("scene", ["undo that", "he leaves", "she leaves", "to his left", "the far right", "the leftmost person"]),
        (
            "tangrams",
            ["do it again", "undo that", "just added", "repeat step 1", "the 3rd figure", "it back at the end"],
        ),
    ],
)
def test_scone_ways_of_speaking_occur(name, texts):
    everything = "\n".join(utterance for utterance, _ in said(corpus(name)))
    assert [text for text in texts if text not in everything] == []


def test_a_pronoun_means_the_person_who_moved_or_came():
    pronoun = re.compile(r"^(then |now |next |after that )?(he|she) (?!gives|hands|passes)")
    for made in corpus("scene"):
        for number, utterance in enumerate(made.row.utterances):
            if pronoun.match(utterance):
                before = made.programs[number - 1].split()[-1]
                assert number and before in ("AMove", "ACreate"), (made, utterance)
                assert made.programs[number].startswith("-1 H1 "), utterance


def test_what_is_put_back_was_removed_just_before():
    for made in corpus("tangrams"):
        worlds = [world or "" for world in made.row.worlds]
        for number, utterance in enumerate(made.row.utterances):
            if re.search(r"\bit back\b|just removed", utterance):
                assert len(worlds[number].split()) == len(worlds[number - 1].split()) - 1, made


@every_domain
def test_the_same_seed_gives_the_same_rows_and_another_seed_others(name):
    with unchecked():
        once, again, more, other = (generate(name, rows, seed) for rows, seed in ((40, 1), (40, 1), (60, 1), (40, 2)))
    assert again == once
    assert more[:40] == once, "a row does not depend on how many there are"
    others = {made.row.utterances for made in other}
    assert not others & {made.row.utterances for made in once}


@every_domain
def test_no_two_rows_are_alike(name):
    with unchecked():
        short = generate(name, 2000, seed=3, utterances=1)
    assert all(len(made.row.utterances) == len(made.programs) == len(made.row.worlds) - 1 == 1 for made in short)
    assert len({(made.row.worlds[0], made.row.utterances) for made in short}) == 2000
    corpora = corpus(name)[:1500], corpus(name, 1500, "seen"), corpus(name, 1500, "held-out")
    assert len({made.row.id for made in chain(*corpora)}) == 4500


def test_rows_can_be_longer_than_scone_rows():
    (made,) = generate("scene", 1, seed=0, utterances=8)
    steps = vbsix.execute("scene", made.row.worlds[0] or "", " ".join(made.programs))
    assert (steps[-1].commands, steps[-1].world) == (8, made.row.worlds[-1])


@every_domain
def test_held_out_phrasings_are_never_among_the_seen(name):
    grammar = GRAMMARS[name]
    seen, held_out = (
        [wording for one in grammar.restricted(phrasings).commands for wording in one.wordings]
        for phrasings in ("seen", "held-out")
    )
    assert not set(seen) & set(held_out)
    assert 0.12 <= len(held_out) / (len(seen) + len(held_out)) <= 0.18
    assert len({one.program for one in grammar.restricted("held-out").commands}) >= 0.9 * len(
        {one.program for one in grammar.commands}
    ), "nearly all that can be said is held out in some wording"

    texts, unseen_texts = (
        {utterance for utterance, _ in said(corpus(name, 1500, phrasings))} for phrasings in ("seen", "held-out")
    )
    assert not texts & unseen_texts
    words, unseen_words = ({word for text in some for word in text.split()} for some in (texts, unseen_texts))
    assert len(unseen_words - words) <= 3, "a held-out phrasing is new by its arrangement, not by its words"


@every_domain
def test_written_files_are_read_back(name, tmp_path):
    paths = write_corpus(name, 50, seed=4, out=tmp_path / "new" / "folder")
    *tables, sidecar = paths
    assert sorted(path.name for path in (tmp_path / "new" / "folder").iterdir()) == sorted(path.name for path in paths)
    assert [path.name for path in tables] == [f"{name}-{split}.tsv" for split in ("train", "dev", "test")]
    parts = [read_rows(path, vbsix.get_domain(name)) for path in tables]
    assert [len(part) for part in parts] == [40, 5, 5]

    header, *lines = [json.loads(line) for line in sidecar.read_text().splitlines()]
    assert header == {"format": "vbsix-programs", "version": 1, "domain": name, "rows": 50, "seed": 4}
    read = [Synthetic(row, tuple(line["programs"])) for row, line in zip(chain(*parts), lines, strict=True)]
    assert [line["id"] for line in lines] == [made.row.id for made in read]
    assert read == generate(name, 50, seed=4, phrasings="seen")


def test_writing_again_gives_the_same_bytes(tmp_path):
    first, second = (write_corpus("tangrams", 10, 0, tmp_path / folder) for folder in "ab")
    assert [path.read_bytes() for path in first] == [path.read_bytes() for path in second]


def test_a_folder_that_cannot_be_written_is_reported_and_left_clean(tmp_path):
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(vbsix.VbsixError, match="file: the corpus cannot be written there"):
        write_corpus("tangrams", 10, 0, tmp_path / "file")
    (tmp_path / "tangrams-dev.tsv").mkdir()
    with pytest.raises(vbsix.VbsixError, match="cannot be written"):
        write_corpus("tangrams", 10, 0, tmp_path)
    assert not list(tmp_path.glob(".*.part"))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"domain_name": "scone"}, "unknown domain 'scone'. Did you mean 'scene'?"),
        ({"phrasings": "unseen"}, "unknown set of phrasings 'unseen'. Did you mean 'seen'?"),
        ({"rows": -1}, "-1 rows of 5 utterances cannot be made"),
        ({"utterances": 0}, "1 rows of 0 utterances cannot be made"),
    ],
)
def test_wrong_arguments_are_named(arguments, message):
    with pytest.raises(vbsix.VbsixError, match=re.escape(message)):
        generate(**{"domain_name": "tangrams", "rows": 1, "seed": 0, **arguments})


def test_too_few_rows_for_three_files_are_refused(tmp_path):
    with pytest.raises(vbsix.VbsixError, match="2 rows are too few"):
        write_corpus("tangrams", 2, 0, tmp_path)


def test_no_rows_are_no_rows():
    assert generate("tangrams", 0, seed=0) == []


def test_a_grammar_that_has_not_so_many_rows_says_so(monkeypatch):
    poor = Grammar(
        most_words=15,
        commands=(command("remove", "{first} ARemove", "remove {first}"),),
        slots={"first": lambda story, random, phrases: Phrase("the first one", "all-objects 1 index", about=1)},
        voice=lambda random: {},
        first_world=lambda random: "1:0 2:1",
    )
    monkeypatch.setitem(GRAMMARS, "tangrams", poor)
    with pytest.raises(vbsix.VbsixError, match="too few different rows"):
        generate("tangrams", 40, seed=0, utterances=1)


def test_patterns_stand_for_all_their_alternatives():
    made = command("swap", "-1 H2 -1 H1 ASwap", "(swap|switch) them (back|)", "undo that", "swap them")
    assert made.wordings == ("swap them back", "swap them", "switch them back", "switch them", "undo that")


def test_a_grammar_says_nothing_where_nothing_fits():
    grammar = GRAMMARS["tangrams"].restricted("all")
    story = grammar.begin("", Random(0))
    assert grammar.propose(story, Random(0)) is None


def cpu_seconds(name: str, rows: int) -> float:
    """Processor time of all threads after compiling, which other work on the machine does not stretch."""
    generate(name, 1, seed=0)
    with unchecked():
        began = time.process_time()
        generate(name, rows, seed=5)
        return time.process_time() - began


@every_domain
def test_a_thousand_rows_take_a_few_seconds(name):
    assert cpu_seconds(name, 1000) < 5


@pytest.mark.slow
@every_domain
def test_ten_thousand_rows_take_less_than_twenty_seconds(name):
    assert cpu_seconds(name, 10_000) < 20
