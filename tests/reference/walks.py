"""Random walks through a language that go deep: most tokens belong to a command that will succeed."""

from __future__ import annotations

from random import Random

from reference.language import Language, State

ARGUMENTS = {
    "ALeave": "o",
    "ASwapHats": "oo",
    "AMove": "on",
    "ACreate": "ncc",
    "APour": "oo",
    "AMix": "o",
    "ADrain": "on",
    "AAdd": "no",
    "ASwap": "oo",
    "ARemove": "o",
}
"""The arguments of each action, bottom of the stack first: o an object, n a number, c a colour."""

PHRASES = {
    "o": ["all-objects N index", "N H1", "N H2", "C PShirt", "C PHat", "C C DShirtHat", "C PColor"],
    "n": ["N", "N", "X1/1", "N H1", "N H2", "all-objects N index PLeft", "N H1 PRight"],
    "c": ["C"],
}
"""Ways to name an argument; N and C stand for any number and any colour."""
POSITIONS = ["N W1", "N W2"]
"""More ways to name a number, in a language that remembers where."""


class Walker:
    """Chooses the tokens of one walk.

    Args:
        language: the language to walk through.
        random: the source of all choices.
        stray: how often a token is chosen at random among all valid ones.
    """

    def __init__(self, language: Language, random: Random, stray: float):
        self.language, self.random, self.stray = language, random, stray
        self.plan: list[str] = []
        # -1 has a meaning almost everywhere, so it is worth trying more often than the others.
        self.numbers = [token for token in language.tokens if token.isdecimal()] + ["-1"] * 4
        self.colors = [token for token in language.tokens if len(token) == 1 and token.isalpha()]
        self.phrases = PHRASES | ({"n": PHRASES["n"] + POSITIONS} if "W1" in language.tokens else {})

    def choose(self, state: State, valid: list[str]) -> str:
        """A valid token to go on with."""
        if self.random.random() < self.stray:
            self.plan = []
            return self.random.choice(valid)
        if not self.plan and not state.stack:
            self.plan = self.command(state)
        return self.plan.pop(0) if self.plan else self.random.choice(valid)

    def command(self, state: State, attempts: int = 40) -> list[str]:
        """The tokens of a command that succeeds from the state, or none if none was found."""
        actions = [token for token in self.language.tokens if token in ARGUMENTS]
        for action in self.random.sample(actions, len(actions)):
            for _ in range(attempts):
                tokens = self.sentence(action)
                if self.succeeds(state, tokens):
                    return tokens
        return []

    def sentence(self, action: str) -> list[str]:
        """The tokens of a command that may or may not be valid."""
        arguments = [token for kind in ARGUMENTS[action] for token in self.phrase(kind)]
        verb = [action] if self.random.random() < 0.4 else [self.random.choice(self.numbers), "H0"]
        return arguments + verb

    def phrase(self, kind: str) -> list[str]:
        """The tokens of an argument."""
        choices = {"N": self.numbers, "C": self.colors}
        return [
            self.random.choice(choices.get(word) or [word]) for word in self.random.choice(self.phrases[kind]).split()
        ]

    def succeeds(self, state: State, tokens: list[str]) -> bool:
        """Whether all the tokens are valid, one after the other."""
        successor: State | None = state
        for token in tokens:
            successor = self.language.step(successor, token)
            if successor is None:
                return False
        return True
