from __future__ import annotations

import errno
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import jax
import pytest
from cli.conftest import call_vbsix
from training.tiny import ARGUMENTS, LOOP_ARGUMENTS, LOOP_CONFIG, to_arguments

from vbsix.config.choosing import choose_config
from vbsix.config.presets import QUICK, preset
from vbsix.config.toml import read_toml
from vbsix.runs.folder import open_run
from vbsix.runs.metrics import read_metrics
from vbsix.utilities import jax_settings
from vbsix.utilities.jax_settings import prepare_jax

pytestmark = pytest.mark.integration


TANGRAMS = "tiny-1\t1:0 2:1\tremove the first one\t1:1\n"
STEPS = LOOP_CONFIG.training.steps


@pytest.fixture(scope="module")
def ended(tmp_path_factory):
    """The folder of a run and what was printed."""
    folder = tmp_path_factory.mktemp("runs") / "first"
    code, out, err = call_vbsix("train", *LOOP_ARGUMENTS, f"--out={folder}")
    assert (code, err) == (0, "")
    assert open_run(folder).config == LOOP_CONFIG
    return folder, out


def test_progress_is_printed_in_plain_lines(ended):
    folder, out = ended
    lines = out.splitlines()
    assert lines[0] == "vbsix-stochastic (changed: 18 settings) learns tangrams from 20 examples, 2 seeds"
    assert lines[1] == f"run folder: {folder}"
    assert any(line.startswith(f"step 12/{STEPS} ") and " hit " in line and "policy loss" in line for line in lines)
    assert any(line.startswith(f"step {STEPS}  held-out accuracy, 2 instructions: ") for line in lines)
    assert "\x1b" not in out


def test_at_the_end_it_prints_the_accuracies_and_what_to_try_next(ended):
    folder, out = ended
    rows = re.findall(r"^  (\S.*?)  +([12])( +(?:[\d.]+%|-)){3}  $", out, re.MULTILINE)
    assert [row[:2] for row in rows] == [
        *[(split, length) for split in ("dev", "held-out phrasings") for length in "12"],
        ("spurious, dev", "2"),
        ("spurious, held-out phrasings", "2"),
        ("spurious, found in training", "1"),
    ]
    for number in (1, 2):
        for split in ("dev", "held-out phrasings"):
            assert f"{split}, example {number}: " in out
    for command in ("evaluate", "parse", "plot"):
        assert f"  vbsix {command} {folder}" in out


def test_the_result_is_one_json_object(ended):
    folder, _ = ended
    result = json.loads((folder / "result.json").read_text())
    names = ("method", "recipe", "domain", "steps")
    assert [result[name] for name in names] == ["vbsix", "stochastic", "tangrams", STEPS]
    for split in ("dev", "held-out"):
        assert result["accuracy"][split].keys() == {"1", "2"}
        assert all(len(shares) == 2 for shares in result["accuracy"][split].values())
        assert len(result["spurious"][split]) == 2
    assert len(result["spurious"]["train"]) == 2
    assert result["accuracy"]["dev"]["2"][1] == read_metrics(folder / "metrics.jsonl")[-1]["accuracy"]["dev"]["2"]


def test_ctrl_c_saves_and_says_how_to_continue(tmp_path):
    folder, later = tmp_path / "a run", 100_000
    longer = to_arguments(
        dict.fromkeys(("training.steps", "training.value_ranking_start", "run.evaluate_every"), later)
    )
    command = [sys.executable, "-m", "vbsix", "train", *LOOP_ARGUMENTS, *longer, f"--out={folder}"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        while process.poll() is None and not read_metrics(folder / "metrics.jsonl"):
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        before = time.perf_counter()
        out, err = process.communicate()
    assert time.perf_counter() - before < 60, "a moment on a quiet machine"
    assert process.returncode == 130
    assert "Stopping after this chunk of steps" in out
    (newest, *_) = sorted((folder / "checkpoints").iterdir(), reverse=True)
    step = int(newest.name.removeprefix("step-"))
    assert err.endswith(f"Stopped after step {step} of {later}. Continue with: vbsix train --resume '{folder}'\n")
    assert "Traceback" not in err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--method=vbsics"], "unknown method 'vbsics'. Did you mean 'vbsix'?"),
        (["--recipe=publisht"], "unknown recipe 'publisht'. Did you mean 'published'?"),
        (["--variant=oov-words+beam64"], "unknown variant 'beam64'. Did you mean 'beam-64'?"),
        (["tangram"], "unknown domain 'tangram'. Did you mean 'tangrams'?"),
        (["--set=search.bean=3"], "unknown setting 'search.bean'. Did you mean 'search.beam'?"),
        (["--set=search.beam"], "'search.beam' is not a setting: write NAME=VALUE"),
        (["--set=search.beam=many"], "search.beam: expected a whole number, not 'many'"),
        (["--data=missing"], "missing: no such folder; give a folder with SCONE's files, a file of JSON lines"),
        (["--data=."], "tangrams-train.tsv: no such file"),
        (["--config=missing.toml"], "missing.toml: no such file"),
        (["--out=s3://bucket/run"], "s3:/bucket/run: a URL. Give a folder"),
        (["--resume=."], ".: holds no run"),
        (["--resume=.", "--seeds=3"], "--resume continues a run as it was begun"),
        (["--resume=.", "--set=search.beam=3"], "--resume continues a run as it was begun"),
    ],
)
def test_what_the_user_can_fix_is_one_message(vbsix, tmp_path, monkeypatch, arguments, message):
    monkeypatch.chdir(tmp_path)
    ended = vbsix("train", *arguments)
    assert (ended.code, ended.out) == (2, "")
    assert ended.err.startswith("error: ")
    assert message in ended.err
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "tangrams-train.tsv: no rows in the file"),
        ("one\t1:r_ 2:__\tgo\t1:__\n", "tangrams-train.tsv:1: the first world: position 1 ('r_')"),
        (TANGRAMS, "an example of 4 utterances cannot be made of 1"),
    ],
)
def test_data_that_does_not_fit_is_one_message(vbsix, tmp_path, content, message):
    data = tmp_path / "data"
    data.mkdir()
    for split in ("train", "dev"):
        (data / f"tangrams-{split}.tsv").write_text(content)
    ended = vbsix("train", f"--data={data}", f"--out={tmp_path / 'run'}")
    assert ended.code == 2
    assert message in ended.err
    assert not (tmp_path / "run").exists()


