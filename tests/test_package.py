from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

import vbsix

ROOT = Path(__file__).parents[1]

FRESH = """
import json, sys
before = set(sys.modules)
{statement}
bridge = sys.modules.get("jax._src.xla_bridge")
jax = sys.modules.get("jax")
print(json.dumps({{
    "modules": sorted(set(sys.modules) - before),
    "backends": sorted(bridge._backends) if bridge else [],
    "arrays": len(jax.live_arrays()) if bridge and bridge._backends else 0,
}}))
"""


def in_fresh_interpreter(statement: str) -> dict:
    script = FRESH.format(statement=statement)
    return json.loads(subprocess.run([sys.executable, "-c", script], check=True, capture_output=True).stdout)


@pytest.mark.parametrize(
    "statement",
    [
        "import vbsix",
        "import vbsix.domains",
        "from vbsix import *",
        "import vbsix; [vbsix.get_domain(name) for name in vbsix.available_domains()]",
        "import vbsix; vbsix.get_domain('scene').parse_world(' '.join(f'{i}:__' for i in range(1, 11)))",
    ],
)
def test_importing_starts_no_backend(statement):
    found = in_fresh_interpreter(statement)
    assert found["backends"] == []
    assert found["arrays"] == 0


def test_a_started_backend_would_be_seen():
    assert in_fresh_interpreter("import jax.numpy; x = jax.numpy.zeros(1)")["backends"]


@pytest.mark.parametrize("module", ["vbsix", "vbsix.cli"])
def test_importing_leaves_the_heavy_libraries_alone(module):
    loaded = set(in_fresh_interpreter(f"import {module}")["modules"])
    assert not loaded & {"jax", "numpy", "matplotlib", "pooch", "equinox"}


def test_every_public_name_is_there_and_documented():
    assert set(vbsix.__all__) <= set(dir(vbsix))
    for name in set(vbsix.__all__) - {"__version__"}:
        assert getattr(vbsix, name).__doc__, f"vbsix.{name} has no docstring"


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'exekute'"):
        vbsix.exekute  # noqa: B018
