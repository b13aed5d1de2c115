"""What can be laid over the world, and how one adds to it.

An overlay looks at the simulation and draws what it saw. Looking happens on the simulation's thread between two steps,
so it must be quick and must return copies; drawing happens on the page's thread and may take its time.

    def look(sim, selected):                     # `selected` is the id of the chosen agent, or None
        return sim.agents.position.copy()

    def draw(canvas, positions):                 # nodes go below canvas.path; canvas.scene is viser's scene
        canvas.scene.add_point_cloud(f"{canvas.path}/points", …)

    register_overlay(Overlay(name="points", title="Where they are", look=look, draw=draw, seconds=0.5))

While it is switched on, `draw` is called about every `seconds`, and never when `look` returned None, which says that
there is nothing to show: then, and when it is switched off, everything below `canvas.path` is removed. Nodes that are
added again under the same name take the place of the old ones.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tropel.errors import ParameterError
from tropel.recording.scene import Scene
from tropel.viewer.shapes3d import OVERLAYS as HEIGHT

if TYPE_CHECKING:
    from tropel.simulation import Simulation


@dataclass(frozen=True, kw_only=True)
class Canvas:
    """Where an overlay draws."""

    scene: Any  #: viser's scene: `add_image`, `add_line_segments`, …
    path: str  #: all nodes of the overlay have names that begin with this and a slash
    world: Scene  #: the world as it was declared
    height: float = HEIGHT  #: overlays on the ground lie here [m], above the ground and below everybody

    def clear(self) -> None:
        self.scene.remove_by_name(self.path)


@dataclass(frozen=True, kw_only=True)
class Overlay:
    """Something to lay over the world."""

    name: str
    title: str  #: beside its switch on the page
    look: Callable[[Simulation, int | None], Any]
    draw: Callable[[Canvas, Any], None]
    seconds: float = 0.5  #: between two looks
    fits: Callable[[Simulation], bool] = lambda sim: True  #: whether it is offered for a simulation


_REGISTERED: dict[str, Overlay] = {}


def register_overlay(overlay: Overlay) -> None:
    """Offer an overlay on every page that is opened from now on."""
    if overlay.name in _REGISTERED and _REGISTERED[overlay.name] != overlay:
        raise ParameterError(f"there is an overlay '{overlay.name}' already; choose another name")
    _REGISTERED[overlay.name] = overlay


def overlays() -> list[Overlay]:
    """All overlays there are, tropel's own first."""
    from tropel.viewer import overlays_ground

    for overlay in overlays_ground.OVERLAYS:
        register_overlay(overlay)
    return list(_REGISTERED.values())
