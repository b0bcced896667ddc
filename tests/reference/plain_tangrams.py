"""Tangrams as somebody without JAX would write it, over the plain-Python twin, and seen as the compiled one is."""

from __future__ import annotations

from reference.language import Language, Number, Object, Objects

SHAPES, SLOTS, OBJECTS = 5, 3, 7


class PlainTangrams:
    """What `PythonDomain` asks of a class."""

    name = "plain tangrams"
    max_tokens_per_instruction = 7
    slots, objects, elements, values = SLOTS, OBJECTS, SHAPES, SHAPES + 1
    attributes = {"position": SHAPES + 1, "shape": SHAPES}

    def __init__(self, instructions: int):
        self.language = Language("tangrams", instructions)
        self.tokens = tuple(self.language.tokens)

    def start(self, context):
        return self.language.start(context)

    def step(self, state, token):
        return self.language.step(state, token)

    def instructions_done(self, state):
        return len(state.history)

    def denotation(self, state):
        return self.language.world_text(state)

    def observe(self, state):
        slots = [self.observe_element(state.world, element) for element in reversed(state.stack)]
        slots += [(0, [[0, 0]] * OBJECTS)] * (SLOTS - len(slots))
        return [value for value, _ in slots], [things for _, things in slots]

    def observe_element(self, world, element):
        things = []
        if isinstance(element, Object):
            things = [self.thing(world, element.identity)]
        elif isinstance(element, Objects):
            things = [self.thing(world, identity) for identity in element.identities]
        number = max(element.value, 0) + 1 if isinstance(element, Number) else 0
        return number, things + [[0, 0]] * (OBJECTS - len(things))

    def thing(self, world, shape):
        return [world.index(shape) + 2 if shape in world else 1, shape + 1]

    def observe_world(self, state):
        row = [self.thing(state.world, shape) for shape in state.world]
        return row + [[0, 0]] * (SHAPES - len(row))

    def observe_target(self, target):
        return self.observe_world(self.language.start(target))
