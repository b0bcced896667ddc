"""All settings of a run in one frozen record, and how values are checked."""

from __future__ import annotations

import dataclasses
import functools
import json
import math
import typing
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any, Literal

from vbsix.data.config import DataConfig
from vbsix.models.config import NetworkConfig
from vbsix.search.config import SearchConfig
from vbsix.utilities.errors import VbsixError
from vbsix.utilities.registry import Registry
from vbsix.utilities.settings import Bounds, setting

OBJECTIVES = Registry(
    "objective",
    {
        "mml": "vbsix.training.objectives:MML",
        "expert-mml": "vbsix.training.objectives:EXPERT_MML",
        "reinforce": "vbsix.training.objectives:REINFORCE",
    },
)
"""Objectives by name; see `vbsix.training.objective.Objective`."""


@dataclass(frozen=True)
class TrainingConfig:
    """How the networks are trained. The defaults are VBSiX with our recipe."""

    objective: str = setting(
        "mml",
        "`mml`: marginal likelihood of the correct programs that search finds. `expert-mml`: the same, but a second "
        "policy, which sees the target, finds the programs. `reinforce`: expected reward of sampled programs.",
        choices=OBJECTIVES,
    )
    critic: bool = setting(
        True, "Train a critic (value network), which ranks states from step `value_ranking_start` on."
    )
    programs: Literal["extracted", "graph"] = setting(
        "graph",
        "What the policy learns from. `extracted`: programs extracted from the search graph (the paper). `graph`: all "
        "correct paths of the search graph, summed by dynamic programming (forward-backward).",
    )
    labels: Literal["paper", "graph"] = setting(
        "graph",
        "The critic's labels. `paper`: states on extracted correct programs and on `search.negatives`, labelled as in "
        "the paper's Algorithm 2. `graph`: all states of the beams that are in the critic's window, labelled with the "
        "probability of reaching the target, summed over all correct paths through the beams.",
    )
    critic_updates: Literal["always", "with-hits"] = setting(
        "with-hits",
        "Whether the critic is updated on every batch (the paper's Algorithm 2) or only, like the policy, on batches "
        "in which a search found a correct program.",
    )
    steps: int = setting(20000, "Number of parameter updates.", least=1)
    curriculum_steps: int = setting(
        0,
        "Steps at the start that train only on the shortest examples: those with the fewest instructions. If they are "
        "less than a tenth of all, the next longer ones are added until they are a tenth.",
        least=0,
        input_of="step",
    )
    batch: int = setting(8, "Examples per update.", least=1)
    learning_rate: float = setting(0.001, "Learning rate of Adam.", least=0, input_of="step")
    decay_share: float = setting(
        0.0,
        "Share of all steps, at the end, over which the learning rate falls to 0.",
        least=0,
        most=1,
        input_of="step",
    )
    averaging: float = setting(
        0.0,
        "Weight averaging: a running average of the policy's parameters is evaluated, exported, and continued by later "
        "stages and by `--from`. Searches and updates of the run use the policy itself. 0 turns it off. Between 0 and "
        "1: after each step, the average moves towards the policy by 1 minus this, so that 0.999 averages about 1,000 "
        "steps. 1 is a special case: the mean of all steps of the run or stage.",
        least=0,
        most=1,
        input_of="step",
    )
    dropout: float = setting(
        0.0, "Dropout on word vectors and on the policy's utterance encodings.", least=0, below=1, input_of="step"
    )
    word_dropout: float = setting(
        0.0, "Share of words that are read as unknown words in training.", least=0, below=1, input_of="step"
    )
    context_dropout: float = setting(
        0.0,
        "Share of examples whose context a policy with `network.context` does not see in training.",
        least=0,
        below=1,
        input_of="step",
    )
    symmetry: bool = setting(
        False,
        "Permute the interchangeable constants that the domain declares, such as colours, in words, world and target; "
        "a random permutation for each example of each step.",
    )
    value_ranking_start: int = setting(5000, "Step from which the critic ranks.", least=0, input_of="step")
    policy_states: int = setting(
        256, "Limit on the states per example on which the policy is updated in one step.", least=1
    )
    value_states: int = setting(
        512, "Limit on the states per example on which the critic is updated in one step.", least=1
    )
    beta: float = setting(
        1.0,
        "Each correct program is weighted by its probability to this power (Guu et al. 2017). 0: all count the same. "
        "1: in proportion to probability, as in MML. Above 1: the most probable program counts for more than in MML.",
        least=0,
        input_of="step",
    )
    beta_steps: int = setting(
        0,
        "Steps at the start over which the power rises from 0 to `beta`: all correct programs count the same at "
        "first, so that none is preferred only because it was found first.",
        least=0,
        input_of="step",
    )
    length_penalty: float = setting(
        0.0,
        "A preference for short programs: each token of a correct program divides its weight by e to this power. Only "
        'with `training.programs="graph"`.',
        least=0,
        input_of="step",
    )
    samples: int = setting(32, "REINFORCE: programs sampled for each example.", least=1)
    sample_epsilon: float = setting(
        0.2,
        "REINFORCE: weight of the uniform distribution over valid tokens, mixed into the policy for sampling.",
        least=0,
        below=1,
        input_of="step",
    )
    sample_gradient: Literal["mixture", "policy"] = setting(
        "mixture",
        "REINFORCE: which distribution is differentiated. `mixture`: the one that was sampled from. `policy`: the "
        "policy over all tokens, without unfinished samples, as in Guu et al.'s code.",
    )
    baseline: float = setting(1e-3, "REINFORCE: constant that is subtracted from the reward.", least=0, input_of="step")


