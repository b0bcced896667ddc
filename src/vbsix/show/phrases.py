"""Commands in plain words: `all-objects 1 index ARemove` is "remove shape 1"."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from vbsix.show.svg.worlds import ALCHEMY_NAMES, NAMES

Rule = tuple[int, Callable[..., str]]
"""How many elements a token takes off the stack, and what it makes of their words."""
_ALL = "all"
_ORDINALS = ("", "first", "second", "third")


def in_words(domain: str, command: Sequence[str]) -> str | None:
    """What a command says; None where it is not known, as in domains of one's own."""
    rules, stack = RULES.get(domain, {}), []
    for token in command:
        takes, say = _repeat(len(stack)) if token == "H0" else rules.get(token, (1, str))
        if token not in rules or takes > len(stack):
            return None
        arguments = [stack.pop() for _ in range(takes)][::-1]
        stack.append(say(*arguments))
    return stack[0] if len(stack) == 1 else None


def _repeat(size: int) -> Rule:
    """H0 takes the number of a command, and all that lies below it as arguments."""

    def say(*stack: str) -> str:
        which = _command(stack[-1])
        arguments = " and ".join(stack[:-1]).replace(f"{which}'s", "its")
        return f"do as in {which} with {arguments}" if arguments else f"do as in {which}"

    return max(size, 1), say


def _command(number: str) -> str:
    return "the last command" if number == "-1" else f"command {number}"


def _argument(number: str, place: int) -> str:
    return f"{_command(number)}'s {_ORDINALS[place]} argument"


def _index(noun: str, nouns: str) -> Rule:
    def say(among: str, number: str) -> str:
        if number == "-1":
            return f"the last {noun}" if among == _ALL else f"the last of {among.replace(noun, nouns)}"
        if not number.isdigit():
            return f"the {noun} whose number is {number}"
        return f"{noun} {number}" if among == _ALL else f"number {number} of {among.replace(noun, nouns)}"

    return 2, say


def _position(number: str) -> str:
    return {"-1": "the right end"}.get(number, f"position {number}" if number.isdigit() else number)


def _constants(tokens: str) -> dict[str, Rule]:
    return {token: (0, lambda token=token: token) for token in tokens.split()}


def _colours(names: Mapping[str, str]) -> dict[str, Rule]:
    return {letter: (0, lambda name=name: name) for letter, name in names.items()}


def _language(noun: str, nouns: str, numbers: int, recalled: int, own: Mapping[str, Rule]) -> dict[str, Rule]:
    """The tokens that all domains share, H1 up to that of `recalled`, and a domain's own."""
    return {
        **_constants(" ".join(map(str, range(1, numbers + 1))) + " -1"),
        "all-objects": (0, lambda: _ALL),
        "index": _index(noun, nouns),
        "H0": (1, str),
        **{f"H{place}": (1, lambda number, place=place: _argument(number, place)) for place in range(1, recalled + 1)},
        **own,
    }


def _hat(colour: str) -> str:
    return "no hat" if colour == "no" else f"{'an' if colour == 'orange' else 'a'} {colour} hat"


def _create(position: str, shirt: str, hat: str) -> str:
    return f"a person in {shirt} with {_hat(hat)} comes to {_position(position)}"


_PAPER: Mapping[str, Mapping[str, Rule]] = {
    "scene": _language(
        "person",
        "people",
        10,
        3,
        {
            **_colours(NAMES | {"e": "no"}),
            "PShirt": (1, lambda shirt: f"the person in {shirt}"),
            "PHat": (1, lambda hat: f"the person with {_hat(hat)}"),
            "DShirtHat": (2, lambda shirt, hat: f"the person in {shirt} with {_hat(hat)}"),
            "PLeft": (1, lambda person: f"the place left of {person}"),
            "PRight": (1, lambda person: f"the place right of {person}"),
            "ALeave": (1, lambda person: f"{person} leaves"),
            "ASwapHats": (2, lambda one, other: f"{one} and {other} swap hats"),
            "AMove": (2, lambda person, position: f"{person} moves to {_position(position)}"),
            "ACreate": (3, _create),
        },
    ),
    "alchemy": _language(
        "beaker",
        "beakers",
        7,
        2,
        {
            **_colours(ALCHEMY_NAMES),
            "X1/1": (0, lambda: "all"),
            "PColor": (1, lambda colour: f"the {colour} beaker"),
            "APour": (2, lambda origin, destination: f"pour {origin} into {destination}"),
            "AMix": (1, lambda beaker: f"mix {beaker}"),
            "ADrain": (2, lambda beaker, amount: f"drain {amount} of {beaker}"),
        },
    ),
    "tangrams": _language(
        "shape",
        "shapes",
        5,
        2,
        {
            "AAdd": (2, lambda position, shape: f"put {shape} at {_position(position)}"),
            "ASwap": (2, lambda one, other: f"swap {one} and {other}"),
            "ARemove": (1, lambda shape: f"remove {shape}"),
        },
    ),
}
_POSITIONS: Mapping[str, Rule] = {
    f"W{place}": (1, lambda number, place=place: f"the place where {_argument(number, place)} was") for place in (1, 2)
}
RULES: Mapping[str, Mapping[str, Rule]] = {
    **_PAPER,
    "scene-where": {**_PAPER["scene"], **_POSITIONS},
    "alchemy-where": _PAPER["alchemy"],
    "tangrams-where": {**_PAPER["tangrams"], **_POSITIONS},
}
