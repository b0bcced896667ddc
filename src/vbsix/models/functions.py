"""The policy and the critic as search takes them: functions of one state of an example."""

from __future__ import annotations

from collections.abc import Callable

from jaxtyping import Array, Bool, Float

from vbsix.domains.base import State

PolicyFunction = Callable[[State, Bool[Array, " A"]], Float[Array, " A"]]
"""log π(a | s) of all tokens, given one state and which tokens are valid there. Invalid tokens are dropped afterwards,
whatever their probability."""
ValueFunction = Callable[[State], Float[Array, ""]]
"""V(s, y), an estimate of the expected reward from one state."""
AttentionFunction = Callable[[State], Float[Array, "M T"]]
"""The attention to each word of all utterances in one state; 0 outside of the current utterance."""
