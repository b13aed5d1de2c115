"""The physics engine, MuJoCo, which is imported when a character is simulated in full and not before."""

from __future__ import annotations

from typing import Any

from tropel.errors import MissingExtraError


def mujoco_package() -> Any:
    """The package `mujoco`, with its `batch`; an error that names the extra if it is missing or too old."""
    try:
        import mujoco
        import mujoco.batch
    except ImportError:
        raise MissingExtraError("simulating riders with full physics", "riders") from None
    return mujoco
