"""The language of scene, alchemy and tangrams in plain Python: slow, short, and to be read as its specification.

A state is immutable, hashable and equal to another exactly if both are the same MDP state. Objects are kept by
identity: a person by a hidden number, a beaker by its position, a shape by its id. An object on the stack that is no
longer in the world is gone; nothing else has to be remembered about it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

STACK_LIMIT = 3
STAGE = 10
BEAKERS = 7
BEAKER_CAPACITY = 4
SHAPES = 5
PEOPLE = 256
"""How many people a history with positions tells apart."""
NO_HAT = "e"
BROWN = "b"


@dataclass(frozen=True)
class Color:
    """A colour constant."""

    name: str


@dataclass(frozen=True)
class Number:
    """A number; -1 stands for the last one where that has a meaning."""

    value: int


@dataclass(frozen=True)
class Fraction:
    """The fraction X1/1: all of it."""


@dataclass(frozen=True)
class Object:
    """One object, in the world or gone."""

    identity: int


@dataclass(frozen=True)
class Objects:
    """A list of objects of the current world, in order of position, never empty."""

    identities: tuple[int, ...]


Element = Color | Number | Fraction | Object | Objects


@dataclass(frozen=True)
class Command:
    """An entry of the history: what was done to which objects, numbers resolved."""

    action: str
    arguments: tuple[Element, ...]
    positions: tuple[int | None, ...] = ()
    """Where the arguments that are objects were; nothing in a language that does not remember it."""


@dataclass(frozen=True)
class State:
    """The state of the executor; the utterance index is the number of commands in the history."""

    world: tuple[Any, ...]
    stack: tuple[Element, ...] = ()
    history: tuple[Command, ...] = ()


class Invalid(Exception):
    """The token is invalid in this state."""


def require(condition: bool) -> None:
    """Makes the token invalid unless the condition holds."""
    if not condition:
        raise Invalid


def pop(stack: list[Element], kind: type[Any]) -> Any:
    """Takes the top of the stack, which must be of the given kind."""
    require(bool(stack) and isinstance(stack[-1], kind))
    return stack.pop()


def resolve(number: int, last: int) -> int:
    """A 1-based place among `last`, where -1 means the last one."""
    place = last if number == -1 else number
    require(1 <= place <= last)
    return place


def elements_of(text: str) -> list[str]:
    """The contents of a world's positions: `1:a 2:b` gives `a`, `b`."""
    return [element.partition(":")[2] for element in text.split()]


def numbered(contents: list[str]) -> str:
    """A world's text from the contents of its positions."""
    return " ".join(f"{position}:{content}" for position, content in enumerate(contents, 1))


class Rules:
    """What differs from domain to domain: the world, the constants, the properties and the actions."""

    colors: str
    numbers: int
    other_constants: dict[str, Element] = {}
    history_tokens: int
    position_tokens: int = 0

    properties: dict[str, Callable[..., Element]]
    """For each token, `(world, stack) -> element to push`, popping from the stack what it needs."""
    actions: dict[str, Callable[..., tuple[tuple[Any, ...], tuple[Element, ...]]]]
    """For each token, `(state, stack) -> (new world, arguments for the history)`, popping from the stack."""

    def parse(self, text: str) -> tuple[Any, ...]:
        """A world from its text form."""
        raise NotImplementedError

    def format(self, world: tuple[Any, ...]) -> str:
        """The text form of a world."""
        raise NotImplementedError

    def objects(self, world: tuple[Any, ...]) -> dict[int, int]:
        """The identity of every object in the world, in order of position, with its position."""
        raise NotImplementedError

    def listed(self, identities: list[int]) -> Objects:
        """A list of objects to push."""
        require(bool(identities))
        return Objects(tuple(identities))

    def pop_object(self, world: tuple[Any, ...], stack: list[Element]) -> int:
        """Pops one object that is in the world, given as an object or as a list of one; its identity."""
        element = pop(stack, Object | Objects)
        if isinstance(element, Objects):
            require(len(element.identities) == 1)
            return element.identities[0]
        require(element.identity in self.objects(world))
        return element.identity


