"""Tries a plain-Python language on examples: can searches reach the targets, and if not, why?

The searches are random ones, with no network: a beam of states, all tokens equally probable.
"""

from __future__ import annotations

import functools
import random
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from vbsix.domains.interning import failure, freeze
from vbsix.domains.python import PythonDomain
from vbsix.utilities.errors import shorten

SEARCHED = 48
"""Examples that are searched for."""
BEAM = 128
SECONDS = 5.0
"""Time for all searches together."""
FEW_REACHED = 0.5
"""Below this share of targets that a random search reaches, learning may not begin."""
MANY_NO_OPS = 0.1
"""From this share of commands on, those that change nothing are worth forbidding."""


class Advice(NamedTuple):
    """Something that stands in the way of learning, and what to do about it."""

    text: str
    is_wrong: bool = False
    """Whether nothing can be learned like this."""


class Trial(NamedTuple):
    """An example to search for."""

    context: str
    instructions: int
    target: str
    where: str
    """File and line, for messages."""


@dataclass
class Findings:
    """What searches with a uniform policy met with."""

    searched: int = 0
    reached: int = 0
    commands: int = 0
    no_ops: int = 0
    """Commands after which the denotation is what it was before."""
    unchanging: int = 0
    """Examples of one instruction whose target is what they began with."""
    single: int = 0
    """Examples of one instruction."""
    most_done: int = 0
    most_done_later: int = 0
    """With twice as many tokens per instruction."""
    valid: Counter[str] = field(default_factory=Counter)
    """How often each token was valid."""
    kinds: set[Any] = field(default_factory=set)
    """Kinds of denotations; see `_kind`."""
    sample: Any = None
    """A denotation."""
    missed: list[Trial] = field(default_factory=list)
    unlike: list[Trial] = field(default_factory=list)
    """Targets of a kind that no denotation has."""
    reached_later: int = 0
    """Of the targets not reached, those that are reached with more tokens per instruction only."""


