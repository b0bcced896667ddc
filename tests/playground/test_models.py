from __future__ import annotations

from vbsix.playground import models as module
from vbsix.playground.models import built_in_models


def test_built_in_models_are_those_of_the_package(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "files", lambda package: tmp_path)
    assert built_in_models() == []
    (tmp_path / "pretrained").mkdir()
    for name in ("scene.safetensors", "alchemy.safetensors", "README.md"):
        (tmp_path / "pretrained" / name).touch()
    assert [path.stem for path in built_in_models()] == ["alchemy", "scene"]