@dataclass(frozen=True)
class Person:
    """Somebody on the stage; the hat is `e` for a bare head."""

    identity: int
    shirt: str
    hat: str


class Scene(Rules):
    """A stage of ten positions, each with a person or None."""

    colors = "rygopb" + NO_HAT
    numbers = STAGE
    history_tokens = 4

    def __init__(self) -> None:
        self.properties = {
            "PShirt": self.by_shirt,
            "PHat": self.by_hat,
            "PLeft": lambda world, stack: self.beside(world, stack, -1),
            "PRight": lambda world, stack: self.beside(world, stack, +1),
            "DShirtHat": self.by_shirt_and_hat,
        }
        self.actions = {
            "ALeave": self.leave,
            "ASwapHats": self.swap_hats,
            "AMove": self.move,
            "ACreate": self.create,
        }

    def parse(self, text: str) -> tuple[Person | None, ...]:
        stage: list[Person | None] = []
        people = 0
        for shirt, hat in elements_of(text):
            stage.append(None if shirt == "_" else Person(people, shirt, NO_HAT if hat == "_" else hat))
            people += shirt != "_"
        return tuple(stage)

    def format(self, world: tuple[Person | None, ...]) -> str:
        return numbered([(p.shirt + p.hat.replace(NO_HAT, "_")) if p else "__" for p in world])

    def objects(self, world: tuple[Person | None, ...]) -> dict[int, int]:
        return {person.identity: position for position, person in enumerate(world, 1) if person}

    def by_shirt(self, world, stack):
        shirt = pop(stack, Color).name
        return self.listed([p.identity for p in world if p and p.shirt == shirt])

    def by_hat(self, world, stack):
        hat = pop(stack, Color).name
        return self.listed([p.identity for p in world if p and p.hat == hat])

    def by_shirt_and_hat(self, world, stack):
        hat = pop(stack, Color).name
        shirt = pop(stack, Color).name
        return self.listed([p.identity for p in world if p and (p.shirt, p.hat) == (shirt, hat)])

    def beside(self, world, stack, distance):
        position = self.objects(world)[self.pop_object(world, stack)] + distance
        require(1 <= position <= STAGE)
        return Number(position)

    def leave(self, state, stack):
        who = self.pop_object(state.world, stack)
        return self.put(state.world, {self.objects(state.world)[who]: None}), (Object(who),)

    def swap_hats(self, state, stack):
        world = state.world
        second = self.pop_object(world, stack)
        first = self.pop_object(world, stack)
        require(first != second)
        places = self.objects(world)
        one, other = world[places[first] - 1], world[places[second] - 1]
        swapped = {places[first]: replace(one, hat=other.hat), places[second]: replace(other, hat=one.hat)}
        return self.put(world, swapped), (Object(second), Object(first))

    def move(self, state, stack):
        world = state.world
        position = self.pop_free_position(world, stack)
        who = self.pop_object(world, stack)
        old = self.objects(world)[who]
        return self.put(world, {old: None, position: world[old - 1]}), (Object(who), Number(position))

    def create(self, state, stack):
        hat = pop(stack, Color).name
        shirt = pop(stack, Color).name
        require(shirt != NO_HAT)
        position = self.pop_free_position(state.world, stack)
        person = Person(self.new_identity(state), shirt, hat)
        require(person.identity < PEOPLE or not self.position_tokens)
        return self.put(state.world, {position: person}), (Object(person.identity),)

    def pop_free_position(self, world, stack) -> int:
        """Pops the number of an empty position; -1 is the right end of the stage."""
        position = resolve(pop(stack, Number).value, STAGE)
        require(world[position - 1] is None)
        return position

    def new_identity(self, state) -> int:
        """The next number: whoever was here before is on the stage or, having left, in the history."""
        known = [p.identity for p in state.world if p]
        known += [argument.identity for c in state.history for argument in c.arguments if isinstance(argument, Object)]
        return max(known, default=-1) + 1

    def put(self, world, changes):
        """The world with other contents in some positions."""
        return tuple(changes.get(position, person) for position, person in enumerate(world, 1))


