"""Teachers that are models: exported ones, and those that come with vbsix."""

from __future__ import annotations

from pathlib import Path

import jax.numpy as jnp

from vbsix.domains.base import Domain
from vbsix.models import Ensemble
from vbsix.parsing.loading import find_model, load, make_ensemble, model_config
from vbsix.runs.teachers import Policies, Teacher, Teachers


def open_teachers(path: str | Path) -> Path | Teachers:
    """Who teaches: the folder of a run or of a sweep over folds, or a model, which teaches all rows.

    Args:
        path: the folder, a file that `vbsix export` wrote, or the name of a model that comes with vbsix.
    """
    path = find_model(path)
    if path.is_dir():
        return path

    def read(given: Domain | None) -> Policies:
        parser = load(path, domain=given)
        if not isinstance(parser.policy, Ensemble):
            parser = make_ensemble([parser])
        assert isinstance(parser.policy, Ensemble)
        return Policies(parser.domain, parser.policy, parser.words, jnp.asarray(parser.words.vectors))

    return Teachers(path, (Teacher(path, model_config(path), read),))
