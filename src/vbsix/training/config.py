"""All settings of a run in one frozen record: presets, TOML files, overrides by name."""

from __future__ import annotations

import ast
import dataclasses
import inspect
import json
import math
import textwrap
import tomllib
import typing
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal

from vbsix.data.examples import PAPER_SETTINGS
from vbsix.errors import UnknownName, VbsixError
from vbsix.models.config import NetworkConfig
from vbsix.search.config import SearchConfig

Objective = Literal["mml", "expert", "reinforce"]


@dataclass(frozen=True)
class DataConfig:
    """What is learned from."""

    split: Literal["train", "train-orig"] = "train"
    """SCONE's file to learn from; `train-orig` has the examples of 1 and 2 instructions that earlier papers took, one a
    row. Of the embedded corpus: its rows, or their first 1 and 2 instructions as rows of their own."""
    lengths: tuple[int, ...] = (1, 2, 3)
    """How many of a row's first instructions make an example, 0 for all of them; a row gives one for each number."""
    rests: bool = False
    """Whether what is left of an example that begins with another one is an example too, from that one's target on."""
    evaluation: tuple[int, ...] = (1, 2, 3)
    """The same for evaluation while training."""
    max_words: int = 25
    """Words of an instruction that are read."""
    normalise: bool = True
    """Whether words are looked up without attached punctuation and with ordinals spelled out."""
    glove_words: int = 0
    """How many of GloVe's most frequent words are known, 0 for all; the paper takes 20,000, which leaves out
    `leftmost`, `rightmost` and `beaker`."""
    own_words: int = 0
    """Words that the file of GloVe does not have, but training rows have at least so often, get random vectors of their
    own; 0 for none: then they are one unknown word."""
    dev_file: str = ""
    """Of examples in JSON lines: a second file of them to be measured on; if there is none, a share is held out."""
    dev_share: float = 0.1
    """That share."""
    synthetic_rows: int = 3000
    """Rows of the embedded corpus to learn from."""
    synthetic_dev_rows: int = 200
    """Rows of it to be measured on, and as many with phrasings that were held out."""


@dataclass(frozen=True)
class TrainingConfig:
    """How the networks are trained. The defaults are the paper's VBSiX."""

    objective: Objective = "mml"
    """`mml`: marginal likelihood of the programs found; `expert`: of those that a policy which sees the target finds;
    `reinforce`: reward of sampled programs."""
    critic: bool = True
    """Whether a value network is trained, and ranks states once `value_ranking_start` steps have passed."""
    programs: Literal["extracted", "graph"] = "extracted"
    """Whether the policy learns from extracted programs or from all paths of the layered graph at once."""
    labels: Literal["suffix", "paper", "graph"] = "suffix"
    """A state's label, the estimated reward: `suffix`, the probability of the distinct correct suffixes among the
    programs found; `paper`, the same with the token that led to the state, a suffix counted once for each program;
    `graph`, that of all the graph holds, for all its states."""
    steps: int = 20000
    """Updates of the networks."""
    short_first: int = 0
    """Steps at the beginning that draw none but the examples with the fewest instructions."""
    batch: int = 8
    """Examples of an update."""
    learning_rate: float = 0.001
    """Of Adam."""
    decay_share: float = 0.0
    """Share of all steps, the last ones, over which the learning rate falls to 0."""
    dropout: float = 0.0
    """Share of the numbers of word vectors, and of what the policy makes of utterances, that are set to 0."""
    value_ranking_start: int = 5000
    """Step from which on the critic ranks."""
    policy_states: int = 256
    """Most distinct states of an example's programs that the policy is updated on in one step."""
    value_states: int = 512
    """Most states of an example that the critic trains on in one step."""
    alpha: float = 0.0
    """Weighs examples by the probability of their correct programs, as the search has it, to this power: 0 for marginal
    likelihood, 1 for expected reward (Guu et al. 2017). So examples that the words do not explain count for less."""
    beta: float = 1.0
    """Exponent of the weights of extracted programs; below 1, improbable ones count for more (Guu et al. 2017)."""
    samples: int = 32
    """Programs sampled for each example by `reinforce`."""
    sample_epsilon: float = 0.2
    """Weight of the uniform distribution over tokens in what `reinforce` draws from, and learns to draw better."""
    baseline: float = 1e-3
    """Subtracted from the reward by `reinforce`."""