class Alchemy(Rules):
    """Seven beakers, each a string of units, the last one on the right."""

    colors = "rygopb"
    numbers = BEAKERS
    other_constants = {"X1/1": Fraction()}
    history_tokens = 3
    keeps_all = False
    """Whether the history keeps "all of it" as such."""

    def __init__(self) -> None:
        self.properties = {"PColor": self.by_color}
        self.actions = {"APour": self.pour, "AMix": self.mix, "ADrain": self.drain}

    def parse(self, text: str) -> tuple[str, ...]:
        return tuple(content.replace("_", "") for content in elements_of(text))

    def format(self, world: tuple[str, ...]) -> str:
        return numbered([units or "_" for units in world])

    def objects(self, world: tuple[str, ...]) -> dict[int, int]:
        return {position: position for position in range(1, BEAKERS + 1)}

    def by_color(self, world, stack):
        color = pop(stack, Color).name
        return self.listed([beaker for beaker, units in enumerate(world, 1) if set(units) == {color}])

    def pour(self, state, stack):
        world = state.world
        target = self.pop_object(world, stack)
        source = self.pop_object(world, stack)
        require(source != target)
        poured = world[source - 1]
        require(len(set(poured)) == 1)
        units = world[target - 1] + poured
        require(len(units) <= BEAKER_CAPACITY)
        return self.fill(world, {source: "", target: units}), (Object(source), Object(target))

    def mix(self, state, stack):
        beaker = self.pop_object(state.world, stack)
        units = state.world[beaker - 1]
        require(len(set(units)) > 1)
        return self.fill(state.world, {beaker: BROWN * len(units)}), (Object(beaker),)

    def drain(self, state, stack):
        amount = pop(stack, Number | Fraction)
        beaker = self.pop_object(state.world, stack)
        units = state.world[beaker - 1]
        count = len(units) if isinstance(amount, Fraction) else amount.value
        require(1 <= count <= len(units))
        recorded = amount if self.keeps_all and isinstance(amount, Fraction) else Number(count)
        return self.fill(state.world, {beaker: units[: len(units) - count]}), (Object(beaker), recorded)

    def fill(self, world, changes):
        """The world with other contents in some beakers."""
        return tuple(changes.get(beaker, units) for beaker, units in enumerate(world, 1))


class Tangrams(Rules):
    """A row of different shapes."""

    colors = ""
    numbers = SHAPES
    history_tokens = 3

    def __init__(self) -> None:
        self.properties = {}
        self.actions = {"AAdd": self.add, "ASwap": self.swap, "ARemove": self.remove}

    def parse(self, text: str) -> tuple[int, ...]:
        return tuple(int(shape) for shape in elements_of(text))

    def format(self, world: tuple[int, ...]) -> str:
        return numbered([str(shape) for shape in world])

    def objects(self, world: tuple[int, ...]) -> dict[int, int]:
        return {shape: position for position, shape in enumerate(world, 1)}

    def add(self, state, stack):
        row = state.world
        shape = pop(stack, Object).identity
        require(shape not in row)
        position = resolve(pop(stack, Number).value, len(row) + 1)
        return (*row[: position - 1], shape, *row[position - 1 :]), (Number(position), Object(shape))

    def swap(self, state, stack):
        row = state.world
        second = self.pop_object(row, stack)
        first = self.pop_object(row, stack)
        require(first != second)
        other = {first: second, second: first}
        return tuple(other.get(shape, shape) for shape in row), (Object(second), Object(first))

    def remove(self, state, stack):
        gone = self.pop_object(state.world, stack)
        return tuple(shape for shape in state.world if shape != gone), (Object(gone),)


class SceneWhere(Scene):
    """Scene that remembers where people were."""

    position_tokens = 2


class AlchemyWhere(Alchemy):
    """Alchemy that remembers that all was drained."""

    keeps_all = True


class TangramsWhere(Tangrams):
    """Tangrams that remembers where shapes were."""

    position_tokens = 2


RULES: dict[str, type[Rules]] = {
    "scene": Scene,
    "alchemy": Alchemy,
    "tangrams": Tangrams,
    "scene-where": SceneWhere,
    "alchemy-where": AlchemyWhere,
    "tangrams-where": TangramsWhere,
}