def probe(domain: PythonDomain, trials: Sequence[Trial], seed: int = 0) -> Findings:
    """Searches for some of the examples, chosen at random."""
    chance, found = random.Random(seed), Findings()
    chosen = list(trials) if len(trials) <= SEARCHED else chance.sample(list(trials), SEARCHED)
    end = time.monotonic() + SECONDS
    for trial in chosen:
        if time.monotonic() > end:
            break
        found.searched += 1
        if _search(domain, trial, chance, found, domain.max_tokens_per_instruction):
            found.reached += 1
        else:
            found.missed.append(trial)
    found.unlike = [one for one in found.missed if not _is_alike(_kind(domain.context(one.target)), found.kinds)]
    for trial in [one for one in found.missed if one not in found.unlike][: SEARCHED // 4]:
        if time.monotonic() < end:
            limit = domain.max_tokens_per_instruction
            later = Findings()
            found.reached_later += _search(domain, trial, chance, later, 2 * limit) > trial.instructions * limit
            found.most_done_later = max(found.most_done_later, later.most_done)
    return found


def advise(domain: PythonDomain, trials: Sequence[Trial], found: Findings) -> Iterator[Advice]:
    """What stands in the way of learning."""
    most, name = max(trial.instructions for trial in trials), type(domain.language).__name__
    limit = domain.max_tokens_per_instruction
    if never := [token for token in domain.tokens if not found.valid[token]]:
        yield Advice(
            f"{name}: tokens that were never valid: {', '.join(never)}. Leave them out of `tokens`, or let step take "
            "them where they make sense."
        )
    if not found.most_done or found.most_done < min(most, found.most_done_later):
        yield Advice(
            f"{name}: no search completes {found.most_done + 1} commands with max_tokens_per_instruction = {limit}. "
            "Make that the length of the longest command, and let instructions_done(state) count the complete ones.",
            is_wrong=True,
        )
        return
    if found.most_done < most and all(trial.instructions > found.most_done for trial in found.missed):
        yield Advice(
            f"{name}: instructions_done(state) never passed {found.most_done}, but examples have up to {most} "
            "instructions. Let it go on counting, and let step take tokens after a complete command.",
            is_wrong=True,
        )
        return
    if found.unlike:
        one = found.unlike[0]
        yield Advice(
            f"{one.where}: the target {shorten(one.target)} is unlike any denotation, such as "
            f"{shorten(domain.to_text(found.sample))} ({len(found.unlike)} of {found.searched} examples searched). "
            "Write targets as denotation(state) gives them.",
            is_wrong=True,
        )
    missed = len(found.missed) - len(found.unlike)
    tried = min(missed, SEARCHED // 4)
    if found.reached_later > tried / 2:
        yield Advice(
            f"{name}: {found.reached_later} of {tried} targets that were not reached are reached "
            f"with commands of up to {2 * limit} tokens: max_tokens_per_instruction = {limit} may be too small."
        )
    elif missed and found.reached / found.searched < FEW_REACHED:
        one = next(trial for trial in found.missed if trial not in found.unlike)
        yield Advice(
            f"{name}: a random search reached {found.reached} of {found.searched} targets. One that it did not reach: "
            f"{one.where}. If its target can be reached, use a larger beam (--set search.beam=256), examples with "
            "fewer instructions, shorter commands, or fewer valid tokens."
        )
    if found.no_ops >= MANY_NO_OPS * found.commands and not found.unchanging and found.single:
        yield Advice(
            f"{name}: {found.no_ops / found.commands:.0%} of the commands that were tried change nothing, and no "
            "example of one instruction asks for that. They can make spurious programs easy to find. Let step return "
            "None for them, or try search.skip_no_ops=true, which leaves them out."
        )


def summarise(found: Findings) -> str:
    """The outcome in one sentence."""
    no_ops = f"; {found.no_ops / found.commands:.0%} of the commands tried change nothing" if found.commands else ""
    return f"A random search reached {found.reached} of {found.searched} targets{no_ops}."


def _search(domain: PythonDomain, trial: Trial, chance: random.Random, found: Findings, limit: int) -> int:
    """After how many tokens a search reaches the target; 0 if it does not. States are merged as in execution space."""
    language, target = domain.language, freeze(domain.context(trial.target))
    denotation = functools.cache(lambda state: freeze(language.denotation(state)))
    start = language.start(domain.context(trial.context))
    found.sample = language.denotation(start) if found.sample is None else found.sample
    if trial.instructions == 1:
        found.single += 1
        found.unchanging += denotation(start) == target
    beam: dict[Any, Any] = {start: denotation(start)}
    """States, each with the denotation before the command at hand."""
    for length in range(1, trial.instructions * limit + 1):
        successors: dict[Any, Any] = {}
        hit = False
        for state, before in beam.items():
            for token, after, completes in _step_all(domain, state):
                found.valid[token] += 1
                if not completes:
                    successors.setdefault(after, before)
                    continue
                done = language.instructions_done(after)
                found.most_done = max(found.most_done, done)
                found.commands += 1
                found.no_ops += denotation(after) == before
                found.kinds.add(_kind(language.denotation(after)))
                if done < trial.instructions:
                    successors.setdefault(after, denotation(after))
                hit |= done == trial.instructions and denotation(after) == target
        if hit or not successors:
            return length if hit else 0
        kept = list(successors) if len(successors) <= BEAM else chance.sample(list(successors), BEAM)
        beam = {state: successors[state] for state in kept}
    return 0


def _step_all(domain: PythonDomain, state: Any) -> Iterator[tuple[str, Any, bool]]:
    """The valid tokens of a state, the states they lead to, and whether they complete a command."""
    language, call = domain.language, "valid_tokens(state)"
    try:
        done = language.instructions_done(state)
        offered = getattr(language, "valid_tokens", None)
        for token in domain.tokens if offered is None else offered(state):
            call = f"step(state, {token!r})"
            after = language.step(state, token)
            if after is not None:
                yield token, after, language.instructions_done(after) > done
    except Exception as error:  # whatever the user's own methods do
        raise failure(language, call, error, state) from error


def _is_alike(kind: Any, known: set[Any]) -> bool:
    """Whether a kind is among some; lists are alike if the elements of one are of the kinds in the other."""
    if kind in known or not isinstance(kind, tuple) or kind[0] != "list":
        return kind in known
    return any(one[0] == "list" and (one[1] <= kind[1] or kind[1] <= one[1]) for one in known)


def _kind(value: Any) -> Any:
    """What a value is made of: numbers, texts, lists of them, objects with some names; not which ones."""
    if isinstance(value, list | tuple):
        return "list", frozenset(map(_kind, value))
    if isinstance(value, dict):
        return "object", frozenset(value)
    if isinstance(value, bool) or value is None or isinstance(value, str):
        return (type(value).__name__,)
    return ("number",)
