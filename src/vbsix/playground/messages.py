"""The JSON that the playground's API takes and gives."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from vbsix.playground.searching import MOST_UTTERANCES as MOST_SEARCHED
from vbsix.show.inspection import SeenIteration, SeenState, SeenTransition

MOST_UTTERANCES = 10
READINGS = 8
Beam = Literal[4, 16, 64]

ModelName = Annotated[str, Field(max_length=200, description="One of those that /api/models lists.")]
World = Annotated[str, Field(max_length=4000, description="A world in the data's text form.", examples=["1:0 2:3 3:4"])]
Command = Annotated[str, Field(max_length=300, description="Tokens with spaces between them.")]
Utterance = Annotated[str, Field(min_length=1, max_length=300, examples=["remove the second shape"])]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class ParseRequest(_Strict):
    model: ModelName
    world: World
    utterances: list[Utterance] = Field(
        max_length=MOST_UTTERANCES, description="The instructions in order; with none, the world is drawn."
    )
    begin: list[Command] = Field(
        default=[], max_length=MOST_UTTERANCES, description="Commands chosen before: all readings begin with them."
    )


class SearchRequest(_Strict):
    model: ModelName
    world: World
    target: World
    utterances: list[Utterance] = Field(min_length=1, max_length=MOST_SEARCHED)
    beam: Annotated[Beam, Field(description="How many states each iteration keeps.")] = 16
    critic: Annotated[bool, Field(description="Whether the model's critic ranks, if it has one.")] = True


class _Answer(BaseModel):
    model_config = ConfigDict(use_attribute_docstrings=True)


class ModelInfo(_Answer):
    name: str
    domain: str
    critic: bool
    """Whether it has one."""
    examples: bool
    """Whether there are random worlds of its domain."""
    provenance: dict[str, str | int | float]
    """Method, steps, seed, name of the data and version that the model comes from."""


class Models(_Answer):
    models: list[ModelInfo]


class RandomExample(_Answer):
    world: World
    utterances: list[str]
    target: str


class CommandRead(_Answer):
    tokens: list[str]
    words: str | None
    """The same in words; none in domains of one's own."""
    probability: float
    """Given the commands before."""
    world: str
    """After the command."""


class ReadingFound(_Answer):
    commands: list[CommandRead]
    probability: float
    confidence: float
    """The probability of its last world, divided by that of all readings that the beam found."""
    share: float
    """Its own probability, divided by that of all complete programs in the beam."""


class ParseAnswer(_Answer):
    readings: list[ReadingFound]
    """The most probable first; none if there are no utterances, or the beam found no program."""
    unknown_words: list[str]
    unread_words: list[str]
    pictures: dict[str, str]
    """Each world of the answer as SVG, or as HTML text in domains of one's own."""


class ProgramFound(_Answer):
    tokens: list[str]
    log_probability: float


class SpaceSearched(_Answer):
    programs: list[ProgramFound]
    iterations: list[SeenIteration]
    states: list[SeenState]
    """All that were kept or are terminal, and the most probable that were dropped."""
    transitions: list[SeenTransition]
    left_out: int
    """How many states are not given."""
    drawing: str
    """The most telling states, as SVG."""


class SearchAnswer(_Answer):
    execution: SpaceSearched
    program: SpaceSearched
    pictures: dict[str, str]
    """Each world of the answer, as parses have them."""


class Problem(_Answer):
    detail: str
    """What is wrong, for a person."""
