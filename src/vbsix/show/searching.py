"""A search by hand: for programs that lead from one world to another, with all that it did kept to look at."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import jax
import jax.numpy as jnp

from vbsix.config.presets import full_name
from vbsix.domains.base import Domain
from vbsix.domains.registry import as_domain
from vbsix.models.heads import policy_head
from vbsix.parsing.parser import Parser
from vbsix.search import Problem, SearchConfig, program_search
from vbsix.show.inspection import FoundProgram, Inspection, SeenIteration, inspect_search
from vbsix.show.svg import draw_search
from vbsix.utilities.errors import UnknownName, VbsixError, naming
from vbsix.utilities.jax_settings import prepare_jax
from vbsix.utilities.renaming import renamed

EXTRACTED = 512
"""Programs extracted. Many prefixes are equally probable under a uniform policy, and a small beam would lose some."""
MOST_PROGRAMS = 8
"""How many of them are given."""
MOST_BEAM = 16384


@dataclass(frozen=True)
class Search:
    """A search for programs, which a notebook displays as a graph of states; `vbsix.search_programs` makes one."""

    world: str
    target: str
    utterances: tuple[str, ...]
    policy: str
    """What the policy is called."""
    beam: int
    inspection: Inspection
    """The states and transitions that are drawn."""

    @property
    def programs(self) -> tuple[FoundProgram, ...]:
        """The correct programs found, the most probable first."""
        return self.inspection.programs

    @property
    def iterations(self) -> tuple[SeenIteration, ...]:
        """What each iteration did with the beam."""
        return self.inspection.iterations

    @property
    def svg(self) -> str:
        """The graph as an SVG file."""
        return draw_search(self.inspection, target=self.target, utterances=self.utterances, policy=self.policy)

    def __repr__(self) -> str:
        found = len(self.programs)
        return f"<search in {self.inspection.space} space, beam {self.beam}: {found} program{'s' * (found != 1)} found>"

    def _repr_html_(self) -> str:
        from vbsix.show.notebook import search_html

        return search_html(self)


@renamed(world="context", utterances="instructions")
def search_programs(
    domain: Any,
    context: Any,
    instructions: Sequence[str],
    target: Any,
    *,
    parser: Parser | None = None,
    space: Literal["program", "execution"] = "execution",
    beam: int = 4096,
    epsilon: float = 0.0,
    seed: int = 0,
    limit: int = 32,
) -> Search:
    """Searches for programs that lead from a world to a target.

    Without a parser the policy is uniform: each token has the same probability, and only the number of the instructions
    counts. So it finds programs for one or two instructions.

    Args:
        domain: a domain, its name, or a class that `PythonDomain` takes.
        context: the world before the first instruction, in its text form or as JSON.
        instructions: the instructions in their order.
        target: the world after the last instruction, in its text form or as JSON.
        parser: its policy searches.
        space: whether states with the same execution result are merged.
        beam: how many states each iteration keeps.
        epsilon: the probability that a place in the beam goes to a random state.
        seed: of that randomness.
        limit: how many states to keep for the drawing.

    Raises:
        VbsixError: a world does not parse, or the parser is for another domain.
    """
    prepare_jax()
    language = as_domain(domain)
    if parser and parser.domain.name != language.name:
        raise VbsixError(f"the parser was trained for {parser.domain.name}, not for {language.name}.")
    if parser:
        language = parser.domain
    _check(instructions, space, beam, epsilon, limit)
    with naming("context"):
        start_text = language.world_text(context)
        start = language.parse_world(start_text)
    with naming("target"):
        end_text = language.world_text(target)
        end = language.parse_target(end_text)
    learned = None
    if parser:
        learned = parser.policy, parser.words.vectors, parser.word_ids(instructions, len(instructions))
    extracted = min(EXTRACTED, beam * len(language.tokens))
    config = SearchConfig(space=space, beam=beam, selection="epsilon-greedy", epsilon=epsilon, program_beam=extracted)
    with language.alone():
        search = _compiled_search(language, len(instructions), config)
        programs, graph = search(start, end, jax.random.key(seed), learned)
        best = jax.tree.map(lambda leaf: leaf[:MOST_PROGRAMS], jax.block_until_ready(programs))
        language.raise_failure()
        inspection = inspect_search(language, graph, best, space=space, limit=limit)
    name = full_name(parser.config) if parser else "uniform"
    return Search(start_text, end_text, tuple(instructions), name, beam, inspection)


def _check(instructions: Sequence[str], space: str, beam: int, epsilon: float, limit: int) -> None:
    if space not in ("program", "execution"):
        raise UnknownName("space", space, ("program", "execution"))
    if isinstance(instructions, str) or not instructions:
        raise VbsixError("instructions: expected a list with at least one instruction.")
    if not 1 <= beam <= MOST_BEAM:
        raise VbsixError(f"beam: expected 1 to {MOST_BEAM}, not {beam}.")
    if not 0 <= epsilon <= 1:
        raise VbsixError(f"epsilon: expected 0 to 1, not {epsilon}.")
    if limit < 1:
        raise VbsixError(f"limit: expected 1 or more, not {limit}.")


@functools.lru_cache(maxsize=32)
def _compiled_search(domain: Domain, instructions: int, config: SearchConfig) -> Callable[..., Any]:
    def uniform(state: Any, valid: Any) -> Any:
        return jnp.full(len(domain.tokens), -math.log(len(domain.tokens)))

    def run(world: Any, target: Any, key: Any, learned: Any) -> Any:
        problem = Problem(world, jnp.int32(instructions), target)
        policy = policy_head(domain, *learned) if learned else uniform
        return program_search(domain, policy, None, problem, key, instructions=instructions, config=config)

    return jax.jit(run)
