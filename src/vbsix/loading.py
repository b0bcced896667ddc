"""Parsers from runs and from files: of one seed, of each, or of all that decide together."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import PRNGKeyArray

from vbsix import __version__
from vbsix.data.words import UNKNOWN, Words
from vbsix.domains.base import Domain
from vbsix.errors import VbsixError
from vbsix.files import read_tensors
from vbsix.models import Committee, Policy
from vbsix.parser import Parser, require_finite
from vbsix.search.merging import choose
from vbsix.training.checkpoint import from_tensors, load_checkpoint
from vbsix.training.chunk import learner_shapes
from vbsix.training.config import Config, from_tables
from vbsix.training.metrics import read_metrics
from vbsix.training.run import Run, domain_of, load_best, open_run, open_words

PRETRAINED = Path(__file__).parent / "pretrained"
"""Models that come with vbsix, each with a card that tells where it comes from and what it can do."""


def load(path: str | Path, seed: int | None = None, *, best: bool = False, domain: Domain | None = None) -> Parser:
    """A parser from a run's folder, at its newest checkpoint, or from an exported model.

    Nothing in the folder or the file is run as code. So a parser of a domain of one's own needs that domain, given
    here or made known by `register_domain`.

    Args:
        path: the folder or the file; where there is none of that name, a model that comes with vbsix, such as
            `tangrams`.
        seed: which seed of the run; None takes the one that did best on its dev split.
        best: take the policy of the step at which it did best on dev, instead of the newest.
        domain: the language; None takes the one that is known by the model's name for it.

    Raises:
        VbsixError: there is no whole model at the path, or it does not have that seed.
    """
    path = find_model(path)
    if not path.is_dir():
        model = _read_model(path, domain)
        if not isinstance(model.policy, Committee):
            _require_seed(path, seed, [model.provenance["seed"]])
        elif seed is not None:
            raise VbsixError(f"{path}: its seeds decide together, none of them can be taken alone.")
        return model
    run = open_run(path)
    _require_seed(path, seed, run.seeds)
    return _read_run(run, [best_seed(run, best) if seed is None else seed], best, domain)[0]


def load_committee(path: str | Path, *, best: bool = False, domain: Domain | None = None) -> Parser:
    """A parser in which all seeds of a run decide together; see `load`.

    A token has the mean of their probabilities, and the world is chosen to which the most probability leads, whatever
    the programs. Its readings are of different worlds, each with one of the programs that lead there.
    """
    path = Path(path)
    if not path.is_dir():
        raise VbsixError(f"{path}: a committee is made of the seeds of a run; give a run's folder.")
    return found_committee(load_all(path, best=best, domain=domain))


def found_committee(parsers: Sequence[Parser]) -> Parser:
    """A parser in which those of several seeds of one run decide together."""
    first = parsers[0]
    members = jax.tree.map(lambda *leaves: jnp.stack(leaves), *[parser.policy for parser in parsers])
    projections = np.concatenate([parser.words.vectors for parser in parsers], axis=1)
    words = Words(first.words.words, projections, first.words.normalise)
    provenance = {name: [parser.provenance[name] for parser in parsers] for name in ("seed", "steps")}
    return Parser(first.domain, Committee(members), words, first.config, {**first.provenance, **provenance})


def load_all(path: Path, *, best: bool = False, domain: Domain | None = None) -> list[Parser]:
    """A parser for each seed of a run; of an exported model, the one that it holds."""
    path = find_model(path)
    if not path.is_dir():
        return [_read_model(path, domain)]
    run = open_run(path)
    return _read_run(run, run.seeds, best, domain)


def pretrained_models() -> dict[str, Path]:
    """The models that come with vbsix, by name."""
    return {path.stem: path for path in sorted(PRETRAINED.glob("*.safetensors"))}


def find_model(path: str | Path) -> Path:
    """The path if there is something at it, else the model of that name which comes with vbsix.

    Raises:
        VbsixError: there is neither.
    """
    path, own = Path(path), pretrained_models()
    if not path.exists() and str(path) not in own:
        raise VbsixError(
            f"{path}: no such run or model. Give a run's folder, a file that `vbsix export` wrote, or the name of a "
            f"model that comes with vbsix: {', '.join(own)}."
        )
    if path.is_dir() and str(path) in own and not (path / "run.json").exists():
        raise VbsixError(
            f"{path}: holds no run. For the model of that name which comes with vbsix, call from another folder."
        )
    return path if path.exists() else own[str(path)]


def _require_seed(path: Path, seed: int | None, known: Sequence[int]) -> None:
    if seed is not None and seed not in known:
        raise VbsixError(f"{path}: has no seed {seed}; it has {', '.join(map(str, known))}.")


def best_seed(run: Run, best: bool = False) -> int:
    """The seed with the best mean accuracy on dev when the run was last evaluated; the first, if it never was.

    With `best`, the one that was better than all others at any time.
    """
    if best and run.best.exists():
        return run.seeds[int(np.argmax(read_tensors(run.best)[1]["scores"]))]
    latest = dict.fromkeys(run.seeds, 0.0)
    for row in read_metrics(run.metrics):
        if accuracies := row.get("accuracy", {}).get("dev"):
            latest[row["seed"]] = sum(accuracies.values()) / len(accuracies)
    return max(run.seeds, key=latest.__getitem__)


def _read_run(run: Run, seeds: Sequence[int], best: bool, domain: Domain | None = None) -> list[Parser]:
    domain, words = domain_of(run.config, run.folder, domain, run.attributes), open_words(run.folder)
    policies, steps = _best_policies(run, domain, seeds) if best else _newest_policies(run, domain, seeds)
    parsers = []
    for place, seed in enumerate(seeds):
        provenance = {"method": run.method, "steps": steps[place], "seed": seed, "data": Path(run.source).name}
        provenance |= {"vbsix": __version__}
        parsers.append(make_parser(domain, choose(policies, place), words, run.config, provenance))
    return parsers


def make_parser(domain: Domain, policy: Policy, words: Words, config: Config, provenance: dict[str, Any]) -> Parser:
    """A parser from a policy and the words it was trained with, whose vectors are folded into the policy."""
    projections = np.asarray(policy.utterances.project(jnp.asarray(words.vectors)))
    vocabulary = Words(words.words, projections, words.normalise)
    return Parser(domain, _without_input(policy), vocabulary, config, provenance)


def _newest_policies(run: Run, domain: Domain, seeds: Sequence[int]) -> tuple[Policy, list[int]]:
    """Policies of the newest checkpoint, stacked, and their steps."""
    found = load_checkpoint(run.checkpoints, learner_shapes(domain, run.config, seeds), seeds, None)
    if found is None:
        raise VbsixError(f"{run.folder}: has no checkpoint yet; go on with: vbsix train --resume {run.folder}")
    return jax.tree.map(jnp.asarray, found.learners.networks.policy), [found.step] * len(seeds)


def _best_policies(run: Run, domain: Domain, seeds: Sequence[int]) -> tuple[Policy, list[int]]:
    """Policies at the steps at which they did best on dev, stacked, and these steps."""
    found, places = load_best(run, domain), [run.seeds.index(seed) for seed in seeds]
    return choose(found.policies, jnp.array(places)), [found.steps[place] for place in places]


def _read_model(path: Path, domain: Domain | None = None) -> Parser:
    """What `Parser.export` wrote; nothing in the file is trusted, and none of it is code."""
    tensors, metadata = read_tensors(path)
    tensors = {name: array.astype(np.float32) for name, array in tensors.items()}
    try:
        config = from_tables(metadata["config"])
        words = tuple(map(str, metadata["words"]))
        tokens, provenance = tuple(metadata["tokens"]), dict(metadata["provenance"])
        projections, seed = tensors.pop("words"), provenance["seed"]
    except VbsixError as error:
        raise VbsixError(f"{path}: {error}") from error
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise VbsixError(f"{path}: not a model that `vbsix export` has written.") from error
    domain = domain_of(config, path, domain, metadata.get("attributes"))
    if tokens != domain.tokens:
        raise VbsixError(f"{path}: was trained for another version of the domain {domain.name}: its tokens differ.")
    seeds = seed if isinstance(seed, list) else [seed]
    known = bool(seeds) and all(isinstance(one, int) for one in seeds)
    if not known or len(words) <= UNKNOWN or projections.shape != (len(words), len(seeds) * 8 * config.network.lstm):
        raise VbsixError(f"{path}: damaged: its words do not fit its config.")
    require_finite({**tensors, "words": projections}, str(path))

    def create(key: PRNGKeyArray) -> Policy:
        return _without_input(Policy(domain, config.network, key=key))

    keys = jax.random.split(jax.random.key(0), len(seeds))
    if isinstance(seed, list):
        shapes = jax.eval_shape(lambda keys: Committee(jax.vmap(create)(keys)), keys)
    else:
        shapes = jax.eval_shape(create, keys[0])
    policy = jax.tree.map(jnp.asarray, from_tensors(tensors, shapes, path))
    return Parser(domain, policy, Words(words, projections, config.data.normalise), config, provenance)


def _without_input(policy: Policy) -> Policy:
    """The policy without what projections make superfluous."""
    return eqx.tree_at(lambda policy: (policy.utterances.input, policy.utterances.bias), policy, (None, None))