@dataclass(frozen=True)
class RunConfig:
    """How a run is logged, saved and evaluated. Nothing here changes how parameters are trained."""

    chunk: int = setting(
        50,
        "Steps compiled into one call; on a CPU, values above 5 count as 5. Ctrl-C takes effect between calls.",
        least=1,
    )
    log_every: int = setting(100, "Steps that a line of metrics covers.", least=1)
    evaluate_every: int = setting(
        2500, "Steps between evaluations. Only an evaluated step can be chosen as the best on dev.", least=1
    )
    checkpoint_every: int = setting(1000, "Steps between checkpoints.", least=1)
    evaluation_beam: int = setting(
        32, "Beam of the search that predicts. It changes predictions, not training.", least=1
    )
    evaluation_batch: int = setting(64, "Examples predicted in one call.", least=1)


@dataclass(frozen=True)
class Config:
    """All settings of a run, and the names of what they were made from."""

    domain: str = setting("tangrams", "The name of a domain.")
    method: str = setting("vbsix", "The method: the learning algorithm.")
    recipe: str = setting("stochastic", "The recipe: how search explores, and what is learned from.")
    variant: str = setting("", "Named changes on top, joined by `+`.")
    data: DataConfig = field(default_factory=DataConfig)
    network: NetworkConfig = field(default_factory=NetworkConfig)
    search: SearchConfig = field(default_factory=SearchConfig)
    training: TrainingConfig = field(default_factory=TrainingConfig)
    run: RunConfig = field(default_factory=RunConfig)

    @property
    def name(self) -> str:
        """Method, recipe and variant as one word, such as `vbsix-stochastic-beam-64`; see also `presets.full_name`."""
        return "-".join(part for part in (self.method, self.recipe, self.variant) if part)


def override(config: Config, settings: Mapping[str, Any], *, registered: bool = True) -> Config:
    """The config with some settings replaced, named by dotted paths such as `search.beam`.

    Args:
        config: the config.
        settings: new values by name.
        registered: refuse the name of a part, such as an objective, that is not registered.
    """
    for name, value in settings.items():
        config = _replace(config, name, name.split("."), value, registered)
    return config


def require_sense(config: Config) -> Config:
    """The config, if its settings make sense together."""
    if config.training.critic and not OBJECTIVES.get(config.training.objective).critic:
        raise VbsixError(f"training.critic: the objective {config.training.objective} does not train a critic.")
    training = config.training
    if training.length_penalty and training.programs != "graph":
        raise VbsixError('training.length_penalty: has no effect on extracted programs; set training.programs="graph".')
    if training.context_dropout and not config.network.context:
        raise VbsixError("training.context_dropout: the policy sees no context; set network.context.")
    return config