@dataclass(frozen=True)
class RunConfig:
    """How a run goes about its work; nothing here changes what is learned."""

    chunk: int = 50
    """Steps compiled into one call, but 5 at most on a CPU; Ctrl-C is heard between calls."""
    log_every: int = 100
    """Steps that a line of metrics covers."""
    evaluate_every: int = 2500
    """Steps between two evaluations."""
    checkpoint_every: int = 1000
    """Steps between two checkpoints."""
    evaluation_beam: int = 32
    """Beam of the search that predicts."""
    evaluation_batch: int = 64
    """Examples predicted in one call."""


@dataclass(frozen=True)
class Config:
    """All settings of a run."""

    domain: str = "tangrams"
    """Name of a domain."""
    data: DataConfig = field(default_factory=DataConfig)
    network: NetworkConfig = field(default_factory=NetworkConfig)
    search: SearchConfig = field(default_factory=SearchConfig)
    training: TrainingConfig = field(default_factory=TrainingConfig)
    run: RunConfig = field(default_factory=RunConfig)


_OURS = {
    "network.renormalise": True,
    "search.space": "execution",
    "search.exploration": "sampling",
    "search.epsilon": 0.1,
    "training.critic": False,
    "training.objective": "mml",
    "training.programs": "graph",
    "training.labels": "graph",
}
"""What methods are made of, as SCONE's dev split chose it."""
_TELLING = [name for name in _OURS if name not in ("network.renormalise", "search.epsilon")]
"""The settings that tell methods apart."""
_AS_PUBLISHED = {
    **_OURS,
    "network.renormalise": False,
    "search.exploration": "slots",
    "search.epsilon": 0.15,
    "training.programs": "extracted",
    "training.labels": "paper",
    "data.glove_words": 20000,
    "data.normalise": False,
}
"""What the paper says, but for how parameters are drawn, of which it says nothing."""

METHODS: Mapping[str, Mapping[str, Any]] = {
    "vbsix": {**_OURS, "training.critic": True},
    "mml": {**_OURS, "search.space": "program"},
    "execution-only": _OURS,
    "value-only": {**_OURS, "search.space": "program", "training.critic": True},
    "expert-mml": {**_OURS, "search.space": "program", "training.objective": "expert"},
    "reinforce": {**_OURS, "search.space": "program", "training.objective": "reinforce"},
    "paper-vbsix": {**_AS_PUBLISHED, "training.critic": True},
    "paper-mml": {**_AS_PUBLISHED, "search.space": "program", "search.program_beam": 32},
}
"""The paper's methods and its two ablations, each a handful of settings; `paper-` has exploration, mask, extraction,
labels and words as published too."""
AS_PUBLISHED = ("paper-vbsix", "paper-mml")

DOMAINS: Mapping[str, Mapping[str, Any]] = {
    "scene": {"training.steps": 22500, "training.value_ranking_start": 5000, "training.baseline": 1e-5},
    "alchemy": {"training.steps": 31500, "training.value_ranking_start": 5000, "training.baseline": 1e-2},
    "tangrams": {"training.steps": 40000, "training.value_ranking_start": 10000, "training.baseline": 1e-3},
}
"""The paper's hyper-parameters that depend on the domain."""

OURS_BY_DOMAIN: Mapping[str, Mapping[str, Any]] = {"scene": {"network.renormalise": False, "search.prune": True}}
"""What dev chose in a domain for all methods that search, but those as published."""

QUICK: Mapping[str, Any] = {
    "data.lengths": (1, 2, 3),
    "data.evaluation": (1, 2, 3),
    "data.max_words": 15,
    "search.beam": 64,
    "search.negatives": 16,
    "training.steps": 1000,
    "training.value_ranking_start": 700,
    "training.policy_states": 128,
    "training.value_states": 128,
    "run.evaluate_every": 500,
    "run.checkpoint_every": 100,
}
"""For the embedded corpus: learns in minutes on two cores."""
QUICK_BY_DOMAIN: Mapping[str, Mapping[str, Any]] = {
    "scene": {
        "search.prune": True,
        "training.short_first": 700,
        "training.steps": 2000,
        "training.value_ranking_start": 1500,
    }
}
"""What differs in one domain alone: most of scene's stacks are dead ends, and its commands have many arguments."""