def test_a_folder_that_holds_a_run_is_left_alone(vbsix, ended):
    folder, _ = ended
    before = (folder / "run.json").read_bytes()
    again = vbsix("train", *ARGUMENTS, f"--out={folder}")
    assert again.code == 2
    assert again.err == f"error: {folder}: is in use already; give another folder, or continue it with --resume.\n"
    assert (folder / "run.json").read_bytes() == before


def test_a_folder_that_cannot_be_made_is_one_message(vbsix, tmp_path):
    (tmp_path / "file").touch()
    ended = vbsix("train", *ARGUMENTS, f"--out={tmp_path / 'file' / 'run'}")
    assert (ended.code, ended.out) == (2, "")
    assert ended.err == f"error: {tmp_path / 'file' / 'run'}: Not a directory\n"


def test_a_full_disk_is_one_message(vbsix, tmp_path, monkeypatch):
    def full(descriptor):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("os.fsync", full)
    ended = vbsix("train", *ARGUMENTS, f"--out={tmp_path / 'run'}")
    assert (ended.code, ended.out) == (2, "")
    assert ended.err == f"error: {tmp_path / 'run' / 'words.safetensors'}: No space left on device\n"


def test_config_show_prints_what_train_reads(vbsix, tmp_path):
    ended = vbsix("config", "show", "scene", "--method", "mml", "--recipe", "published", "--set", "search.beam=64")
    assert (ended.code, ended.err) == (0, "")
    (tmp_path / "scene.toml").write_text(ended.out)
    assert read_toml(tmp_path / "scene.toml")["search.beam"] == 64
    chosen = choose_config(None, "folder", None, None, None, tmp_path / "scene.toml", {"search.beam": 32})
    assert chosen == preset("scene", "mml", "published")


def test_config_show_has_the_quick_settings_too(vbsix):
    assert f"steps = {QUICK['training.steps']}\n" in vbsix("config", "show", "--quick").out


def test_config_show_knows_domains_and_methods(vbsix):
    assert "Did you mean 'scene'?" in vbsix("config", "show", "scen").err
    assert "Did you mean 'mml'?" in vbsix("config", "show", "--method", "mm").err
    assert "Did you mean 'published'?" in vbsix("config", "show", "--recipe", "publish").err
    assert "Did you mean 'suffixes'?" in vbsix("config", "show", "--variant", "suffix").err


@pytest.fixture
def no_cache():
    before = jax.config.jax_compilation_cache_dir
    jax.config.update("jax_compilation_cache_dir", None)
    yield
    jax.config.update("jax_compilation_cache_dir", before)


def test_what_is_compiled_is_kept_for_the_next_time(no_cache, monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    prepare_jax()
    assert jax.config.jax_compilation_cache_dir == str(tmp_path / "vbsix" / "jax")
    monkeypatch.setenv("XDG_CACHE_HOME", "elsewhere")
    prepare_jax()
    assert jax.config.jax_compilation_cache_dir == str(tmp_path / "vbsix" / "jax")


def test_it_is_kept_at_home_by_default(no_cache, monkeypatch, tmp_path):
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(Path, "home", lambda: tmp_path)
    prepare_jax()
    assert jax.config.jax_compilation_cache_dir == str(tmp_path / ".cache" / "vbsix" / "jax")


def test_flags_are_added_to_those_of_the_user(monkeypatch):
    monkeypatch.setattr(jax_settings, "count_cores", lambda: 3)
    monkeypatch.setattr(jax_settings, "GPU_DEVICES", ("/",))
    monkeypatch.setenv("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
    monkeypatch.setenv("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=true --xla_dump_to=x")
    jax_settings.set_flags()
    once = os.environ["XLA_FLAGS"]
    assert once.startswith(
        "--xla_cpu_multi_thread_eigen=true --xla_dump_to=x --xla_cpu_collective_call_terminate_timeout_seconds=86400 "
    )
    (graphs,) = re.findall(r"--xla_gpu_enable_command_buffer=(\S+)", once)
    assert "FUSION" in graphs.split(",") and not {"WHILE", "CONDITIONAL"} & set(graphs.split(",")), "they may crash"
    assert "multi_thread_eigen=false" not in once
    jax_settings.set_flags()
    assert os.environ["XLA_FLAGS"] == once
    monkeypatch.setattr(jax_settings, "GPU_DEVICES", ())
    monkeypatch.delenv("XLA_FLAGS")
    jax_settings.set_flags()
    own = os.environ["XLA_FLAGS"].split()
    assert {"--xla_cpu_multi_thread_eigen=false", "--xla_force_host_platform_device_count=3"} < set(own)
    assert not any("gpu" in flag for flag in own)
    monkeypatch.setenv("JAX_NUM_CPU_DEVICES", "2")
    monkeypatch.delenv("XLA_FLAGS")
    jax_settings.set_flags()
    assert "device_count" not in os.environ["XLA_FLAGS"]
