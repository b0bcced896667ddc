"""Settings and data so small that compiling is all the work there is."""

from __future__ import annotations

from typing import Any

from vbsix import Domain, get_domain
from vbsix.config.presets import METHODS, RECIPES
from vbsix.config.schema import Config, override
from vbsix.data.dataset import SYNTHETIC, Dataset, load_dataset

SETTINGS: dict[str, Any] = {
    "data.lengths": (1,),
    "data.evaluation": (1,),
    "data.max_words": 10,
    "data.glove_words": 1000,
    "data.synthetic_rows": 20,
    "data.synthetic_dev_rows": 6,
    "network.lstm": 4,
    "network.hidden": 8,
    "network.token": 8,
    "network.slot": 4,
    "network.attribute": 4,
    "search.beam": 48,
    "search.program_beam": 2,
    "search.negatives": 4,
    "training.batch": 4,
    "training.samples": 8,
    "training.steps": 10,
    "training.learning_rate": 0.05,
    "training.value_ranking_start": 0,
    "training.policy_states": 16,
    "training.value_states": 16,
    "run.chunk": 2,
    "run.log_every": 4,
    "run.evaluate_every": 6,
    "run.checkpoint_every": 4,
    "run.evaluation_beam": 4,
    "run.evaluation_batch": 8,
}


def tiny_config(method: str = "vbsix", domain: str = "tangrams", recipe: str = "stochastic", **changes: Any) -> Config:
    """Changes have `__` for the dot of a setting's name."""
    changes = {name.replace("__", "."): value for name, value in changes.items()}
    names = {"domain": domain, "method": method, "recipe": recipe}
    return override(Config(), {**names, **RECIPES[recipe], **METHODS[method], **SETTINGS, **changes})


def tiny_dataset(config: Config, source: str = SYNTHETIC, domain: Domain | None = None) -> Dataset:
    return load_dataset(
        config.data,
        domain or get_domain(config.domain),
        source,
        word_size=config.network.word,
        shortest_first=bool(config.training.curriculum_steps),
    )
