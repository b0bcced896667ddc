from __future__ import annotations

import gc
import importlib.util
import os
from pathlib import Path
from typing import NoReturn

import hypothesis

# Most of the time of the tests goes into compiling, so less of it is done: XLA optimises little, and what was compiled
# once is found on disk by other test files. It is set here for the processes that tests start, too; jax reads it when
# it is imported. All flags that `vbsix` itself would add are among them: with others, nothing would be found.
os.environ.setdefault(
    "XLA_FLAGS",
    "--xla_backend_optimization_level=0 --xla_cpu_use_fusion_emitters=false --xla_cpu_multi_thread_eigen=false "
    "--xla_cpu_collective_call_terminate_timeout_seconds=86400 --xla_force_host_platform_device_count=1",
)
os.environ["JAX_COMPILATION_CACHE_DIR"] = str(Path(__file__).parents[1] / ".jax_cache")
os.environ["JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS"] = "0.3"

import jax
import pytest
from jaxtyping import install_import_hook

# Shapes and types are checked at run time in tests. It must come before the first import of vbsix.
if importlib.util.find_spec("beartype"):
    install_import_hook("vbsix", "typechecker.check")

from vbsix.config.schema import OBJECTIVES
from vbsix.domains import registry
from vbsix.domains.names import BUILT_IN, FROM_FILES
from vbsix.models.config import ENCODERS, POLICIES
from vbsix.search.config import SELECTION_RULES

jax.config.update("jax_numpy_rank_promotion", "raise")

# Tracing makes millions of small objects that stay for a while: looking for cycles among them took a tenth of the time.
gc.set_threshold(200_000, 20, 100)

# Compiling inside a test makes its first example slow, so there is no deadline. CI must not fail by chance.
hypothesis.settings.register_profile("local", deadline=None)
hypothesis.settings.register_profile("ci", deadline=None, derandomize=True)
hypothesis.settings.load_profile("ci" if os.environ.get("CI") else "local")

REGISTRIES = {known.kind: known for known in (ENCODERS, OBJECTIVES, POLICIES, SELECTION_RULES)}
FAMILIES = {
    "whole runs": (
        "test_loop.py",
        "test_resume.py",
        "test_train_cli.py",
        "test_api.py",
        "test_stages.py",
        "test_continuing.py",
        "test_continue_cli.py",
    ),
    "sweeps": ("test_sweep.py", "test_sweep_cli.py"),
    "the tiny run": (
        "test_parser.py",
        "test_spurious.py",
        "evaluation/test_report.py",
        "test_parse_cli.py",
        "test_evaluate_cli.py",
        "test_compare_cli.py",
        "show/test_report.py",
    ),
    "built-in models": (
        "test_pretrained.py",
        "parsing/test_confidence.py",
        "parsing/test_symmetry.py",
        "test_impossible.py",
        "test_playground.py",
        "test_browser.py",
        "test_fuzz.py",
    ),
}
"""Test files that share what is compiled; they run one after the other, and in the same process."""
LONGEST = (
    "test_methods.py",
    "test_step.py",
    *FAMILIES["whole runs"],
    *FAMILIES["sweeps"],
    *FAMILIES["the tiny run"],
    *FAMILIES["built-in models"],
    "test_sharding.py",
    "test_against_reference.py",
    "test_golden.py",
    "test_reproduction.py",
    "test_critic.py",
)
"""The longest test files come first, so that no worker is left with one when the others have finished."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    def place(item: pytest.Item) -> int:
        path = item.path.as_posix()
        return next((number for number, name in enumerate(LONGEST) if path.endswith(f"/{name}")), len(LONGEST))

    items.sort(key=place)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """A process gets whole files, as with `--dist loadfile`, or whole families of them."""
    from xdist.scheduler import LoadFileScheduling

    class ByFamily(LoadFileScheduling):
        def _split_scope(self, nodeid: str) -> str:
            file = super()._split_scope(nodeid)
            return next((name for name, files in FAMILIES.items() if file.endswith(files)), file)

    return ByFamily(config, log)


@pytest.fixture(scope="module", autouse=True)
def forget_compiled():
    """Thousands of compiled functions in one process run into the limit on its memory maps, and it crashes.

    Until then they stay: most test files begin with the same hundred small functions.
    """
    yield
    maps = Path("/proc/self/maps")  # Linux has it, and 65,530 of them at most; a test file leaves some thousands
    if not maps.exists() or maps.read_bytes().count(b"\n") > 40_000:
        jax.clear_caches()


@pytest.fixture(scope="module", autouse=True)
def forget_registered():
    """What the tests of a file register is unknown to the next file: domains, encoders, objectives and the like."""
    built_in = {name: known._built_in for name, known in REGISTRIES.items()} | {"domain": {**BUILT_IN, **FROM_FILES}}
    registered = {name: known._registered for name, known in REGISTRIES.items()} | {"domain": registry._registered}
    before = {name: set(known) for name, known in registered.items()}
    yield
    for kind, known in registered.items():
        for name in set(known) - before[kind] - set(built_in[kind]):
            del known[name]
            registry._origins.pop(name, None)


@pytest.fixture(scope="session")
def tiny_run(tmp_path_factory):
    """A run that tests share, and copy before they change its files."""
    from tiny_run import make_run

    return make_run(tmp_path_factory.mktemp("tiny") / "run")


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """Third-party data, which is never committed. CI must have it: a test that skips there would prove nothing."""
    if not (folder := os.environ.get("VBSIX_DATA")):
        _lack("VBSIX_DATA is not set: it names the folder that holds scone/ and glove/")
    return Path(folder)


def _lack(reason: str) -> NoReturn:
    (pytest.fail if os.environ.get("CI") else pytest.skip)(reason)


@pytest.fixture(scope="session")
def scone_data(data_dir: Path) -> Path:
    return data_dir / "scone"


@pytest.fixture(scope="session")
def glove_file(data_dir: Path) -> Path:
    return data_dir / "glove" / "glove.6B.100d.txt"


@pytest.fixture(scope="session")
def golden_dir(data_dir: Path) -> Path:
    """Programs with their outcome after every token."""
    if not (folder := data_dir.parent / "golden").is_dir():
        _lack(f"{folder} is missing: it holds the golden cases, which cannot be downloaded")
    return folder
