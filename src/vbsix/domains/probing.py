"""Tries a plain-Python language on examples: can searches reach the targets, and if not, why?

The searches are random ones, with no network: a beam of states, all tokens equally probable.
"""

from __future__ import annotations

import functools
import random
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from operator import index
from typing import Any, NamedTuple

from vbsix.domains.denotations import close_neighbours, freeze
from vbsix.domains.interning import guarded, step_all
from vbsix.domains.kinds import Difference, Kinds
from vbsix.domains.python import PythonDomain
from vbsix.utilities.errors import VbsixError, shorten

SEARCHED = 48
"""Examples that are searched for."""
CONFIRMED = 12
"""Examples that are searched for once more, or because their targets look odd."""
BEAM = 128
SECONDS = 5.0
"""Time for all searches together."""
COMPARING = 1.0
"""Of that, the time for comparing targets with the denotations that their examples begin with."""
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
    unchanging: list[Trial] = field(default_factory=list)
    """Examples whose target is the denotation that they begin with, among those that were compared."""
    compared: int = 0
    """How many examples there was time to compare, chosen at random."""
    most_done: int = 0
    most_done_later: int = 0
    """With twice as many tokens per instruction."""
    valid: Counter[str] = field(default_factory=Counter)
    """How often each token was valid."""
    kinds: Kinds = field(default_factory=Kinds)
    """Of denotations."""
    sample: Any = None
    """A denotation."""
    missed: list[Trial] = field(default_factory=list)
    unlike: dict[Trial, Difference] = field(default_factory=dict)
    """Examples with targets of a type that no denotation has, whether searched for or not, and where they have it."""
    reached_later: int = 0
    """Of the targets not reached, those that are reached with more tokens per instruction only."""

    @property
    def missed_alike(self) -> list[Trial]:
        """Those not reached whose targets are of types that denotations have."""
        return [trial for trial in self.missed if trial not in self.unlike]


def probe(domain: PythonDomain, trials: Sequence[Trial], seed: int = 0) -> Findings:
    """Searches for some of the examples, chosen at random, and for some whose targets are unlike what that meets."""
    chance, found = random.Random(seed), Findings()
    end = time.monotonic() + SECONDS
    _compare(domain, trials, random.Random(seed), found, end - SECONDS + COMPARING)
    chosen = list(trials) if len(trials) <= SEARCHED else chance.sample(list(trials), SEARCHED)
    _search_all(domain, chosen, chance, found, end)
    known = set(chosen)
    odd = [trial for trial in _differences(domain, trials, found.kinds) if trial not in known]
    _search_all(domain, odd[:CONFIRMED], chance, found, end)
    differences = _differences(domain, trials, found.kinds)
    missed = {differences[trial].pattern for trial in found.missed if trial in differences}
    found.unlike = {trial: one for trial, one in differences.items() if one.pattern in missed}
    limit = domain.max_tokens_per_instruction
    for trial in found.missed_alike[:CONFIRMED]:
        later = Findings()
        try:
            with _naming(trial):
                length = _search(domain, trial, chance, later, 2 * limit, end)
        except TimeoutError:
            break
        found.reached_later += length > trial.instructions * limit
        found.most_done_later = max(found.most_done_later, later.most_done)
    return found


def advise(
    domain: PythonDomain, trials: Sequence[Trial], found: Findings, *, skips_no_ops: bool = False
) -> Iterator[Advice]:
    """What stands in the way of learning.

    Args:
        domain: the language.
        trials: all examples.
        found: what `probe` has found out about them.
        skips_no_ops: whether commands that change nothing are left out anyway.
    """
    shortest, most = min(trial.instructions for trial in trials), max(trial.instructions for trial in trials)
    limit, name = domain.max_tokens_per_instruction, type(domain.language).__name__
    if not found.searched:
        yield Advice(
            f"{name}: not one search ended within {SECONDS:.0f} s, so the examples were not tried. Let step compute "
            "less, or let valid_tokens(state) leave out tokens that it need not try."
        )
        return
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
        one, difference = next(iter(found.unlike.items()))
        yield Advice(
            f"{one.where}: the target {shorten(one.target)} is unlike any denotation, such as "
            f"{shorten(domain.to_text(found.sample))} ({len(found.unlike)} of {len(trials)} examples): {difference}. "
            "Write targets as denotation(state) gives them.",
            is_wrong=True,
        )
    missed = found.missed_alike
    tried = min(len(missed), CONFIRMED)
    if found.reached_later > tried / 2:
        yield Advice(
            f"{name}: {found.reached_later} of {tried} targets that were not reached are reached "
            f"with commands of up to {2 * limit} tokens: max_tokens_per_instruction = {limit} may be too small."
        )
    elif missed and found.reached / found.searched < FEW_REACHED:
        yield Advice(
            f"{name}: a random search reached {found.reached} of {found.searched} targets. One that it did not reach: "
            f"{missed[0].where}. If its target can be reached, use a larger beam (--set search.beam=256), examples "
            "with fewer instructions, shorter commands, or fewer valid tokens."
        )
    is_complete = found.compared == len(trials)
    if skips_no_ops:
        if refused := [trial for trial in found.unchanging if trial.instructions == 1]:
            least = "" if is_complete else "at least "
            yield Advice(
                f"{refused[0].where}: the target is what the context gives already, and search.skip_no_ops=true leaves "
                f"out commands that change nothing ({least}{len(refused)} examples). They cannot be answered: "
                "leave them out, or set search.skip_no_ops=false."
            )
    elif found.no_ops >= MANY_NO_OPS * found.commands:
        share = f"{name}: {found.no_ops / found.commands:.0%} of the commands that were tried change nothing"
        remedy = "Let step return None for them, or try search.skip_no_ops=true, which leaves them out."
        if shortest == 1 and is_complete and not any(trial.instructions == 1 for trial in found.unchanging):
            yield Advice(
                f"{share}, and no example of one instruction asks for that. They can make spurious programs easy to "
                f"find. {remedy}"
            )
        elif shortest > 1 and len(found.unchanging) < MANY_NO_OPS * found.compared:
            yield Advice(
                f"{share}, and {len(found.unchanging)} of {found.compared} examples end where they began, so perhaps "
                f"no instruction asks for that. If none does: {remedy[0].lower()}{remedy[1:]}"
            )


