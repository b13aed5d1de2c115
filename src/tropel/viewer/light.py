"""Light under which colours look as they are meant, in the world as in the legend beside it."""

from __future__ import annotations

from typing import Any

#: From all sides, and from above; found by comparing what a browser draws with the colours asked for.
_ALL_AROUND, _FROM_ABOVE = 2.0, 1.3


def light_up(server: Any) -> None:
    """Even light from all sides and a little from above, so that bodies have an upper side.

    viser's own lights and surroundings wash colours out until groups can hardly be told apart.
    """
    scene = server.scene
    scene.configure_default_lights(False)
    scene.configure_environment_map(None)
    scene.add_light_ambient("/light/around", intensity=_ALL_AROUND)
    scene.add_light_directional("/light/above", intensity=_FROM_ABOVE, position=(-0.3, -0.4, 1.0))
