from __future__ import annotations

import gc
import importlib.util
import os
from pathlib import Path

import hypothesis

# Most of the time of the tests goes into compiling, so less of it is done: XLA optimises little, and what was compiled
# once is found on disk by other test files. It is said here for the processes that tests start, too; jax reads it when
# it is imported.
os.environ.setdefault(
    "XLA_FLAGS",
    "--xla_backend_optimization_level=0 --xla_cpu_use_fusion_emitters=false --xla_cpu_multi_thread_eigen=false "
    "--xla_force_host_platform_device_count=1",
)
os.environ["JAX_COMPILATION_CACHE_DIR"] = str(Path(__file__).parents[1] / ".jax_cache")
os.environ["JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS"] = "0.3"

import jax
import pytest
from jaxtyping import install_import_hook

# Shapes and types are checked at run time in tests. It must come before the first import of vbsix.
if importlib.util.find_spec("beartype"):
    install_import_hook("vbsix", "typechecker.check")

jax.config.update("jax_numpy_rank_promotion", "raise")

# Tracing makes millions of small objects that stay for a while: looking for cycles among them took a tenth of the time.
gc.set_threshold(200_000, 20, 100)

# Compiling inside a test makes its first example slow, so there is no deadline. CI must not fail by chance.
hypothesis.settings.register_profile("local", deadline=None)
hypothesis.settings.register_profile("ci", deadline=None, derandomize=True)
hypothesis.settings.load_profile("ci" if os.environ.get("CI") else "local")

LONGEST = (
    "test_methods.py",
    "test_playground.py",
    "test_devices.py",
    "test_step.py",
    "test_resume.py",
    "test_against_reference.py",
    "test_run.py",
    "test_golden.py",
    "test_train_cli.py",
    "test_parser.py",
    "test_reproduction.py",
    "test_critic.py",
)
"""Test files of half a minute and more. They come first, lest a worker be left with one when the others are done."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    place = {name: number for number, name in enumerate(LONGEST)}
    items.sort(key=lambda item: place.get(item.path.name, len(LONGEST)))


@pytest.fixture(scope="module", autouse=True)
def forget_compiled():
    """Thousands of compiled functions in one process run into the limit on its memory maps, and it crashes.

    Until then they stay: most test files begin with the same hundred small functions.
    """
    yield
    maps = Path("/proc/self/maps")  # Linux has it, and 65,530 of them at most; a test file leaves some thousands
    if not maps.exists() or maps.read_bytes().count(b"\n") > 15_000:
        jax.clear_caches()


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """Third-party data, which is never committed. CI must have it: a test that skips there would prove nothing."""
    if not (folder := os.environ.get("VBSIX_DATA")):
        reason = "VBSIX_DATA is not set: it names the folder that holds scone/ and glove/"
        (pytest.fail if os.environ.get("CI") else pytest.skip)(reason)
    return Path(folder)


@pytest.fixture(scope="session")
def scone_data(data_dir: Path) -> Path:
    return data_dir / "scone"


@pytest.fixture(scope="session")
def glove_file(data_dir: Path) -> Path:
    return data_dir / "glove" / "glove.6B.100d.txt"


@pytest.fixture(scope="session")
def golden_dir(data_dir: Path) -> Path:
    """Programs with their outcome after every token."""
    return data_dir.parent / "golden"
