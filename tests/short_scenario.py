"""A scenario file that takes a moment to run: a room of 8 m by 6 m with an exit in the east."""

from __future__ import annotations


def short_scenario(settings: str = 'until = "empty"\nlimit = 60.0', *, count: int = 12, exits: str = "") -> str:
    return f"""
name = "short"
{settings}

[world]
walkable = {{ box = [0.0, 0.0, 8.0, 6.0] }}

[world.exits]
east = {{ box = [7.0, 2.0, 8.0, 4.0] }}
{exits}

[[groups]]
name = "people"
count = {count}
region = {{ box = [0.0, 0.0, 5.0, 6.0] }}
"""
