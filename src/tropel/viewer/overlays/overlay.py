"""What an overlay is, and how to register your own.

An overlay reads the simulation and draws what it found. `look` runs on the simulation's thread between two steps, so
it must be quick, must not change anything and must return copies. `draw` runs on the page's thread and may take its
time.

    def look(sim, selected):                     # `selected` is the id of the selected agent, or None
        return sim.agents.position.copy()

    def draw(canvas, positions):                 # nodes go below canvas.path; canvas.scene is viser's scene
        canvas.scene.add_point_cloud(f"{canvas.path}/points", …)

    register_overlay(Overlay(name="points", title="Where they are", look=look, draw=draw, seconds=0.5))

While the overlay is switched on, `draw` is called about every `seconds`, except when `look` returned None, which means
that there is nothing to show. Then, and when the overlay is switched off, everything below `canvas.path` is removed.
Nodes added again under the same name replace the old ones. Nodes kept in `canvas.nodes` can be changed instead, which
does not flicker. An overlay that raises is switched off, and the page tells why; the run continues.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tropel.errors import ParameterError, named_parameters
from tropel.foundation.arguments import checked_arguments
from tropel.foundation.quantities import number
from tropel.recording.scene import Scene
from tropel.viewer.shapes3d import OVERLAYS as HEIGHT

if TYPE_CHECKING:
    from tropel.simulation import Simulation


@dataclass(frozen=True, eq=False, kw_only=True)
class Canvas:
    """Where an overlay draws."""

    scene: Any  #: viser's scene: `add_image`, `add_line_segments`, …
    path: str  #: all nodes of the overlay have names that begin with this and a slash
    world: Scene  #: the world as it was declared
    height: float = HEIGHT  #: height of overlays on the ground [m], above the ground and below the agents
    nodes: dict[str, Any] = field(default_factory=dict)  #: nodes that the overlay keeps from one drawing to the next

    def clear(self) -> None:
        self.scene.remove_by_name(self.path)
        self.nodes.clear()


@named_parameters
@dataclass(frozen=True, kw_only=True)
class Overlay:
    """Something to draw on top of the world."""

    name: str
    title: str  #: next to its switch on the page
    look: Callable[[Simulation, int | None], Any]
    draw: Callable[[Canvas, Any], None]
    seconds: float = number(0.5, above=0.0, unit="s", about="between two looks")
    fits: Callable[[Simulation], bool] = lambda sim: True  #: whether it is offered for a simulation
    legend: Callable[[Any], str] | None = None  #: text below its switch (Markdown), given what `look` returned
    covers_ground: bool = False  #: paints the ground; only one of these is on at a time, to keep them readable
    after_step: Callable[[Simulation, int | None], None] | None = None  #: called after every step while it is on
    anew: Callable[[], Overlay] | None = None  #: makes a fresh copy when it is switched on, if it remembers anything


_REGISTERED: dict[str, Overlay] = {}


@checked_arguments
def register_overlay(overlay: Overlay) -> None:
    """Offer an overlay on every page opened from now on."""
    if not overlay.name or "/" in overlay.name:
        raise ParameterError(
            f"the name of an overlay is part of a path in the scene, so '{overlay.name}' must not contain a slash"
        )
    known = {own.name: own for own in _own()} | _REGISTERED
    if known.get(overlay.name, overlay) != overlay:
        raise ParameterError(f"an overlay named '{overlay.name}' exists already; choose another name")
    _REGISTERED[overlay.name] = overlay


def forget_overlay(name: str) -> None:
    """Stop offering a registered overlay on pages opened from now on."""
    _REGISTERED.pop(name, None)


def overlays() -> list[Overlay]:
    """All overlays, tropel's own first."""
    return list(({own.name: own for own in _own()} | _REGISTERED).values())


def _own() -> list[Overlay]:
    from tropel.viewer.overlays.agents import LINKS, TRAILS
    from tropel.viewer.overlays.bottlenecks import BOTTLENECKS
    from tropel.viewer.overlays.cells import CONGESTION, DENSITY, OCCUPANCY
    from tropel.viewer.overlays.field import ARROWS, COLOURS
    from tropel.viewer.overlays.knowledge import KNOWLEDGE
    from tropel.viewer.overlays.roadmap import DOOR_GRAPH, PATHS, ROADMAP
    from tropel.viewer.overlays.searched import SEARCHED
    from tropel.viewer.overlays.triangulation import NEAR_SET, TRIANGULATION

    ground = [COLOURS, DENSITY, OCCUPANCY, CONGESTION, SEARCHED]
    plans = [ARROWS, BOTTLENECKS, ROADMAP, PATHS, DOOR_GRAPH]
    return [*ground, *plans, TRIANGULATION, NEAR_SET, LINKS, TRAILS, KNOWLEDGE]