def advise_on_tolerance(domain: PythonDomain, trials: Sequence[Trial]) -> Iterator[Advice]:
    """Which targets are so close together that a denotation may match two of them."""
    close = close_neighbours([domain.context(trial.target) for trial in trials], domain.tolerance)
    for place, other in sorted(close.items())[:1]:
        one, near = trials[place], trials[other]
        yield Advice(
            f"{one.where}: the target {shorten(one.target)} and that of {near.where}, {shorten(near.target)}, are less "
            f"than twice the tolerance ({domain.tolerance:g}) apart ({len(close)} such targets). Where a denotation is "
            "near enough to both, training takes the nearest, evaluation either. Choose a smaller tolerance, or round "
            "all targets in the same way."
        )


def summarise(found: Findings) -> str:
    """The outcome in one sentence."""
    no_ops = f"; {found.no_ops / found.commands:.0%} of the commands tried change nothing" if found.commands else ""
    if not found.searched:
        return f"No search ended within {SECONDS:.0f} s."
    return f"A random search reached {found.reached} of {found.searched} targets{no_ops}."


def _differences(domain: PythonDomain, trials: Sequence[Trial], kinds: Kinds) -> dict[Trial, Difference]:
    """The examples with targets of a type that no denotation has."""
    found = {text: kinds.difference(domain.context(text)) for text in {trial.target for trial in trials}}
    return {trial: one for trial in trials if (one := found[trial.target])}


def _compare(domain: PythonDomain, trials: Sequence[Trial], chance: random.Random, found: Findings, end: float) -> None:
    """Finds the examples whose target is the denotation that they begin with, as far as there is time."""
    unchanging = []
    for place in chance.sample(range(len(trials)), len(trials)):
        if time.monotonic() > end:
            break
        trial = trials[place]
        with _naming(trial):
            _, first = _begin(domain, trial)
        found.compared += 1
        if domain.is_match(first, domain.context(trial.target)):
            unchanging.append(place)
    found.unchanging = [trials[place] for place in sorted(unchanging)]


def _begin(domain: PythonDomain, trial: Trial) -> tuple[Any, Any]:
    """The first state of an example, and its denotation."""
    context = domain.context(trial.context)
    with guarded(domain.language, f"start({shorten(trial.context)})"):
        start = domain.language.start(context)
    return start, _denote(domain, start)


def _denote(domain: PythonDomain, state: Any) -> Any:
    with guarded(domain.language, "denotation(state)", state):
        denotation = domain.language.denotation(state)
        freeze(denotation)  # raises where nothing can equal it
        return denotation


@contextmanager
def _naming(trial: Trial) -> Iterator[None]:
    """Has the message about a mistake in the language begin with the example that shows it."""
    try:
        yield
    except VbsixError as error:
        raise VbsixError(f"{trial.where}: {error}") from error


def _search_all(
    domain: PythonDomain, trials: Sequence[Trial], chance: random.Random, found: Findings, end: float
) -> None:
    """Searches for examples, as far as there is time."""
    for trial in trials:
        try:
            with _naming(trial):
                length = _search(domain, trial, chance, found, domain.max_tokens_per_instruction, end)
        except TimeoutError:
            return
        found.searched += 1
        if length:
            found.reached += 1
        else:
            found.missed.append(trial)


def _search(domain: PythonDomain, trial: Trial, chance: random.Random, found: Findings, limit: int, end: float) -> int:
    """After how many tokens a search reaches the target; 0 if it does not. States are merged as in execution space.

    Raises:
        TimeoutError: it has not ended in time.
    """
    language, target = domain.language, domain.context(trial.target)
    denotation = functools.cache(lambda state: freeze(_denote(domain, state)))
    is_match = functools.cache(lambda state: domain.is_match(_denote(domain, state), target))
    start, first = _begin(domain, trial)
    found.sample = first if found.sample is None else found.sample
    beam: dict[Any, Any] = {start: denotation(start)}
    """States, each with the denotation before the command at hand."""

    def count(state: Any) -> tuple[Any, int]:
        hash(state)  # raises here, where the token is known
        return state, index(language.instructions_done(state))

    for length in range(1, trial.instructions * limit + 1):
        successors: dict[Any, Any] = {}
        hit = False
        for state, before in beam.items():
            if time.monotonic() > end:
                raise TimeoutError
            with guarded(language, "instructions_done(state)", state):
                done_before = index(language.instructions_done(state))
            counted = step_all(language, domain.tokens, state, count)
            for token, (after, done) in counted.items():
                found.valid[token] += 1
                if done <= done_before:
                    successors.setdefault(after, before)
                    continue
                found.most_done = max(found.most_done, done)
                found.commands += 1
                found.no_ops += denotation(after) == before
                found.kinds.add(_denote(domain, after))
                if done < trial.instructions:
                    successors.setdefault(after, denotation(after))
                hit |= done == trial.instructions and is_match(after)
        if hit or not successors:
            return length if hit else 0
        kept = list(successors) if len(successors) <= BEAM else chance.sample(list(successors), BEAM)
        beam = {state: successors[state] for state in kept}
    return 0
