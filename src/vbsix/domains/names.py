"""Names of the built-in domains. No JAX, so that pictures and presets can do without."""

from __future__ import annotations

BUILT_IN = {
    "alchemy": "vbsix.domains.alchemy:Alchemy",
    "alchemy-where": "vbsix.domains.alchemy:AlchemyWhere",
    "scene": "vbsix.domains.scene:Scene",
    "scene-where": "vbsix.domains.scene:SceneWhere",
    "tangrams": "vbsix.domains.tangrams:Tangrams",
    "tangrams-where": "vbsix.domains.tangrams:TangramsWhere",
}
"""Where each is."""
FROM_FILES = {"sail": "vbsix.domains.sail:Sail"}
"""Domains of ours whose worlds are third-party data: known by name, but of no use until their files are fetched."""
WHERE = "-where"
"""Ends the name of a language that remembers where objects were."""


def base_name(name: str) -> str:
    """The paper's domain whose worlds, data and settings a built-in domain has; for all others, their own name."""
    return name.removesuffix(WHERE) if name in BUILT_IN else name
