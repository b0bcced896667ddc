"""Parsers from runs and from files: of one seed, of each seed, or of all seeds as an ensemble."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import PRNGKeyArray

from vbsix import __version__
from vbsix.config.legacy import METHODS as LEGACY_METHODS
from vbsix.config.legacy import read_config
from vbsix.config.schema import Config
from vbsix.config.variation import program_of
from vbsix.data.words import UNKNOWN, Words, read_words
from vbsix.domains.base import Domain
from vbsix.domains.registry import as_domain
from vbsix.evaluation.confidence import ConfidenceModel, read_confidence
from vbsix.models import Ensemble, PolicyNetwork
from vbsix.models.config import POLICIES
from vbsix.models.critic import Critic, TrainedCritic
from vbsix.models.heads import Networks
from vbsix.parsing.parser import CRITIC, Parser, require_finite
from vbsix.runs.calibration import open_confidence
from vbsix.runs.checkpoints import from_tensors, load_networks
from vbsix.runs.continuing import best_seed
from vbsix.runs.folder import Run, load_best, open_run, open_words
from vbsix.runs.identity import domain_of, read_identity
from vbsix.runs.sweep import is_sweep, open_sweep
from vbsix.training.chunk import learner_shapes
from vbsix.utilities.errors import VbsixError
from vbsix.utilities.files import read_tensors
from vbsix.utilities.jax_settings import prepare_jax
from vbsix.utilities.trees import choose

PRETRAINED = Path(__file__).parent / "pretrained"
"""Models that come with vbsix, each with a model card."""


def load(
    path: str | Path,
    seed: int | None = None,
    *,
    best: bool = False,
    ensemble: bool = False,
    domain: Any = None,
    words: Words | None = None,
) -> Parser:
    """A parser from a run's folder, at its newest checkpoint, or from an exported model.

    Nothing in the folder or the file is run as code. So a parser for a domain of your own needs that domain, given here
    or registered with `register_domain`.

    Args:
        path: the folder or the file; where there is none of that name, a model that comes with vbsix, such as
            `tangrams`.
        seed: which seed of the run; None takes the one that was best on its dev split.
        best: take the policy at the step at which it was best on dev, instead of the newest.
        ensemble: all seeds of the run, or of all runs of a sweep, as one parser: the probabilities of tokens are
            averaged, and the most probable world is predicted, marginalising over programs.
        domain: the language, as `vbsix.train` takes it; None takes the one that is registered under the model's name
            for it.
        words: another vocabulary than the run's, with vectors of the same kind.

    Raises:
        VbsixError: there is no intact model at the path, or it does not have that seed.
    """
    prepare_jax()  # a first call starts JAX, and training in the same session needs all cores
    path, domain = find_model(path), None if domain is None else as_domain(domain)
    if not path.is_dir():
        if ensemble or words:
            raise VbsixError(f"{path}: an ensemble, and other words, need a run's folder.")
        model = _read_model(path, domain)
        if not isinstance(model.policy, Ensemble):
            _require_seed(path, seed, [model.provenance["seed"]])
        elif seed is not None:
            raise VbsixError(f"{path}: is an ensemble; its seeds cannot be loaded one by one.")
        return model
    if is_sweep(path):
        if seed is not None:
            raise VbsixError("an ensemble has all seeds; leave out the seed.")
        return _load_sweep(path, best, ensemble, domain, words)
    run = open_run(path)
    if ensemble:
        if seed is not None:
            raise VbsixError("an ensemble has all seeds; leave out the seed.")
        return make_ensemble(_read_run(run, run.seeds, best, domain, words))
    _require_seed(path, seed, run.seeds)
    return _read_run(run, [best_seed(run, best) if seed is None else seed], best, domain, words)[0]


def _load_sweep(path: Path, best: bool, ensemble: bool, domain: Domain | None, words: Words | None) -> Parser:
    """All seeds of all runs of a sweep as one parser; runs that failed are left out."""
    runs = open_sweep(path).good
    if not ensemble:
        names = ", ".join(run.folder.name for run in runs)
        raise VbsixError(f"{path}: holds a sweep; load one of its runs ({names}), or all as an ensemble.")
    if len({program_of(run.config).network for run in runs}) > 1:
        raise VbsixError(f"{path}: its runs have different networks, which make no ensemble.")
    return make_ensemble([parser for run in runs for parser in _read_run(run, run.seeds, best, domain, words)])


def make_ensemble(parsers: Sequence[Parser]) -> Parser:
    """Parsers with the same vocabulary and the same networks as one."""
    first = parsers[0]
    if any(parser.words.words != first.words.words for parser in parsers):
        raise VbsixError("parsers with different vocabularies make no ensemble.")
    # Networks hold their settings; those of an ensemble have the first one's.
    structure, leaves = jax.tree.structure(first.policy), [jax.tree.leaves(parser.policy) for parser in parsers]
    members = jax.tree.unflatten(structure, [jnp.stack(parts) for parts in zip(*leaves, strict=True)])
    projections = np.concatenate([parser.words.vectors for parser in parsers], axis=1)
    words = read_words(first.words.to_json(), projections)
    provenance = {name: [parser.provenance[name] for parser in parsers] for name in ("seed", "steps")}
    confidence = _mean_confidence([parser.confidence_model for parser in parsers])
    return Parser(
        first.domain,
        Ensemble(members),
        words,
        first.config,
        {**first.provenance, **provenance},
        confidence,
        behaviour=first.behaviour,
    )


def _mean_confidence(models: Sequence[ConfidenceModel | None]) -> ConfidenceModel | None:
    """The mean of the members' confidence models; None if one has none."""
    known = [model for model in models if model is not None]
    if len(known) < len(models):
        return None
    weights = np.mean([model.weights for model in known], axis=0)
    return ConfidenceModel(weights, float(np.mean([model.threshold for model in known])), known[0].rarity)


