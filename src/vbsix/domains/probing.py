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
"""Time for everything."""
COMPARING = 1.0
"""Of that, the time for comparing targets with the denotations that their examples begin with."""
JUDGING = 0.5
"""And the time for comparing the types of targets with those of denotations, which is done twice."""
FEW_REACHED = 0.5
"""Below this share of targets that a random search reaches, learning may not begin."""
LONGER = (2, 4, 8)
"""By how much commands may be longer in further searches for targets that were not reached."""
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
    """With more tokens per instruction."""
    most_tokens: int = 0
    """How many tokens per instruction that was at most; 0 if there was no time for it."""
    valid: Counter[str] = field(default_factory=Counter)
    """How often each token was valid."""
    kinds: Kinds = field(default_factory=Kinds)
    """Of denotations."""
    sample: Any = None
    """A denotation."""
    missed: list[Trial] = field(default_factory=list)
    cut: set[Trial] = field(default_factory=set)
    """Of those missed, those whose search used up all tokens. The others had no state to go on from."""
    judged: int = 0
    """How many targets there was time to compare with denotations in type."""
    unlike: dict[Trial, Difference] = field(default_factory=dict)
    """Examples with targets of a type that no denotation has, whether searched for or not, and where they have it."""
    reached_later: list[int] = field(default_factory=list)
    """Of the targets not reached, those that are reached with more tokens only: the length of the longest command."""

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
    _search_all(domain, chosen, chance, found, end - 2 * JUDGING)
    known = set(chosen)
    differences = _differences(domain, [*chosen, *(trial for trial in trials if trial not in known)], found.kinds)
    found.judged = len(differences)
    odd = [trial for trial, difference in differences.items() if difference]
    _search_all(domain, [trial for trial in odd if trial not in known][:CONFIRMED], chance, found, end - JUDGING)
    differences = _differences(domain, odd, found.kinds)
    unlike = {trial: difference for trial, difference in differences.items() if difference}
    missed = {unlike[trial].pattern for trial in found.missed if trial in unlike}
    found.unlike = {trial: unlike[trial] for trial in trials if trial in unlike and unlike[trial].pattern in missed}
    _search_longer(domain, found, chance, end)
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
        yield Advice(f"{name}: {_no_command_ends(limit, found)}", is_wrong=True)
        return
    if found.most_done < most and all(trial.instructions > found.most_done for trial in found.missed):
        yield Advice(
            f"{name}: instructions_done(state) never passed {found.most_done}, but examples have up to {most} "
            "instructions. Let it go on counting, and let step take tokens after a complete command.",
            is_wrong=True,
        )
        return
    if found.unlike:
        first, difference = next(iter(found.unlike.items()))
        may_be_rare = len(found.unlike) < found.judged or any(one.is_beside_null for one in found.unlike.values())
        remedy = "Unless a rare command gives that, write" if may_be_rare else "Write"
        yield Advice(
            f"{first.where}: the target {shorten(first.target)} is unlike any denotation that searches met, such as "
            f"{shorten(domain.to_text(found.sample))} ({len(found.unlike)} of {found.judged} examples): {difference}. "
            f"{remedy} targets as denotation(state) gives them.",
            is_wrong=not may_be_rare,
        )
    missed = found.missed_alike
    tried = min(len(missed), CONFIRMED)
    if len(found.reached_later) > tried / 2:
        most_tokens = max(found.reached_later)
        yield Advice(
            f"{name}: {len(found.reached_later)} of {tried} targets that were not reached are reached with commands of "
            f"up to {most_tokens} tokens: set max_tokens_per_instruction = {most_tokens} instead of {limit}."
        )
    elif missed and found.reached / found.searched < FEW_REACHED:
        cut = len(found.cut.intersection(missed))
        limited = (
            f"{cut} of these searches used up their tokens: if commands need more than {limit}, set "
            "max_tokens_per_instruction to the number of tokens in the longest one. "
        )
        yield Advice(
            f"{name}: a random search reached {found.reached} of {found.searched} targets. One that it did not reach: "
            f"{missed[0].where}. {limited if cut else ''}If its target can be reached, use a larger beam "
            "(--set search.beam=256), examples with fewer instructions, shorter commands, or fewer valid tokens."
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


def _no_command_ends(limit: int, found: Findings) -> str:
    """Why no search completes enough commands, and what to do."""
    commands = "1 command" if not found.most_done else f"{found.most_done + 1} commands"
    start = f"no search completes {commands} with max_tokens_per_instruction = {limit}"
    if found.reached_later:
        most_tokens = max(found.reached_later)
        return (
            f"{start}. Searches with more tokens reach targets with commands of up to {most_tokens} tokens: set "
            f"max_tokens_per_instruction = {most_tokens}."
        )
    if found.most_done_later > found.most_done:
        return f"{start}, but some do with more. Set it to the number of tokens in the longest command."
    tried = f", nor with {found.most_tokens}" if found.most_tokens else ""
    return (
        f"{start}{tried}. Let instructions_done(state) count complete commands, and set max_tokens_per_instruction to "
        "the number of tokens in the longest one."
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


def _differences(domain: PythonDomain, trials: Sequence[Trial], kinds: Kinds) -> dict[Trial, Difference | None]:
    """Where the types of targets differ from those of all denotations, as far as there is time."""
    end, by_target, found = time.monotonic() + JUDGING, dict[str, Difference | None](), dict[Trial, Difference | None]()
    for trial in trials:
        if time.monotonic() > end:
            break
        if trial.target not in by_target:
            by_target[trial.target] = kinds.difference(domain.context(trial.target))
        found[trial] = by_target[trial.target]
    return found


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
                length, _ = _search(domain, trial, chance, found, domain.max_tokens_per_instruction, end)
        except TimeoutError:
            return
        found.searched += 1
        if length:
            found.reached += 1
        else:
            found.missed.append(trial)


def _search_longer(domain: PythonDomain, found: Findings, chance: random.Random, end: float) -> None:
    """Searches for targets that were not reached with longer commands, as long as that helps and there is time."""
    limit, remaining = domain.max_tokens_per_instruction, found.missed_alike[:CONFIRMED]
    most = max((trial.instructions for trial in remaining), default=0)
    for factor in LONGER:
        missed = []
        for trial in remaining:
            later = Findings()
            try:
                with _naming(trial):
                    length, longest = _search(domain, trial, chance, later, factor * limit, end)
            except TimeoutError:
                return
            found.most_done_later = max(found.most_done_later, later.most_done)
            if length > trial.instructions * limit:
                found.reached_later.append(longest)
            elif not length:
                missed.append(trial)
        found.most_tokens = factor * limit
        if len(missed) == len(remaining) and found.most_done_later >= most:
            return
        remaining = missed


def _search(
    domain: PythonDomain, trial: Trial, chance: random.Random, found: Findings, limit: int, end: float
) -> tuple[int, int]:
    """After how many tokens a search reaches the target, and how many its longest command has; zeros if it does not.

    States are merged as in execution space.

    Raises:
        TimeoutError: it has not ended in time.
    """
    language, target = domain.language, domain.context(trial.target)
    start, first = _begin(domain, trial)
    found.sample = first if found.sample is None else found.sample
    beam: dict[Any, tuple[Any, int, int]] = {start: (freeze(first), 0, 0)}
    """States, each with the denotation before the command at hand, its tokens, and those of the longest command."""

    @functools.cache
    def denote(state: Any) -> tuple[Any, bool]:
        """The denotation after a command, frozen, and whether it is the target."""
        denotation = _denote(domain, state)
        found.kinds.add(denotation)
        return freeze(denotation), domain.is_match(denotation, target)

    def count(state: Any) -> tuple[Any, int]:
        hash(state)  # raises here, where the token is known
        return state, index(language.instructions_done(state))

    for length in range(1, trial.instructions * limit + 1):
        successors: dict[Any, tuple[Any, int, int]] = {}
        hits: list[int] = []
        for state, (before, tokens, longest) in beam.items():
            if time.monotonic() > end:
                raise TimeoutError
            with guarded(language, "instructions_done(state)", state):
                done_before = index(language.instructions_done(state))
            counted = step_all(language, domain.tokens, state, count)
            for token, (after, done) in counted.items():
                found.valid[token] += 1
                here = tokens + 1
                if done <= done_before:
                    successors.setdefault(after, (before, here, longest))
                    continue
                found.most_done = max(found.most_done, done)
                found.commands += 1
                denotation, is_target = denote(after)
                found.no_ops += denotation == before
                if done < trial.instructions:
                    successors.setdefault(after, (denotation, 0, max(longest, here)))
                elif done == trial.instructions and is_target:
                    hits.append(max(longest, here))
        if hits:
            return length, min(hits)
        if not successors:
            return 0, 0
        kept = list(successors) if len(successors) <= BEAM else chance.sample(list(successors), BEAM)
        beam = {state: successors[state] for state in kept}
    found.cut.add(trial)
    return 0, 0
