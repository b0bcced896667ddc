"""Every method, recipe, variant and domain, each a handful of settings.

A *method* is what the paper compares. A *recipe* says how search explores, what the networks learn from, and how they
are initialised: `published` follows the paper and the code that it extends (Guu et al. 2017, "the reference code"),
`stochastic` is ours. A *variant* is a named change on top, or several joined by `+`. Settings that nothing here names
have the defaults of the dataclasses.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import Any, Literal, get_args

from vbsix.config.schema import Config, changes, override
from vbsix.data.examples import PAPER_SETTINGS
from vbsix.domains.names import base_name
from vbsix.utilities.errors import UnknownName

Settings = Mapping[str, Any]
DataKind = Literal["scone", "synthetic", "json-lines"]

METHODS: Mapping[str, Settings] = {
    "vbsix": {"search.space": "execution", "training.critic": True, "training.objective": "mml"},
    "mml": {"search.space": "program", "training.critic": False, "training.objective": "mml"},
    "execution-only": {"search.space": "execution", "training.critic": False, "training.objective": "mml"},
    "value-only": {"search.space": "program", "training.critic": True, "training.objective": "mml"},
    "expert-mml": {"search.space": "program", "training.critic": False, "training.objective": "expert-mml"},
    "reinforce": {"search.space": "program", "training.critic": False, "training.objective": "reinforce"},
}
"""VBSiX, the paper's baselines and its two ablations."""

RECIPES: Mapping[str, Settings] = {
    "published": {
        "data.glove_words": 20000,
        "data.normalise": False,
        "network.initialisation": "reference",
        "network.output_biases": True,
        "network.renormalise": False,
        "search.selection": "epsilon-greedy",
        "search.epsilon": 0.15,
        "training.programs": "extracted",
        "training.labels": "paper",
        "training.critic_updates": "always",
        "training.sample_gradient": "policy",
    },
    "stochastic": {
        "data.glove_words": 0,
        "data.normalise": True,
        "network.initialisation": "small",
        "network.output_biases": False,
        "network.renormalise": True,
        "search.selection": "stochastic",
        "search.epsilon": 0.1,
        "training.programs": "graph",
        "training.labels": "graph",
        "training.critic_updates": "with-hits",
        "training.sample_gradient": "mixture",
    },
}
"""The paper with its reference code, and our recipe, chosen on SCONE's dev set."""

PUBLISHED_SIZES: Settings = {
    "search.negatives": 1024,
    "search.prune_dead_ends": False,
    "training.policy_states": 2048,
    "training.value_states": 2048,
}
"""Whatever the data: a negative for every incorrect terminal state, no state left out, no dead end known."""
DEFAULT_METHOD: Mapping[DataKind, str] = {"scone": "vbsix", "synthetic": "vbsix", "json-lines": "execution-only"}
"""The default for each kind of data. Runs on JSON lines are too short for a critic."""
DEFAULT_RECIPE = "stochastic"

VARIANTS: Mapping[str, Settings] = {
    "five-instructions": {
        "data.lengths": (1, 2, 3, 4, 5),
        "data.evaluation": (3, 5),
        "training.steps": 5000,
        "training.value_ranking_start": 3000,
        "training.policy_states": 256,
        "training.value_states": 256,
    },
    "beam-64": {"search.beam": 64},
    "beam-256": {"search.beam": 256, "training.policy_states": 1024},
    "oov-words": {"data.oov_min_count": 3},
    "init-0.1": {"network.initialisation": "small", "network.token_init_std": 0.1},
    "hidden-attributes": {"network.stack_attributes": False},
    "suffixes": {"data.suffixes": True, "training.curriculum_steps": 2000, "training.decay_share": 0.3},
    "waypoints": {"data.waypoints": True},
    "symmetry": {"training.symmetry": True},
    "prior-work": {"data.split": "train-orig", "data.lengths": (0,)},  # 0: the whole row
}
"""Named changes, in the order in which they apply: sequences as long as SCONE's (on the built-in corpus), a wider beam,
vectors for out-of-vocabulary words, a larger initial scale of token embeddings, a policy that does not see what objects
on the stack look like, suffix examples with a curriculum and a decaying learning rate, programs that pass through the
targets of shorter examples, random permutations of interchangeable constants, the training examples of prior work."""
VARIANT_BY_DOMAIN: Mapping[tuple[str, str], Settings] = {
    ("five-instructions", "scene"): {"training.curriculum_steps": 1500},
}