OWN: Mapping[str, Any] = {**QUICK, "data.lengths": (0,), "data.evaluation": (0,), "data.max_words": 20}
"""For examples in JSON lines, of any domain: likewise."""


def own(domain: str, method: str = "execution-only") -> Config:
    """Settings of a method for examples in JSON lines; these runs are short, and a critic ranks late."""
    return override(Config(domain=domain), {**_settings_of(method), **OWN})


def quick(domain: str, method: str = "vbsix") -> Config:
    """Settings of a method for the embedded corpus of a domain."""
    return override(Config(domain=domain), {**_settings_of(method), **QUICK, **QUICK_BY_DOMAIN.get(domain, {})})


def preset(domain: str, method: str = "vbsix") -> Config:
    """The settings of a method in a domain, with the paper's sizes, steps and examples; for others, the defaults."""
    ours = {} if method in (*AS_PUBLISHED, "reinforce") else OURS_BY_DOMAIN.get(domain, {})
    settings = {**_settings_of(method), **DOMAINS.get(domain, {}), **ours}
    if domain in PAPER_SETTINGS:
        paper = PAPER_SETTINGS[domain]
        settings |= {"data.lengths": paper.training, "data.evaluation": paper.evaluation}
        settings |= {"data.max_words": paper.max_words}
    return override(Config(domain=domain), settings)


def method_of(config: Config) -> str:
    """The name of the method that these settings make."""
    found = dict(flatten(dataclasses.asdict(config)))
    made = (name for name, settings in METHODS.items() if all(found[key] == settings[key] for key in _TELLING))
    return next(made, "custom")


def without_method(settings: Mapping[str, Any]) -> dict[str, Any]:
    """The settings that do not decide which method it is."""
    return {name: value for name, value in settings.items() if name not in _TELLING}


def _settings_of(method: str) -> Mapping[str, Any]:
    if method not in METHODS:
        raise UnknownName("method", method, METHODS)
    return METHODS[method]


def override(config: Config, settings: Mapping[str, Any]) -> Config:
    """The config with some settings replaced, named by dotted paths such as `search.beam`."""
    for name, value in settings.items():
        config = _replace(config, name, name.split("."), value)
    return config


RETIRED = ("network.slots", "network.objects", "network.elements")
"""Settings of earlier versions that decide nothing any more."""


def from_tables(tables: Mapping[str, Any]) -> Config:
    """The config that a run or a model was saved with."""
    return override(Config(), {name: value for name, value in flatten(tables) if name not in RETIRED})


def override_from_text(config: Config, assignments: Iterable[str]) -> Config:
    """The config with settings given as `search.beam=64`; see `read_assignments`."""
    return override(config, read_assignments(assignments))


def read_assignments(assignments: Iterable[str]) -> dict[str, Any]:
    """Settings given as `search.beam=64`; values are read as TOML, or else as plain text."""
    settings = {}
    for assignment in assignments:
        name, equals, text = assignment.partition("=")
        if not equals:
            raise VbsixError(f"{assignment!r} is not a setting: write NAME=VALUE, as in search.beam=64.")
        settings[name.strip()] = _read_value(text.strip())
    return settings


def read_toml(path: Path) -> dict[str, Any]:
    """The settings of a TOML file."""
    try:
        return dict(flatten(tomllib.loads(path.read_text(encoding="utf-8"))))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise VbsixError(f"{path}: not a TOML file: {error}") from error


def to_toml(config: Config) -> str:
    """The config as a TOML text that `read_toml` reads, with what each setting means."""
    lines, tables = [], []
    for entry in dataclasses.fields(config):
        value = getattr(config, entry.name)
        if dataclasses.is_dataclass(value):
            tables += ["", f"[{entry.name}]", *_lines(value, [field.name for field in dataclasses.fields(value)])]
        else:
            lines += _lines(config, [entry.name])
    return "\n".join([*lines, *tables]) + "\n"


def _lines(config: Any, wanted: Iterable[str]) -> Iterator[str]:
    types, meanings = typing.get_type_hints(type(config)), _meanings(type(config))
    for name in wanted:
        choices = typing.get_args(types[name]) if typing.get_origin(types[name]) is Literal else ()
        meaning = meanings.get(name, "") + (f" One of: {', '.join(choices)}." if choices else "")
        yield from textwrap.wrap(meaning.strip(), 100, initial_indent="# ", subsequent_indent="# ")
        yield f"{name} = {write_value(getattr(config, name))}"


