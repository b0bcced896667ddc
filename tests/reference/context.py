"""What a policy with context sees, read off a walk through the plain language: a list of its states from the first."""

from __future__ import annotations

from typing import Any

from reference.language import Alchemy, Number, Object, Rules, Scene, State, Tangrams

COLOURS = {Scene: "rygopbe", Alchemy: "rygopb"}
SEEN = 4


def command_fields(rules: Rules, walk: list[State]) -> list[list[int]]:
    """The fields of the last commands, the newest first, zeros where there is none."""
    done = len(walk[-1].history)
    return [
        one_command(rules, walk, number) if number >= 0 else nothing(rules)
        for number in range(done - 1, done - 1 - SEEN, -1)
    ]


def one_command(rules: Rules, walk: list[State], number: int) -> list[int]:
    before = [state for state in walk if len(state.history) == number][-1].world
    after = next(state for state in walk if len(state.history) == number + 1).world
    command = walk[-1].history[number]
    fields = [1 + list(rules.actions).index(command.action)]
    for place in range(2):
        argument = command.arguments[place] if place < len(command.arguments) else None
        if isinstance(argument, Number):
            fields += [argument.value, 0, *[0] * attributes(rules)]
        elif isinstance(argument, Object):
            was = rules.objects(before).get(argument.identity)
            then = was or rules.objects(after)[argument.identity]
            fields += [0, then, *looks(rules, walk[-1].world, argument.identity)]
        else:
            fields += [0, 0, *[0] * attributes(rules)]
    return fields


def nothing(rules: Rules) -> list[int]:
    return [0] * (1 + 2 * (2 + attributes(rules)))


def attributes(rules: Rules) -> int:
    return 2 if isinstance(rules, Tangrams) else 3


def looks(rules: Rules, world: tuple[Any, ...], identity: int) -> list[int]:
    """The attribute ids of an object as it is now; position 1 stands for one that has left."""
    position = rules.objects(world).get(identity)
    if isinstance(rules, Tangrams):
        return [1 if position is None else position + 1, identity + 1]
    if isinstance(rules, Alchemy):
        units = world[identity - 1]
        colour = 1 + COLOURS[Alchemy].index(units[0]) if len(set(units)) == 1 else 1 + len(COLOURS[Alchemy])
        return [identity, colour, len(units) + 1]
    if position is None:
        return [1, 0, 0]
    person = world[position - 1]
    return [position + 1, *(1 + COLOURS[Scene].index(colour) for colour in (person.shirt, person.hat))]


def places_then(rules: Rules, walk: list[State]) -> list[list[int]]:
    """Where the arguments of each command were, which states with context are told apart by."""
    commands = [one_command(rules, walk, number) for number in range(len(walk[-1].history))]
    return [[fields[2], fields[4 + attributes(rules)]] for fields in commands]