CONTEXT_STAGE: Settings = {
    "network.context": 64,
    "training.critic": False,  # critics start from scratch in each stage, and this one is too short for them
    "training.decay_share": 0.5,
    "training.steps": 6000,
}
STUDENT: Settings = {
    "search.beam": 32,
    "search.epsilon": 0.2,
    "training.critic": False,
    "training.curriculum_steps": 500,
    "training.batch": 16,
    "training.steps": 4000,
    "training.beta_steps": 2000,
    "training.decay_share": 0.3,
    "run.evaluate_every": 1000,
}
STUDENT_WITH_CONTEXT: Settings = {
    "network.context": 64,
    "search.beam": 16,
    "search.epsilon": 0.1,
    "training.beta_steps": 0,
    "training.curriculum_steps": 0,
    "training.dropout": 0.1,
    "training.word_dropout": 0.05,
    "training.decay_share": 0.5,
    "training.steps": 3000,
    "run.evaluate_every": 500,
}
"""The stages of those who learn from inferred worlds. Their first examples are first instructions: a suffix of one
instruction lacks the history, so that "he leaves" would be learned as a spurious program."""
STAGES: Mapping[str, Sequence[Settings]] = {
    "context": ({}, CONTEXT_STAGE),
    "tangrams-context": ({"training.steps": 10000, "run.evaluate_every": 2000}, CONTEXT_STAGE),
    "tangrams-large": (
        {"training.steps": 6000, "training.batch": 32, "search.beam": 128, "run.evaluate_every": 1000},
        {**CONTEXT_STAGE, "training.steps": 3000},
    ),
    "teachers": (
        {
            "data.suffixes": True,
            "training.critic": False,
            "training.curriculum_steps": 1500,
            "training.batch": 32,
            "training.steps": 1500,
            "training.decay_share": 0.3,
            "run.evaluate_every": 750,
        },
        {
            "training.curriculum_steps": 0,
            "training.batch": 16,
            "training.steps": 3500,
            "training.decay_share": 0.4,
            "run.evaluate_every": 1750,
        },
    ),
    "student": (STUDENT, STUDENT_WITH_CONTEXT),
    "student-symmetry": (STUDENT, {**STUDENT_WITH_CONTEXT, "training.symmetry": True}),
    "scene-context": (
        {"training.steps": 8000, "run.evaluate_every": 1000},
        {"search.beam": 64, "training.policy_states": 512, "training.decay_share": 0.5, "training.steps": 5000},
        {**CONTEXT_STAGE, "training.steps": 3000},
    ),
}
"""Named schedules of stages.

`context`: the run as it is, then a stage with context. `teachers`: for those who learn from targets alone; single
instructions first, then all examples. `student`: for those who learn from inferred worlds; a flat posterior first, then
with context. `student-symmetry`: the same, with symmetry in the last stage. The others made results on SCONE: fewer
steps without context first; larger batches and a beam of 128; a beam of 64 after a wider one.
"""

PAPER_BY_DOMAIN: Mapping[str, Settings] = {
    "scene": {"training.steps": 22500, "training.value_ranking_start": 5000, "training.baseline": 1e-5},
    "alchemy": {"training.steps": 31500, "training.value_ranking_start": 5000, "training.baseline": 1e-2},
    "tangrams": {"training.steps": 40000, "training.value_ranking_start": 10000, "training.baseline": 1e-3},
}
"""The paper's hyper-parameters that depend on the domain."""
RECIPE_BY_DOMAIN: Mapping[tuple[str, str], Settings] = {
    ("stochastic", "scene"): {"network.renormalise": False, "search.prune_dead_ends": True},
}
"""Chosen on dev for a domain, for all methods but REINFORCE."""

