"""The tab "Disturb": what a click in the world does, the things that can be moved or removed, and group sliders."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import shapely

from tropel.errors import TropelError
from tropel.events.base import Event
from tropel.pictures import style
from tropel.viewer.frame import Frame
from tropel.viewer.live import disturbances
from tropel.viewer.live.disturbances import Ray, agent_at, door_at, place_of, thing_at
from tropel.viewer.live.group_sliders import GroupSliders
from tropel.viewer.shapes3d import TARGETS, lines_of, rgb, unit_ball, unit_ring
from tropel.viewer.world_drawing import extent

if TYPE_CHECKING:
    from tropel.simulation import Simulation
    from tropel.viewer.live.page import Page

SELECT = "selects, or opens a door"
OBSTACLE = "drops an obstacle"
FIRE = "drops a fire"
ATTRACTOR = "drops an attractor"
PEOPLE = "adds people"
REMOVE = "removes a thing"
EVERYBODY = "all groups"
NOTHING = "nothing"


class Tools:
    """What a click in the world does."""

    def __init__(self, page: Page) -> None:
        self._page = page
        gui, groups = page.server.gui, list(page.live.sim.groups)
        size = extent(page.scene)
        self._doors = {name: lines_of(shapely.from_wkt(door["wkt"])) for name, door in page.scene.doors.items()}
        self._tool = gui.add_dropdown("A click", (SELECT, OBSTACLE, FIRE, ATTRACTOR, PEOPLE, REMOVE))
        self._radius = gui.add_slider("Radius [m]", 0.1, _rounded(0.1 * size, least=2.0), 0.1, min(1.0, 0.05 * size))
        self._outer = gui.add_slider(
            "Avoided up to [m]", 0.1, _rounded(0.4 * size, least=4.0), 0.1, min(4.0, 0.2 * size)
        )
        self._replan = gui.add_checkbox(
            "Plan around it", True, hint="Planners look for paths around the fire, also far from it."
        )
        # A control that would change nothing here is not shown.
        self._keeps_away = "hazard influence" in page.live.sim.behaviours
        self._plans_around = disturbances.plans_around_hazards(page.live.sim)
        self._whom = gui.add_dropdown("For group", (EVERYBODY, *groups))
        self._count = gui.add_slider("How many", 1, 500, 1, 20)
        with gui.add_folder("Things"):
            self._thing = gui.add_dropdown("Thing", (NOTHING,))
            self._size = gui.add_slider("Its radius [m]", 0.1, float(self._radius.max), 0.1, 1.0, disabled=True)
            self._take_away = gui.add_button("Remove it", disabled=True)
            gui.add_markdown("You can also drag things with the mouse.")
        self._things: dict[str, tuple[str, str]] = {}
        self._size_shown = 1.0
        self.ghost: Any = None  #: where the thing that is being dragged would go
        self._ghost_node: Any = None
        self._offer()
        self.sliders = GroupSliders(page)
        self._tool.on_update(lambda event: self._offer())
        self._thing.on_update(lambda event: self._show_size())
        self._size.on_update(self._resize)
        self._take_away.on_click(self._take_away_chosen)
        page.server.scene.on_click()(self._clicked)

    @property
    def tool(self) -> str:
        return str(self._tool.value)

    def _offer(self) -> None:
        """Show only the controls that the tool needs."""
        tool = self.tool
        self._radius.visible = tool in (OBSTACLE, FIRE, ATTRACTOR, PEOPLE)
        self._outer.visible = tool == FIRE and self._keeps_away
        self._replan.visible = tool == FIRE and self._plans_around
        self._whom.visible = tool in (ATTRACTOR, PEOPLE)
        self._count.visible = tool == PEOPLE

    # Clicks -----------------------------------------------------------------------------------------------------

    async def _clicked(self, event: Any) -> None:
        # Handed over at once: the event loop of the server must not wait for the simulation.
        self._page.in_background(lambda: self.click(Ray.of(event.ray_origin, event.ray_direction), event.client))

    def click(self, ray: Ray, client: Any = None) -> None:
        """Do what a click along a ray does with the current tool."""
        page, frame = self._page, self._page.frame
        place = place_of(ray, page.scene)
        if frame is None or place is None:
            return
        if self.tool == SELECT:
            self._select(ray, place, frame, client)
        elif self.tool == REMOVE:
            thing = thing_at(ray, frame)
            if thing is not None:
                self.disturb(lambda sim: disturbances.remove(sim, *thing), client)
        else:
            self.disturb(lambda sim: self._dropped(sim, place), client)

    def _select(self, ray: Ray, place: Any, frame: Frame, client: Any) -> None:
        agent = agent_at(ray, frame)
        door = door_at(place, self._doors, ray) if page_is_plan(self._page) else None
        if agent is None and door is not None:
            self.disturb(lambda sim: disturbances.door(sim, door), client)
            return
        if agent is None and (thing := thing_at(ray, frame)) is not None:
            self._choose(thing)
            return
        self._page.panel.selection.choose(agent)

    def _dropped(self, sim: Simulation, place: Any) -> list[Event]:
        radius, whom = float(self._radius.value), str(self._whom.value)
        if self.tool == OBSTACLE:
            return disturbances.obstacle(sim, place, radius=radius)
        if self.tool == FIRE:
            replan = bool(self._replan.value) and self._plans_around
            return disturbances.fire(sim, place, inner=radius, outer=float(self._outer.value), replan=replan)
        group = None if whom == EVERYBODY else whom
        if self.tool == ATTRACTOR:
            return disturbances.attractor(sim, place, radius=radius, group=group)
        return disturbances.people(
            sim, place, within=radius, group=group or sim.groups[0], count=int(self._count.value)
        )

    def disturb(self, make: Callable[[Simulation], list[Event]], client: Any = None) -> None:
        """Schedule events for the next step; if one is impossible, tell the page that asked for it."""
        live = self._page.live
        try:
            live.ask(lambda sim: live.disturb(*make(sim)))
        except TropelError as error:
            self._page.say(str(error), client=client, bad=True)
        self._page.panel.run.show_state()

    # Things -----------------------------------------------------------------------------------------------------

    def show_things(self, frame: Frame) -> None:
        """Keep the list of things up to date."""
        kinds = (("obstacle", frame.obstacles), ("hazard", frame.hazards), ("target", frame.targets))
        things = {name: (kind, name) for kind, discs in kinds for name in discs.names}
        if things == self._things:
            return
        self._things = things
        chosen = self._thing.value
        self._thing.options = (NOTHING, *things)
        self._thing.value = chosen if chosen in things else NOTHING
        self._show_size()

    def _choose(self, thing: tuple[str, str]) -> None:
        self._thing.value = thing[1]
        self._show_size()

    def _show_size(self) -> None:
        frame, chosen = self._page.frame, self._things.get(str(self._thing.value))
        self._take_away.disabled = chosen is None
        self._size.disabled = chosen is None or chosen[0] == "target"
        if frame is None or chosen is None:
            return
        discs = {"obstacle": frame.obstacles, "hazard": frame.hazards}.get(chosen[0], frame.targets)
        if chosen[1] in discs.names:
            radius = float(discs.radius[list(discs.names).index(chosen[1])])
            self._size_shown = min(max(round(radius, 1), 0.1), float(self._size.max))
            self._size.value = self._size_shown

    def _resize(self, event: Any) -> None:
        chosen, radius = self._things.get(str(self._thing.value)), float(self._size.value)
        if chosen is None or radius == self._size_shown:
            return
        self._size_shown = radius
        self.disturb(lambda sim: disturbances.resize(sim, *chosen, radius), event.client)

    def _take_away_chosen(self, event: Any) -> None:
        chosen = self._things.get(str(self._thing.value))
        if chosen is not None:
            self.disturb(lambda sim: disturbances.remove(sim, *chosen), event.client)

    # Dragging ---------------------------------------------------------------------------------------------------

    def let_drag(self, node: Any, kind: str, names: list[str]) -> None:
        """Make the things of a node draggable, each an instance of it; they move to where the mouse is released."""

        async def dragged(event: Any) -> None:
            if event.instance_index is None or event.instance_index >= len(names):
                return
            place = place_of(Ray.through(event.client.camera.position, event.end_position), self._page.scene)
            if place is None:
                return
            if event.phase == "end":
                self._show_ghost(None, 0.0)
                name = names[event.instance_index]
                self._page.in_background(
                    lambda: self.disturb(lambda sim: disturbances.move(sim, kind, name, place), event.client)
                )
            else:
                self._show_ghost(place, float(node.batched_scales[event.instance_index, 0]))

        node.on_drag("left")(dragged)

    def _show_ghost(self, place: Any, radius: float) -> None:
        """Show where a dragged thing would go."""
        scene, flat = self._page.server.scene, page_is_plan(self._page)
        self.ghost = None if place is None else np.asarray(place)
        if place is None:
            scene.remove_by_name("/things/ghost")
            self._ghost_node = None
            return
        where = (*place, 4.0 * TARGETS) if flat else tuple(place)
        if self._ghost_node is not None:
            # Moved, not drawn again: it lies under the mouse, which must not lose what it drags.
            self._ghost_node.position = where
            return
        mesh = unit_ring(inner=0.9) if flat else unit_ball()
        self._ghost_node = scene.add_mesh_simple(
            "/things/ghost",
            *mesh,
            color=rgb(style.TARGET),
            opacity=0.7 if flat else 0.3,
            side="double",
            scale=radius,
            position=where,
            cast_shadow=False,
        )


def page_is_plan(page: Page) -> bool:
    return page.scene.dim == 2


def _rounded(length: float, *, least: float) -> float:
    return float(np.round(max(length, least), 1))
