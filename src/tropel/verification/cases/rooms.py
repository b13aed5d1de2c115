"""Rooms joined by an opening or a passage: the variant of a scene that several cases build."""

from __future__ import annotations

from typing import Any


def joined_rooms(
    *, size: float, width: float, length: float, behind: float, exit_name: str, exit_depth: float
) -> dict[str, Any]:
    """A square room, a passage in the middle of its right side, and a space with the exit behind it [m]."""
    end, middle = size + length, size / 2
    far = end + behind
    return {
        "world.walkable": [
            {"box": [0.0, 0.0, size, size]},
            {"box": [size, middle - width / 2, end, middle + width / 2]},
            {"box": [end, 0.0, far, size]},
        ],
        f"world.exits.{exit_name}": {"box": [far - exit_depth, 0.0, far, size]},
    }