def _meanings(kind: type) -> dict[str, str]:
    """The text below each field of a class, which Python does not keep: it is read from the source."""
    tree = ast.parse(inspect.getsource(kind)).body[0]
    assert isinstance(tree, ast.ClassDef)
    found = {}
    for pair in pairwise(tree.body):
        match pair:
            case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(text))):
                found[name] = " ".join(text.split())
    return found


def names(config: Any, prefix: str = "") -> list[str]:
    """Dotted paths of all settings."""
    found = []
    for entry in dataclasses.fields(config):
        value = getattr(config, entry.name)
        inner = dataclasses.is_dataclass(value)
        found += names(value, f"{prefix}{entry.name}.") if inner else [prefix + entry.name]
    return found


def _replace(config: Any, name: str, path: list[str], value: Any) -> Any:
    """`name` is the whole path, for messages."""
    types = typing.get_type_hints(type(config))
    if path[0] not in types or dataclasses.is_dataclass(types[path[0]]) == (len(path) == 1):
        raise VbsixError(f"unknown setting {name!r}.{_nearest(name)} `vbsix config show` lists all of them.")
    if len(path) > 1:
        return dataclasses.replace(config, **{path[0]: _replace(getattr(config, path[0]), name, path[1:], value)})
    return dataclasses.replace(config, **{path[0]: _check(name, value, types[path[0]])})


def _nearest(name: str) -> str:
    """A hint at the setting that was meant, whose table may have been left out."""
    known = names(Config())
    by_last = {path.rpartition(".")[2]: path for path in known}
    nearest = get_close_matches(name, known, n=1)
    nearest = nearest or [by_last[last] for last in get_close_matches(name.rpartition(".")[2], by_last, n=1)]
    return f" Did you mean {nearest[0]!r}?" if nearest else ""


def _check(name: str, value: Any, wanted: Any) -> Any:
    """The value as the type of its field, or an error that says what is wanted."""
    origin, arguments = typing.get_origin(wanted), typing.get_args(wanted)
    if origin is Literal:
        if value in arguments:
            return value
        raise VbsixError(f"{name}: expected one of {', '.join(map(repr, arguments))}, not {value!r}.")
    if origin is tuple:
        if isinstance(value, list | tuple) and value:
            return tuple(_check(name, item, arguments[0]) for item in value)
        raise VbsixError(f"{name}: expected a list such as [1, 5], not {value!r}.")
    if wanted is float and isinstance(value, int) and not isinstance(value, bool):
        value = float(value)
    if not isinstance(value, wanted) or (isinstance(value, bool) and wanted is not bool):
        raise VbsixError(f"{name}: expected {_TYPES[wanted]}, not {value!r}.")
    if name in ("training.dropout", "training.sample_epsilon") and value == 1:
        raise VbsixError(f"{name}: expected a number below 1, at which nothing would be learned, not {value!r}.")
    if wanted in (int, float):
        least = 1 if wanted is int and name not in _MAY_BE_ZERO else 0
        most = 1 if name.endswith(("epsilon", "_share", "dropout")) else math.inf
        if not least <= value <= most or math.isinf(value):
            bounds = f"between {least} and {most}" if most == 1 else f"of at least {least}"
            raise VbsixError(f"{name}: expected {_TYPES[wanted]} {bounds}, not {value!r}.")
    return value


_TYPES = {int: "a whole number", float: "a number", bool: "true or false", str: "a text"}
_MAY_BE_ZERO = (
    "data.lengths",
    "data.evaluation",
    "data.glove_words",
    "data.own_words",
    "search.quota",
    "training.short_first",
    "training.value_ranking_start",
    "search.critic_instructions",
)


def flatten(tables: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """The values of nested tables by their dotted paths."""
    for name, value in tables.items():
        if isinstance(value, dict):
            yield from flatten(value, f"{prefix}{name}.")
        else:
            yield prefix + name, value


def flatten_json(tables: Mapping[str, Any]) -> dict[str, Any]:
    """The same, as JSON gives the values back."""
    return dict(flatten(json.loads(json.dumps(tables))))


def _read_value(text: str) -> Any:
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text


def write_value(value: Any) -> str:
    """A setting's value as TOML has it."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple):
        return f"[{', '.join(map(write_value, value))}]"
    return json.dumps(value, ensure_ascii=False) if isinstance(value, str) else repr(value)