class Language:
    """A domain's language.

    Args:
        domain: a key of `RULES`.
        instructions: no token is valid once this many commands are done; None for no such limit.
    """

    def __init__(self, domain: str, instructions: int | None = None):
        self.rules = RULES[domain]()
        self.instructions = instructions
        self.constants: dict[str, Element] = {
            **{color: Color(color) for color in self.rules.colors},
            **{str(number): Number(number) for number in (*range(1, self.rules.numbers + 1), -1)},
            **self.rules.other_constants,
        }
        self.history_tokens = tuple(f"H{j}" for j in range(self.rules.history_tokens))
        self.tokens = (
            *self.constants,
            "all-objects",
            "index",
            *self.rules.properties,
            *self.rules.actions,
            *self.history_tokens,
            *(f"W{j}" for j in range(1, self.rules.position_tokens + 1)),
        )

    def start(self, world: str) -> State:
        """The state before the first token."""
        return State(self.rules.parse(world))

    def step(self, state: State, token: str) -> State | None:
        """The state after one more token, or None if the token is invalid here."""
        try:
            return self.successor(state, token)
        except Invalid:
            return None

    def commands(self, state: State) -> int:
        """How many commands are done."""
        return len(state.history)

    def world_text(self, state: State) -> str:
        """The world in the data's own text form."""
        return self.rules.format(state.world)

    def stack_texts(self, state: State) -> list[str]:
        """The stack's elements as texts, bottom first."""
        return [self.text_of(element, self.rules.objects(state.world)) for element in state.stack]

    def successor(self, state: State, token: str) -> State:
        """As `step`, but raises `Invalid`."""
        require(token in self.tokens)
        require(self.commands(state) != self.instructions)
        stack = list(state.stack)
        if token in self.rules.actions:
            return self.run(token, state, stack)
        if token == "H0":
            return self.run(self.pop_command(state, stack).action, state, stack)
        stack.append(self.pushed(state, token, stack))
        require(len(stack) <= STACK_LIMIT)
        return replace(state, stack=tuple(stack))

    def pushed(self, state: State, token: str, stack: list[Element]) -> Element:
        """What a token that is not an action pushes, after popping from the stack what it needs."""
        if token in self.constants:
            return self.constants[token]
        if token == "all-objects":
            return self.rules.listed(list(self.rules.objects(state.world)))
        if token == "index":
            number = pop(stack, Number).value
            identities = pop(stack, Objects).identities
            return Object(identities[resolve(number, len(identities)) - 1])
        if token in self.rules.properties:
            return self.rules.properties[token](state.world, stack)
        command = self.pop_command(state, stack)
        argument = int(token[1:])
        require(argument <= len(command.arguments))
        if token.startswith("H"):
            return command.arguments[argument - 1]
        position = command.positions[argument - 1]
        require(position is not None)
        return Number(position)

    def pop_command(self, state: State, stack: list[Element]) -> Command:
        """Pops a number n and gives the n-th command of the history."""
        return state.history[resolve(pop(stack, Number).value, len(state.history)) - 1]

    def run(self, action: str, state: State, stack: list[Element]) -> State:
        """The state after a command, which must use up the whole stack."""
        world, arguments = self.rules.actions[action](state, stack)
        require(not stack)
        positions = self.positions(state.world, world, arguments) if self.rules.position_tokens else ()
        return State(world, (), (*state.history, Command(action, arguments, positions)))

    def positions(self, before: Any, after: Any, arguments: tuple[Element, ...]) -> tuple[int | None, ...]:
        """Where each argument that is an object was before a command; where it is after it, if it was not there."""
        places = {**self.rules.objects(after), **self.rules.objects(before)}
        return tuple(places[argument.identity] if isinstance(argument, Object) else None for argument in arguments)

    def text_of(self, element: Element, positions: dict[int, int]) -> str:
        """An element's text: objects by their position now, or by identity if they are gone."""
        match element:
            case Color(name):
                return f"color:{name}"
            case Number(value):
                return f"number:{value}"
            case Fraction():
                return "fraction:X1/1"
            case Objects(identities):
                return f"list:[{','.join(str(positions[identity]) for identity in identities)}]"
            case Object(identity):
                return f"object:{positions[identity]}" if identity in positions else f"gone:{identity}"
