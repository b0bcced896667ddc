"""The worked examples: their languages are sound, their data is what they say, and they learn."""

from __future__ import annotations

import importlib.util
import json
import random
import subprocess
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from reference.comparison import quick_jit

from vbsix import Domain, PythonDomain
from vbsix.data.json_lines import read_json_lines
from vbsix.search import Problem, SearchConfig, search_graph
from vbsix.testing import check_domain

pytestmark = pytest.mark.integration


EXAMPLES = Path(__file__).parents[1] / "examples"
NAMES = {"blocks": "Blocks", "table": "Table", "robot": "Robot", "hallway": "Hallway"}
each_example = pytest.mark.parametrize("name", NAMES)


def load(name: str):
    spec = importlib.util.spec_from_file_location(f"example_{name}", EXAMPLES / name / f"{name}.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    language = getattr(module, NAMES[name])
    return module, language() if issubclass(language, Domain) else PythonDomain(language)


@each_example
def test_its_examples_are_valid_and_its_language_is_sound(name, tmp_path):
    module, domain = load(name)
    made = [module.make_example(number, random.Random(number)) for number in range(150)]
    path = tmp_path / "examples.jsonl"
    path.write_text("".join(json.dumps(example) + "\n" for example in made))
    rows = read_json_lines(path, domain)
    check_domain(domain, [str(row.worlds[0]) for row in rows], instructions=max(len(row.utterances) for row in rows))
    assert len({utterance for row in rows for utterance in row.utterances}) > 40, "varied English"
    assert not any(token in example for example in made for token in ("program", "tokens")), "outcomes only"


@each_example
def test_searches_find_programs_for_its_examples(name):
    """At a small size and without learning; see below for whether it learns."""
    module, domain = load(name)
    made = [module.make_example(number, random.Random(number)) for number in range(40)]
    single = [example for example in made if len(example["instructions"]) == 1][:8]
    worlds = [domain.parse_world(domain.to_text(example["context"])) for example in single]
    targets = [domain.parse_target(domain.to_text(example["target"])) for example in single]
    count = len(domain.tokens)

    def search(world, target):
        return search_graph(
            domain,
            lambda state, valid: jnp.full(count, -np.log(count), jnp.float32),
            None,
            Problem(world, jnp.int32(1), target),
            jax.random.key(0),
            instructions=1,
            config=SearchConfig(beam=256, selection="epsilon-greedy", epsilon=0.0),
        ).hit

    stacked = jax.tree.map(lambda *leaves: np.stack(leaves), *zip(worlds, targets, strict=True))
    hits = np.asarray(quick_jit(jax.vmap(search))(*stacked))
    domain.raise_failure()
    assert hits.mean() > 0.8


@each_example
def test_its_readme_gives_commands_that_make_what_it_measures(name):
    readme = (EXAMPLES / name / "README.md").read_text(encoding="utf-8")
    assert f"python {name}.py" in readme
    assert f"vbsix train {name}:{NAMES[name]} --data {name}.jsonl" in readme


@pytest.mark.slow
@pytest.mark.timeout(600)
@each_example
def test_it_learns_as_its_readme_says(name, tmp_path):
    """As a user would, at full size: above 90% of the held-out examples."""
    readme = (EXAMPLES / name / "README.md").read_text(encoding="utf-8")
    make, train = (line for line in readme.splitlines() if line.startswith(("python ", "vbsix train ")))
    (tmp_path / f"{name}.py").write_bytes((EXAMPLES / name / f"{name}.py").read_bytes())
    commands = [make.replace("python", sys.executable, 1), train.replace("vbsix", f"{sys.executable} -m vbsix", 1)]
    for command in commands:
        subprocess.run(command, shell=True, cwd=tmp_path, check=True)
    (result,) = tmp_path.glob("runs/*/result.json")
    assert json.loads(result.read_text())["accuracy"]["dev"]["all"][0] > 0.9
