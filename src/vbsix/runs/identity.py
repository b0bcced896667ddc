"""What identifies the language of a run, so that a model is not used with another one."""

from __future__ import annotations

import hashlib
import logging
import random
from collections.abc import Iterator, Mapping, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import Any, NamedTuple

from vbsix.config.schema import Config
from vbsix.domains.base import Domain
from vbsix.domains.interning import step_all
from vbsix.domains.no_ops import without_no_ops
from vbsix.domains.python import PythonDomain
from vbsix.domains.registry import get_domain
from vbsix.utilities.errors import UnknownName, VbsixError

WALKED, LONGEST = 4, 2000
"""How many contexts the behaviour is known by, and the most characters that they have."""
COMMANDS = 3
"""How many of the longest commands fit into a random program."""
WALKS = 8
"""Random programs from each context."""
_logger = logging.getLogger("vbsix")


class Behaviour(NamedTuple):
    """What a plain-Python language does with random programs."""

    contexts: tuple[str, ...]
    """Where they begin."""
    digest: str
    walks: int = 1
    """How many programs begin in each context. Runs of version 0.2.0 do not say it."""


class Identity(NamedTuple):
    """A language, as far as it is known: models of earlier versions know less."""

    tokens: tuple[str, ...] = ()
    observation_spec: Any = None
    """What its networks see; see `Domain.observation_spec`."""
    max_tokens_per_instruction: int | None = None
    behaviour: Behaviour | None = None

    def to_json(self) -> dict[str, Any]:
        """What `read_identity` reads."""
        known = {**self._asdict(), "behaviour": self.behaviour and self.behaviour._asdict()}
        return {name: value for name, value in known.items() if value is not None}


UNKNOWN = Identity()


def identify(domain: Domain, contexts: Sequence[str] = ()) -> Identity:
    """The identity of a language, with its behaviour in some of these contexts."""
    few = tuple(text for text in dict.fromkeys(contexts) if len(text) <= LONGEST)[:WALKED]
    behaviour = behave(domain, few)
    return Identity(domain.tokens, domain.observation_spec(), domain.max_tokens_per_instruction, behaviour)


def read_identity(saved: Mapping[str, Any]) -> Identity:
    """The identity from the description of a run or a model. Raises what malformed JSON leads to."""
    spec = saved.get("observation_spec", saved.get("attributes"))  # 0.1 says attributes
    behaviour = saved.get("behaviour")
    if behaviour is not None:
        contexts, walks = tuple(map(str, behaviour["contexts"])), behaviour.get("walks", 1)
        behaviour = Behaviour(contexts, str(behaviour["digest"]), walks)
        # A stranger's model may have others. The language of whoever loads it must not be run on them.
        is_long = len(contexts) > WALKED or any(len(text) > LONGEST for text in contexts)
        if is_long or not isinstance(walks, int) or not 1 <= walks <= WALKS:
            raise ValueError(
                f"more than {WALKED} contexts or {WALKS} programs for each, or one of more than {LONGEST} characters"
            )
    return Identity(tuple(saved.get("tokens", ())), spec, saved.get("max_tokens_per_instruction"), behaviour)


def behave(domain: Domain, contexts: Sequence[str], walks: int = WALKS) -> Behaviour | None:
    """What a plain-Python language does from some contexts on; None for other domains, and without contexts."""
    domain = domain.unwrapped
    if not isinstance(domain, PythonDomain) or not contexts:
        return None
    digest = hashlib.sha256()
    try:
        for text in contexts:
            for walk in range(walks):
                for seen in _walk(domain, text, random.Random(f"{walk} {text}" if walk else 0)):
                    digest.update(repr(seen).encode())
    except Exception as error:  # a language that has changed may refuse these contexts
        digest.update(type(error).__name__.encode())
    return Behaviour(tuple(contexts), digest.hexdigest(), walks)


def _walk(domain: PythonDomain, context: str, chance: random.Random) -> Iterator[tuple[Any, str, list[str]]]:
    """What is seen of the states of a random program: by the networks, the denotation, and the valid tokens."""
    state = domain.language.start(domain.context(context))
    for _ in range(COMMANDS * domain.max_tokens_per_instruction):
        seen = domain.language.instructions_done(state), domain.features.state(state)
        after = step_all(domain.language, domain.tokens, state, lambda state: state)
        valid = [token for token in domain.tokens if token in after]
        yield seen, domain.to_text(domain.language.denotation(state)), valid
        if not valid:
            return
        state = after[chance.choice(valid)]


def domain_of(config: Config, path: Path, given: Domain | None, identity: Identity) -> Domain:
    """The domain that a model is for. A file names a domain that is known, never code to be run.

    The domain must have what identified it in training. Where programs do other things than then, that is a warning
    only, because an error in the language may have been corrected since.
    """
    if given is not None and given.name != config.domain:
        raise VbsixError(f"{path}: is for the domain {config.domain!r}, not for {given.name!r}.")
    try:
        domain = given or get_domain(config.domain)
    except UnknownName as error:
        raise VbsixError(
            f"{path}: {error} A domain of your own has to be named: --domain MODULE:CLASS (vbsix train: MODULE:CLASS), "
            "in Python vbsix.load(..., domain=...)."
        ) from None
    differences = []
    if identity.tokens and identity.tokens != domain.tokens:
        differences.append(f"its tokens differ: {_difference(identity.tokens, domain.tokens)}")
    if identity.observation_spec not in (None, domain.observation_spec()):
        now = domain.observation_spec()
        differences.append(f"its attributes differ: {_difference(identity.observation_spec, now)}")
    if (most := identity.max_tokens_per_instruction) not in (None, domain.max_tokens_per_instruction):
        now = domain.max_tokens_per_instruction
        differences.append(f"max_tokens_per_instruction was {most}, now it is {now}")
    if differences:
        what = "; ".join(differences)
        raise VbsixError(f"{path}: was trained for another version of the domain {domain.name}: {what}.")
    known = identity.behaviour
    if known and behave(domain, known.contexts, known.walks) != known:
        _logger.warning(
            "%s: was trained for another version of the domain %s: the same programs do not do the same any more, or "
            "describe(state) gives something else. Train again, unless the difference does not matter.",
            path,
            domain.name,
        )
    return as_seen(domain, config)


def as_seen(domain: Domain, config: Config) -> Domain:
    """The domain with the context that the policy sees, and without the commands that are not offered."""
    domain = domain.with_context() if config.network.context else domain
    return without_no_ops(domain) if config.search.skip_no_ops else domain


def _difference(before: Any, now: Any) -> str:
    """Where two lists differ first."""
    pairs = enumerate(zip_longest(before, now, fillvalue=None), start=1)
    place, (old, new) = next(pair for pair in pairs if pair[1][0] != pair[1][1])
    return f"number {place} was {'nothing' if old is None else repr(old)}, now it is {new!r}"