def names(config: Any, prefix: str = "") -> list[str]:
    """Dotted paths of all settings."""
    found = []
    for entry in dataclasses.fields(config):
        value = getattr(config, entry.name)
        inner = dataclasses.is_dataclass(value)
        found += names(value, f"{prefix}{entry.name}.") if inner else [prefix + entry.name]
    return found


def flatten(tables: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """The values of nested tables by their dotted paths."""
    for name, value in tables.items():
        if isinstance(value, dict):
            yield from flatten(value, f"{prefix}{name}.")
        else:
            yield prefix + name, value


def flatten_json(tables: Mapping[str, Any]) -> dict[str, Any]:
    """Like `flatten`, with the values as JSON gives them back."""
    return dict(flatten(json.loads(json.dumps(tables))))


def to_settings(config: Config) -> dict[str, Any]:
    """All settings by their dotted paths."""
    return dict(flatten(dataclasses.asdict(config)))


def changes(base: Config, config: Config) -> dict[str, Any]:
    """The settings of a config that differ from those of another."""
    before = to_settings(base)
    return {name: value for name, value in to_settings(config).items() if value != before[name]}


def _replace(config: Any, name: str, path: list[str], value: Any, registered: bool) -> Any:
    """`name` is the whole path, for messages."""
    types = _type_hints(type(config))
    if path[0] not in types or dataclasses.is_dataclass(types[path[0]]) == (len(path) == 1):
        raise VbsixError(f"unknown setting {name!r}.{_nearest(name)} `vbsix config show` lists all of them.")
    if len(path) > 1:
        inner = _replace(getattr(config, path[0]), name, path[1:], value, registered)
        return dataclasses.replace(config, **{path[0]: inner})
    bounds = next(entry.metadata["bounds"] for entry in dataclasses.fields(config) if entry.name == path[0])
    return dataclasses.replace(config, **{path[0]: _check(name, value, types[path[0]], bounds, registered)})


def _nearest(name: str) -> str:
    """A hint at the setting that was meant, whose section may have been left out."""
    known = names(Config())
    by_last = {path.rpartition(".")[2]: path for path in known}
    nearest = get_close_matches(name, known, n=1)
    nearest = nearest or [by_last[last] for last in get_close_matches(name.rpartition(".")[2], by_last, n=1)]
    return f" Did you mean {nearest[0]!r}?" if nearest else ""


_type_hints = functools.cache(typing.get_type_hints)
_TYPES = {int: "a whole number", float: "a number", bool: "true or false", str: "a text"}


def _check(name: str, value: Any, wanted: Any, bounds: Bounds, registered: bool = True) -> Any:
    """The value as the type of its field. Raises an error that says what is wanted."""
    origin, arguments = typing.get_origin(wanted), typing.get_args(wanted)
    any_name = isinstance(bounds.choices, Registry) and not registered
    choices = arguments if origin is Literal else () if any_name else tuple(bounds.names)
    if choices:
        if value in choices:
            return value
        raise VbsixError(f"{name}: expected one of {', '.join(map(repr, choices))}, not {value!r}.")
    if origin is tuple:
        if isinstance(value, list | tuple) and value:
            return tuple(_check(name, item, arguments[0], bounds) for item in value)
        raise VbsixError(f"{name}: expected a list such as [1, 5], not {value!r}.")
    if type(value).__module__ == "numpy" and not getattr(value, "shape", None):
        value = value.item()
    if wanted is float and isinstance(value, int) and not isinstance(value, bool):
        value = float(value)
    if not isinstance(value, wanted) or (isinstance(value, bool) and wanted is not bool):
        raise VbsixError(f"{name}: expected {_TYPES[wanted]}, not {value!r}.")
    if wanted in (int, float) and not _is_within(value, bounds):
        raise VbsixError(f"{name}: expected {_TYPES[wanted]} {_describe(bounds)}, not {value!r}.")
    return value


def _is_within(value: float, bounds: Bounds) -> bool:
    least, most, below = (math.inf if bound is None else bound for bound in (bounds.least, bounds.most, bounds.below))
    return not math.isinf(value) and (bounds.least is None or value >= least) and value <= most and value < below


def _describe(bounds: Bounds) -> str:
    if bounds.most is not None:
        return f"between {bounds.least} and {bounds.most}"
    return f"of at least {bounds.least}" + ("" if bounds.below is None else f" and below {bounds.below}")