def load_all(path: Path, *, best: bool = False, domain: Any = None, words: Words | None = None) -> list[Parser]:
    """A parser for each seed of a run; for an exported model, the one that it holds."""
    path, domain = find_model(path), None if domain is None else as_domain(domain)
    if not path.is_dir():
        if words:
            raise VbsixError(f"{path}: other words need a run's folder.")
        return [_read_model(path, domain)]
    run = open_run(path)
    return _read_run(run, run.seeds, best, domain, words)


def pretrained_models() -> dict[str, Path]:
    """The models that come with vbsix, by name; the first of a domain is the one to try first."""
    return {path.stem: path for path in sorted(PRETRAINED.glob("*.safetensors"), key=lambda path: path.stem)}


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
    if path.is_dir() and str(path) in own and not (path / "run.json").exists() and not is_sweep(path):
        raise VbsixError(
            f"{path}: holds no run. For the model of that name which comes with vbsix, call from another folder."
        )
    return path if path.exists() else own[str(path)]


def _require_seed(path: Path, seed: int | None, known: Sequence[int]) -> None:
    if seed is not None and seed not in known:
        raise VbsixError(f"{path}: has no seed {seed}; it has {', '.join(map(str, known))}.")


def _read_run(
    run: Run, seeds: Sequence[int], best: bool, domain: Domain | None = None, words: Words | None = None
) -> list[Parser]:
    domain = domain_of(run.config, run.folder, domain, run.identity)
    words = words or open_words(run.folder)
    networks, steps = _best_networks(run, domain, seeds) if best else _newest_networks(run, domain, seeds)
    own = words.words == open_words(run.folder).words
    confidence = functools.partial(open_confidence, run, words=len(words.words)) if own else lambda seed: None
    names = {"method": run.config.method, "recipe": run.config.recipe, "variant": run.config.variant}
    parsers = []
    for place, seed in enumerate(seeds):
        provenance = {**names, "steps": steps[place], "seed": seed, "data": Path(run.source).name}
        provenance |= {"vbsix": __version__}
        policy, critic, _ = choose(networks, place)
        parser = make_parser(domain, policy, words, run.config, provenance)
        known = {"confidence_model": confidence(seed), "behaviour": run.identity.behaviour}
        parsers.append(replace(parser, **known, critic=_with_projections(critic, words)))
    return parsers


def make_parser(
    domain: Domain, policy: PolicyNetwork, words: Words, config: Config, provenance: dict[str, Any]
) -> Parser:
    """A parser from a policy and the words it was trained with, whose vectors are folded into the policy."""
    if words.vectors.shape[1] != config.network.word:
        raise VbsixError(
            f"the word vectors have {words.vectors.shape[1]} numbers, the model reads {config.network.word}."
        )
    projections = np.asarray(policy.utterances.project(jnp.asarray(words.vectors)))
    return Parser(domain, _without_projection(policy), read_words(words.to_json(), projections), config, provenance)


def _with_projections(critic: Critic | None, words: Words) -> TrainedCritic | None:
    if critic is None:
        return None
    projections = np.asarray(critic.next_utterance.project(jnp.asarray(words.vectors)))
    return TrainedCritic(_critic_without_projection(critic), projections)


def _newest_networks(run: Run, domain: Domain, seeds: Sequence[int]) -> tuple[Networks, list[int]]:
    """Networks of the newest checkpoint, stacked, and their steps."""
    found = load_networks(run.checkpoints, learner_shapes(domain, run.config, seeds).networks, seeds)
    if found is None:
        raise VbsixError(f"{run.folder}: has no checkpoint yet; continue it with: vbsix train --resume {run.folder}")
    step, networks = found
    return jax.tree.map(jnp.asarray, networks), [step] * len(seeds)


