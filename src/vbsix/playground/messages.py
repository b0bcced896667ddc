"""The JSON that the playground's API takes and gives."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import AliasChoices, BaseModel, ConfigDict, Field, model_validator

from vbsix.playground.searching import MOST_UTTERANCES as MOST_SEARCHED
from vbsix.show.inspection import SeenIteration, SeenState, SeenTransition
from vbsix.utilities.renaming import note_old_fields

MOST_UTTERANCES = 10
READINGS = 8
Beam = Literal[4, 16, 64]

ModelName = Annotated[str, Field(max_length=200, description="One of those that /api/models lists.")]
World = Annotated[str, Field(max_length=4000, description="A world in the data's text form.", examples=["1:0 2:3 3:4"])]
Command = Annotated[str, Field(max_length=300, description="Tokens with spaces between them.")]
Utterance = Annotated[str, Field(min_length=1, max_length=300, examples=["remove the second shape"])]


CONTEXT = AliasChoices("context", "world")
INSTRUCTIONS = AliasChoices("instructions", "utterances")
"""The names in requests, and the old ones, which are accepted too."""


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    @model_validator(mode="before")
    @classmethod
    def _note_old_fields(cls, given: Any) -> Any:
        if isinstance(given, dict):
            note_old_fields(given)
        return given


class ParseRequest(_Strict):
    model: ModelName
    world: World = Field(validation_alias=CONTEXT)
    utterances: list[Utterance] = Field(
        validation_alias=INSTRUCTIONS,
        max_length=MOST_UTTERANCES,
        description="The instructions in order; with none, the world is drawn.",
    )
    begin: list[Command] = Field(
        default=[], max_length=MOST_UTTERANCES, description="Commands chosen before: all readings begin with them."
    )
    explain: bool = Field(
        default=True, description="Whether to look further for instructions that cannot be done, which takes longer."
    )


class SearchRequest(_Strict):
    model: ModelName
    world: World = Field(validation_alias=CONTEXT)
    target: World
    utterances: list[Utterance] = Field(min_length=1, max_length=MOST_SEARCHED, validation_alias=INSTRUCTIONS)
    beam: Annotated[Beam, Field(description="How many states each iteration keeps.")] = 16
    critic: Annotated[bool, Field(description="Whether the model's critic ranks, if it has one.")] = True


class AttentionRequest(_Strict):
    model: ModelName
    world: World = Field(validation_alias=CONTEXT)
    utterances: list[Utterance] = Field(min_length=1, max_length=MOST_UTTERANCES, validation_alias=INSTRUCTIONS)
    commands: list[Command] = Field(
        max_length=MOST_UTTERANCES,
        description="A command for each instruction.",
        examples=[["all-objects 2 index ARemove"]],
    )


class FeedbackRequest(_Strict):
    model: ModelName
    world: World = Field(validation_alias=CONTEXT)
    utterances: list[Utterance] = Field(min_length=1, max_length=MOST_UTTERANCES, validation_alias=INSTRUCTIONS)
    target: Annotated[World, Field(description="The world that should have come out.")]


class _Answer(BaseModel):
    model_config = ConfigDict(use_attribute_docstrings=True)


class KnownExample(_Answer):
    title: str
    world: str
    utterances: list[str]
    target: str
    """The world that the instructions lead to."""


class GuidedSearch(_Answer):
    title: str
    world: str
    utterances: list[str]
    target: str
    beam: Beam
    look: str
    """What to look at."""


class ModelInfo(_Answer):
    name: str
    domain: str
    critic: bool
    """Whether it has one."""
    attention: bool
    """Whether it says which words it attends to."""
    examples: list[KnownExample]
    """Instructions whose outcome is known."""
    guided: list[GuidedSearch]
    """Searches that show what merging, or the critic, is for."""
    random: bool
    """Whether there are random worlds of its domain."""
    ready: bool
    """Whether what parses need is compiled; before that, requests are answered with status 503."""
    accuracy: dict[str, float]
    """The share of right outcomes, by number of instructions."""
    accuracy_split: str
    """The split that this was measured on, such as test; on dev, seed and step may have been chosen, too."""
    provenance: dict[str, str | int | float]
    """Method, steps, seed, name of the data and version that the model comes from."""


class Models(_Answer):
    models: list[ModelInfo]
    preparing: str | None
    """What the server is preparing, and for how long; none once everything is ready."""
    feedback: bool
    """Whether corrections are saved."""


class RandomWorld(_Answer):
    world: World


class CommandRead(_Answer):
    tokens: list[str]
    words: str | None
    """What it does, in words; none in domains of one's own."""
    confidence: float
    """How probable it is that the command is right, given those before."""
    doubtful: bool
    """Whether it is too improbable, or its instruction has too many rare or unknown words, to count as understood; or
    it leaves out how its instruction describes somebody who comes."""
    world: str
    """After the command."""


class ReadingFound(_Answer):
    commands: list[CommandRead]
    probability: float
    """Of the program, as the policy has it."""
    confidence: float
    """How probable it is that its last world is right, calibrated on dev."""


class OutcomeFound(_Answer):
    world: str
    confidence: float
    readings: list[int]
    """The places of the readings that end in this world, the most probable first."""


class ParseAnswer(_Answer):
    readings: list[ReadingFound]
    """The most probable first; none if there are no utterances, or the beam found no program."""
    outcomes: list[OutcomeFound]
    """The readings grouped by their last world."""
    understood: bool
    """Whether no command of the first reading is doubtful, and no instruction is known to be impossible."""
    reasons: list[str | None]
    """For each instruction why it cannot be done in its world; none where nothing says so."""
    unknown_words: list[str]
    unread_words: list[str]
    pictures: dict[str, str]
    """Each world of the answer as SVG, or as HTML text in domains of one's own."""


class TokenAttention(_Answer):
    token: str
    weights: list[float]
    """The attention to each word of the instruction when the token was chosen; the sum is 1."""


class AttentionAnswer(_Answer):
    commands: list[list[TokenAttention]]
    """The tokens of each command. Words that were not read have no weight."""


class Saved(_Answer):
    saved: int
    """How many corrections the file has now."""


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