QUICK: Settings = {
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
"""For the built-in corpus: learns in minutes on two cores."""
QUICK_BY_DOMAIN: Mapping[str, Settings] = {
    "scene": {
        "search.prune_dead_ends": True,
        "training.curriculum_steps": 700,
        "training.steps": 2000,
        "training.value_ranking_start": 1500,
    }
}
"""Scene prunes dead ends and trains longer: most of its stacks are dead ends, and its commands have many arguments."""
JSON_LINES: Settings = {**QUICK, "data.lengths": (0,), "data.evaluation": (0,), "data.max_words": 20}
"""For examples in JSON lines, of any domain."""


def preset(
    domain: str,
    method: str | None = None,
    recipe: str = DEFAULT_RECIPE,
    variant: str = "",
    *,
    data: DataKind = "scone",
) -> Config:
    """The settings of a method with a recipe and a variant.

    Args:
        domain: its name; a domain that the paper does not have gets the defaults, a language that remembers where those
            of the paper's domain.
        method: a key of `METHODS`; None for the default of this kind of data.
        recipe: a key of `RECIPES`.
        variant: keys of `VARIANTS` joined by `+`, in any order; empty for none.
        data: the paper's sizes, steps and examples for SCONE; quick ones for the built-in corpus and for JSON lines.
    """
    method = method or DEFAULT_METHOD[data]
    settings = {**_find("recipe", recipe, RECIPES), **_find("method", method, METHODS)}
    settings |= _sizes(domain, method, recipe, data)  # the quick ones override the recipe's
    given = [name for name in variant.split("+") if name]
    for name in given:
        _find("variant", name, VARIANTS)
    variants = [name for name in VARIANTS if name in given]
    for name in variants:
        settings |= {**VARIANTS[name], **VARIANT_BY_DOMAIN.get((name, base_name(domain)), {})}
    if recipe == "published":
        settings |= PUBLISHED_SIZES
        if settings["search.space"] == "program":
            settings["search.program_beam"] = 0  # as many programs as the beam has slots
    names = {"domain": domain, "method": method, "recipe": recipe, "variant": "+".join(variants)}
    return override(Config(), {**names, **settings})


OF_THE_DATA = (
    *("data.vectors", "data.dev_file", "data.dev_share", "data.folds", "data.fold"),
    *("data.synthetic_rows", "data.synthetic_dev_rows", "network.word"),
)
"""Settings that say what the data is."""
FROM_JSON_LINES = ("data.max_words", "training.curriculum_steps")
"""Settings that are chosen from the data where these are JSON lines."""


@functools.cache
def changed(config: Config) -> Mapping[str, Any]:
    """The settings that differ from those of the preset that the config names.

    Presets depend on the kind of data; the one that fits best counts. Steps, the data itself, and how a run is logged
    and saved (`run`, except the beam of evaluations) do not count. A config that names no preset, as those of version
    0.1, has no changes.
    """
    variants = [name for name in config.variant.split("+") if name]
    if config.method not in METHODS or config.recipe not in RECIPES or not VARIANTS.keys() >= set(variants):
        return {}

    def against(kind: DataKind) -> dict[str, Any]:
        base = preset(config.domain, config.method, config.recipe, config.variant, data=kind)
        free = {"training.steps", *OF_THE_DATA, *(FROM_JSON_LINES if kind == "json-lines" else ())}
        found = changes(base, config)
        return {
            name: found[name]
            for name in found
            if name not in free and (not name.startswith("run.") or name == "run.evaluation_beam")
        }

    return min(map(against, get_args(DataKind)), key=len)


def full_name(config: Config) -> str:
    """The config's name, and which settings are not those that it stands for."""
    names = list(changed(config))
    shown = ", ".join(names) if len(names) <= 3 else f"{len(names)} settings"
    return f"{config.name} (changed: {shown})" if names else config.name


def find_stages(name: str) -> Sequence[Settings]:
    """The settings of each stage of a named schedule."""
    if name not in STAGES:
        raise UnknownName("schedule of stages", name, STAGES)
    return STAGES[name]


def data_kind(source: str) -> DataKind:
    """The kind of data that `--data` names."""
    return "synthetic" if source == "synthetic" else "json-lines" if source.endswith(".jsonl") else "scone"


def _sizes(domain: str, method: str, recipe: str, data: DataKind) -> dict[str, Any]:
    domain = base_name(domain)
    if data == "json-lines":
        return dict(JSON_LINES)
    if data == "synthetic":
        return {**QUICK, **QUICK_BY_DOMAIN.get(domain, {})}
    settings = dict(PAPER_BY_DOMAIN.get(domain, {}))
    if method != "reinforce":  # which does not search
        settings |= RECIPE_BY_DOMAIN.get((recipe, domain), {})
    if domain in PAPER_SETTINGS:
        paper = PAPER_SETTINGS[domain]
        settings |= {"data.lengths": paper.training, "data.evaluation": paper.evaluation}
        settings |= {"data.max_words": paper.max_words}
    return settings


def _find(kind: str, name: str, known: Mapping[str, Settings]) -> Settings:
    if name not in known:
        raise UnknownName(kind, name, known)
    return known[name]