def _best_networks(run: Run, domain: Domain, seeds: Sequence[int]) -> tuple[Networks, list[int]]:
    """Policies at the steps at which they were best on dev, stacked, and these steps; no critics are kept of them."""
    found, places = load_best(run, domain), [run.seeds.index(seed) for seed in seeds]
    return Networks(choose(found.policies, jnp.array(places)), None, None), [found.steps[place] for place in places]


def model_config(path: Path) -> Config:
    """The settings with which an exported model was trained."""
    metadata = read_tensors(path)[1]
    with _exported(path):
        return _read_config(metadata)


@contextmanager
def _exported(path: Path) -> Iterator[None]:
    """Names the file in errors. A file that lacks parts of a model is not one."""
    try:
        yield
    except VbsixError as error:
        raise VbsixError(f"{path}: {error}") from error
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise VbsixError(f"{path}: not a model that `vbsix export` has written.") from error


def _read_config(metadata: dict[str, Any]) -> Config:
    return read_config(metadata["config"], metadata["provenance"].get("method"))


def _read_model(path: Path, domain: Domain | None = None) -> Parser:
    """What `Parser.export` wrote. Nothing in the file is trusted, and none of it is code."""
    tensors, metadata = read_tensors(path)
    tensors = {name: array.astype(np.float32) for name, array in tensors.items()}
    with _exported(path):
        provenance = _read_provenance(metadata["provenance"])
        config = _read_config(metadata)
        normalise = {"normalise": config.data.normalise}  # which models of 0.1 have in their config alone
        words = read_words({**normalise, **metadata}, tensors.pop("words"))
        identity, seed = read_identity({"tokens": metadata["tokens"], **metadata}), provenance["seed"]
        confidence = read_confidence(metadata["confidence"], len(words.words)) if "confidence" in metadata else None
    domain = domain_of(config, path, domain, identity)

    def create(key: PRNGKeyArray) -> tuple[PolicyNetwork, Any]:
        policy = POLICIES.get(config.network.policy)(domain, config.network, key=key)
        return _without_projection(policy), policy.utterances.project(jnp.zeros((1, config.network.word)))

    seeds = seed if isinstance(seed, list) else [seed]
    if not seeds or not all(isinstance(one, int) for one in seeds):
        raise VbsixError(f"{path}: damaged: it has no seed.")
    keys = jax.random.split(jax.random.key(0), len(seeds))
    if isinstance(seed, list):
        shapes, projected = jax.eval_shape(jax.vmap(create), keys)
        shapes = Ensemble(shapes)
    else:
        shapes, projected = jax.eval_shape(create, keys[0])
    if len(words.words) <= UNKNOWN or words.vectors.shape != (len(words.words), len(seeds) * projected.shape[-1]):
        raise VbsixError(f"{path}: damaged: its words do not fit its config.")
    require_finite({**tensors, "words": words.vectors}, str(path))
    critic = _read_critic(tensors, domain, config, words, path)
    policy = jax.tree.map(jnp.asarray, from_tensors(tensors, shapes, path))
    return Parser(domain, policy, words, config, provenance, confidence, critic, identity.behaviour)


def _read_critic(
    tensors: dict[str, np.ndarray], domain: Domain, config: Config, words: Words, path: Path
) -> TrainedCritic | None:
    """Takes the critic's tensors out of those of a model; None if it has none."""
    own = {name.removeprefix(CRITIC): tensors.pop(name) for name in list(tensors) if name.startswith(CRITIC)}
    if not own:
        return None

    def create(key: PRNGKeyArray) -> TrainedCritic:
        critic = Critic(domain, config.network, key=key)
        projections = critic.next_utterance.project(jnp.zeros((len(words.words), config.network.word)))
        return TrainedCritic(_critic_without_projection(critic), projections)  # pyright: ignore[reportArgumentType] (an array will do)

    shapes = jax.eval_shape(create, jax.random.key(0))
    found = from_tensors(own, shapes, path)
    return TrainedCritic(jax.tree.map(jnp.asarray, found.network), found.projections)


def _read_provenance(saved: dict[str, Any]) -> dict[str, Any]:
    """Where a model comes from; one of 0.1 has the method's old name."""
    if "recipe" in saved:
        return dict(saved)
    names = LEGACY_METHODS.get(saved["method"], (saved["method"], "custom", ""))
    return {**saved, **dict(zip(("method", "recipe", "variant"), names, strict=True))}


def _without_projection(policy: PolicyNetwork) -> PolicyNetwork:
    """The policy without the parameters that projections of words make superfluous."""
    return eqx.tree_at(lambda policy: policy.utterances, policy, policy.utterances.without_projection())


def _critic_without_projection(critic: Critic) -> Critic:
    return eqx.tree_at(lambda critic: critic.next_utterance, critic, critic.next_utterance.without_projection())
