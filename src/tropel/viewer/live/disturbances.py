"""What a click on the page means, and what a user of the page does to the world, as events.

First the place on the ground, and the agent, door or thing there. Then the disturbances: each function reads the
simulation between two steps and returns the events that make the change. Like all events they are checked when they are
scheduled. These functions check what else can be wrong at this moment, because an event that fails in the middle of a
step ends the run.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from tropel import events
from tropel.agents.groups import Group
from tropel.contracts.offers import OfferedField, offered
from tropel.errors import ViewError
from tropel.events.base import Event
from tropel.events.ground import AddHazard, GrowHazard, MoveHazard, RemoveHazard
from tropel.recording.scene import Scene
from tropel.viewer.frame import Frame, in_space
from tropel.world.places import PlaceLike

if TYPE_CHECKING:
    from tropel.simulation import Simulation


Floats = NDArray[np.float64]
_T = TypeVar("_T")
_Point = Sequence[float] | Floats

#: How far a click may miss something, as a share of the distance to the camera.
_NEAR = 0.008


@dataclass(frozen=True, eq=False, kw_only=True)
class Ray:
    """A ray from the eye through the clicked place."""

    origin: Floats
    direction: Floats  #: of length 1

    @classmethod
    def of(cls, origin: _Point, direction: _Point) -> Ray:
        ahead = np.asarray(direction, dtype=np.float64)
        return cls(origin=np.asarray(origin, dtype=np.float64), direction=ahead / np.linalg.norm(ahead))

    @classmethod
    def through(cls, eye: _Point, point: _Point) -> Ray:
        return cls.of(eye, np.asarray(point, dtype=np.float64) - np.asarray(eye, dtype=np.float64))

    def distances(self, points: Floats) -> tuple[Floats, Floats]:
        """How far points are from the ray, and how far along it [m]."""
        away = points - self.origin
        along = away @ self.direction
        beside = np.linalg.norm(away - along[:, None] * self.direction, axis=1)
        return np.where(along > 0.0, beside, np.inf), along


def place_of(ray: Ray, scene: Scene) -> Floats | None:
    """The place that a click means: on the ground of a plan, or in space at the depth of the middle of the world."""
    low, high = np.array(scene.bounds, dtype=np.float64)
    if scene.dim == 3:
        middle = 0.5 * (low + high)
        along = float((middle - ray.origin) @ ray.direction)
        return np.clip(ray.origin + max(along, 0.0) * ray.direction, low, high)
    if abs(ray.direction[2]) < 1e-9 or (along := -ray.origin[2] / ray.direction[2]) <= 0.0:
        return None
    return np.asarray((ray.origin + along * ray.direction)[:2])


def agent_at(ray: Ray, frame: Frame) -> int | None:
    """The id of the clicked agent, or of one next to the click."""
    points = in_space(frame.position).astype(np.float64)
    if frame.position.shape[1] == 2:
        points[:, 2] = frame.radius  # bodies stand on the ground
    return _nearest(ray, points, frame.radius, frame.id.tolist())


def thing_at(ray: Ray, frame: Frame) -> tuple[str, str] | None:
    """Kind and name of the clicked obstacle, hazard or target."""
    for kind, discs in (("target", frame.targets), ("hazard", frame.hazards), ("obstacle", frame.obstacles)):
        name = _nearest(ray, in_space(discs.position).astype(np.float64), discs.radius, discs.names)
        if name is not None:
            return kind, name
    return None


def door_at(place: Floats, lines: Mapping[str, Floats], ray: Ray) -> str | None:
    """The door next to a place on the ground."""
    reach = 1.5 * _NEAR * float(np.linalg.norm(in_space(place[None])[0] - ray.origin))
    best: tuple[float, str] | None = None
    for name, segments in lines.items():
        begin, along = segments[:, :2], segments[:, 2:] - segments[:, :2]
        share = ((place - begin) * along).sum(axis=1) / np.maximum((along**2).sum(axis=1), 1e-12)
        away = float(np.linalg.norm(begin + np.clip(share, 0.0, 1.0)[:, None] * along - place, axis=1).min())
        if away <= reach and (best is None or away < best[0]):
            best = away, name
    return None if best is None else best[1]


def _nearest(ray: Ray, points: Floats, radius: Floats, names: Sequence[_T]) -> _T | None:
    if not len(points):
        return None
    beside, along = ray.distances(points)
    # A click within a body hits it, however large others are.
    beyond = np.maximum(beside - radius, 0.0)
    best = int(np.lexsort((beside, beyond))[0])
    return names[best] if beyond[best] <= _NEAR * along[best] else None


Place = Sequence[float] | NDArray[np.float64]


def obstacle(sim: Simulation, place: Place, *, radius: float) -> list[Event]:
    """A round obstacle at the clicked place."""
    place = _plain(place)
    name = _new_name("obstacle", sim.world.obstacles.names, sim)
    return [events.AddObstacle(name=name, radius=radius, position=place)]


def fire(sim: Simulation, place: Place, *, inner: float, outer: float, replan: bool) -> list[Event]:
    """A fire: agents within `inner` [m] die, and up to `outer` [m] it is avoided."""
    place = _plain(place)
    name = _new_name("fire", sim.world.hazards.names, sim)
    return [AddHazard(name=name, inner=inner, outer=max(inner, outer), position=place, replan=replan)]


def plans_around_hazards(sim: Simulation) -> bool:
    """Whether any planner has fields on cells, in which hazards block cells."""
    return bool(offered(sim.planners.values(), OfferedField))


def attractor(sim: Simulation, place: Place, *, radius: float, group: str | None) -> list[Event]:
    """A place that a group, or all groups, go to from now on."""
    place = _plain(place)
    _check_goes_there(sim, place)
    name = _new_name("attractor", sim.world.goal_numbers, sim)
    return [
        events.AddTarget(name=name, position=place, radius=radius),
        events.SetGoal(goal=name, group=group),
    ]


def people(sim: Simulation, place: Place, *, within: float, group: str, count: int) -> list[Event]:
    """More agents of a group, around a place."""
    place = _plain(place)
    added = events.AddAgents(
        group=group, count=count, around=place, within=within, goal=_usual_goal(sim, group), **_body(sim, group)
    )
    sim.population.check_room(Group(group, **added.what(sim.world)), time=sim.time, step=sim.step_number)
    return [added]


def door(sim: Simulation, name: str) -> list[Event]:
    """Toggle a door: an open one closes, a closed one opens."""
    return [events.CloseDoor(door=name) if sim.world.doors[name].open else events.OpenDoor(door=name)]


def move(sim: Simulation, kind: str, name: str, place: Place) -> list[Event]:
    """Move an obstacle, hazard or target."""
    place = _plain(place)
    if kind == "target":
        _check_goes_there(sim, place)
        return [events.MoveTarget(name=name, position=place)]
    moved = events.MoveObstacle if kind == "obstacle" else MoveHazard
    return [moved(name=name, position=place)]


def remove(sim: Simulation, kind: str, name: str) -> list[Event]:
    """Remove a thing; agents that were going to a removed target return to the first goal of their group."""
    removed = {"obstacle": events.RemoveObstacle, "hazard": RemoveHazard}.get(kind, events.RemoveTarget)
    return [removed(name=name)]


def resize(sim: Simulation, kind: str, name: str, radius: float) -> list[Event]:
    """Give an obstacle or a hazard another radius [m]."""
    if kind == "hazard":
        return [GrowHazard(name=name, inner=radius)]
    if kind == "target":
        raise ViewError(f"the size of target '{name}' cannot be changed; drop another one")
    old = sim.world.obstacles.find(name)
    if old.position is None:
        raise ViewError(f"obstacle '{name}' moves by itself, so its size cannot be changed")
    return [
        events.RemoveObstacle(name=name),
        events.AddObstacle(name=name, radius=radius, position=_plain(old.position), type=old.type),
    ]


# Checks ---------------------------------------------------------------------------------------------------------


def _check_goes_there(sim: Simulation, place: Place) -> None:
    """A target must be inside the world, and where planners find a path to it."""
    point = np.asarray(place, dtype=np.float64)
    sim.world.check_inside(point, "the attractor")
    # Where a field is only one part of a blend, the other parts lead there without it.
    for field in (each for each in offered(sim.planners.values(), OfferedField) if each.alone):
        raster = field.draw(sim.world)
        if not raster.free[tuple(raster.index_of(point))]:
            raise ViewError(f"agents cannot stand at {_text(place)}: too near a wall or an obstacle; click elsewhere")


def _new_name(stem: str, taken: Iterable[str], sim: Simulation) -> str:
    """A name that nothing of this kind has, or will get from a pending event."""
    waiting = {getattr(event, "name", "") for _, _, event in sim.events}
    used = {*taken, *waiting}
    return next(name for k in itertools.count(1) if (name := f"{stem} {k}") not in used)


def _usual_goal(sim: Simulation, group: str) -> PlaceLike:
    """The goal with which a group was declared."""
    return sim.population.declared_goal(group)


def _body(sim: Simulation, group: str) -> dict[str, Any]:
    """Radius, speed and sense radius like those of the group's present members."""
    rows = sim.population.members([sim.groups.index(group)])
    if not len(rows):
        return {}
    names = ("radius", "desired_speed", "sense_radius")
    return {name: float(np.median(sim.agents.columns[name][rows])) for name in names}


def _plain(place: Place) -> tuple[float, ...]:
    """Rounded to the millimetre, so that files stay readable; what is recorded is what happens."""
    return tuple(round(float(c), 3) for c in place)


def _text(place: Place) -> str:
    return "(" + ", ".join(f"{c:.2f}" for c in place) + ")"
