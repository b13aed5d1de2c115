"""The world's part of a checkpoint, read and checked before any of it is put back, and the digest of its geometry."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from tropel.errors import CheckpointError, ParameterError, is_finite
from tropel.world import shapes
from tropel.world.goals import Target, restored_target
from tropel.world.hazards import Hazard
from tropel.world.motion import MotionLike, position_at, restored_motion
from tropel.world.obstacles import Obstacle

if TYPE_CHECKING:
    from tropel.world.world import World


@dataclass(frozen=True, kw_only=True)
class WorldState:
    """Everything in a world that changes, as `World.put_back` takes it."""

    time: float
    doors: dict[str, bool]
    exits: dict[str, bool]
    targets: dict[str, Target]
    goal_numbers: dict[str, int]
    obstacles: dict[str, Obstacle]
    hazards: dict[str, tuple[Hazard, float]]  #: with the time at which they had their given size [s]


def digest_of(world: World) -> str:
    """Digest of what a world was built from: the geometry and the names in it."""
    parts = {
        "dim": world.dim,
        "bounds": world.bounds.tolist(),
        "segments": hashlib.sha256(world.segments.tobytes()).hexdigest(),
        "exits": {name: e.polygon.wkt for name, e in world.exits.items()},
        "regions": {name: r.wkt for name, r in world.regions.items()},
        **({"rooms": {name: r.wkt for name, r in world.rooms.items()}} if world.rooms else {}),
        "region_boxes": {name: [b.tolist() for b in box] for name, box in world.region_boxes.items()},
        "doors": {name: [s.start, s.stop] for name, s in world.door_rows.items()},
    }
    if world.is_periodic:
        parts["period"] = world.period.tolist()
    if world.dim == 3 and not world.walled.all():
        parts["walled"] = world.walled.tolist()
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


def read_world_state(world: World, stored: Any) -> WorldState:
    """Read what `World.state` returned; functions that move objects are taken from the present world."""
    told = _mapping(stored, "world")
    time = _number(told.get("time"), "world.time")
    if time < 0.0:
        raise CheckpointError(f"world.time in it is {time:g} s; a run begins at 0")
    targets = {n: _target(world, n, e, time) for n, e in _mapping(told.get("targets"), "world.targets").items()}
    return WorldState(
        time=time,
        doors=_switches(told.get("doors"), world.doors, "door"),
        exits=_switches(told.get("exits"), world.exits, "exit"),
        targets=targets,
        goal_numbers=_goal_numbers(told.get("goal_numbers"), world, targets),
        obstacles={
            n: _obstacle(world, n, e, time) for n, e in _mapping(told.get("obstacles"), "world.obstacles").items()
        },
        hazards={n: _hazard(world, n, e, time) for n, e in _mapping(told.get("hazards"), "world.hazards").items()},
    )


def _mapping(told: Any, what: str) -> dict[str, Any]:
    if not isinstance(told, Mapping):
        raise CheckpointError(f"{what} in it is {told!r:.40}, not a table of names")
    return dict(told)


def _number(value: Any, what: str) -> float:
    if isinstance(value, bool) or not is_finite(value):
        raise CheckpointError(f"{what} in it is {value!r:.40}, not a finite number")
    return float(value)


def _switches(told: Any, known: Mapping[str, Any], what: str) -> dict[str, bool]:
    """Whether each door or exit is open; the names must be those of this world."""
    found = _mapping(told, f"world.{what}s")
    if set(found) != set(known):
        odd = ", ".join(sorted(set(found) ^ set(known)))
        raise CheckpointError(f"the {what}s in it are not those of this world: {odd}")
    for name, is_open in found.items():
        if not isinstance(is_open, bool):
            raise CheckpointError(f"{what} '{name}' in it is {is_open!r:.40}, neither open (true) nor closed (false)")
    return {name: found[name] for name in known}


def _goal_numbers(told: Any, world: World, targets: Mapping[str, Target]) -> dict[str, int]:
    """Goal numbers, which agents refer to: those of exits never change, and none is missing or given twice."""
    found = _mapping(told, "world.goal_numbers")
    numbers = list(found.values())
    whole = all(type(number) is int for number in numbers)
    if not whole or sorted(numbers) != list(range(len(numbers))):
        raise CheckpointError(f"world.goal_numbers in it are {numbers!r:.60}, not the numbers from 0 on, each once")
    for name in world.exits:
        if found.get(name) != world.goal_numbers[name]:
            raise CheckpointError(
                f"exit '{name}' has the goal number {found.get(name)!r:.40} in it; in this world it has another"
            )
    for name in targets:
        if name not in found or name in world.exits:
            raise CheckpointError(f"target '{name}' in it has no goal number of its own")
    return found


def _target(world: World, name: str, entry: Any, time: float) -> Target:
    told = _mapping(entry, f"target '{name}'")
    if not isinstance(told.get("absorbs"), bool):
        raise CheckpointError(f"target '{name}' in it has absorbs = {told.get('absorbs')!r:.40}, not true or false")
    target = _made(f"target '{name}'", lambda: restored_target(name, told, world.targets))
    _place(world, f"target '{name}'", target.position, target.motion, time)
    if target.position is not None:
        world.check_inside(shapes.point(target.position, f"target '{name}'", dim=world.dim), f"target '{name}'")
    return target


def _obstacle(world: World, name: str, entry: Any, time: float) -> Obstacle:
    told = _mapping(entry, f"obstacle '{name}'")
    motion = told.get("motion")
    if motion == "function":
        obstacle = _declared(world.obstacles, "obstacle", name)
    else:
        moved = None if motion is None else _made(f"obstacle '{name}'", lambda: restored_motion(motion))
        obstacle = _made(
            f"obstacle '{name}'",
            lambda: Obstacle(
                radius=told["radius"], position=told.get("position"), motion=moved, type=_kind(told.get("type"), name)
            ),
        )
    world.obstacles.check(name, obstacle, time=time)
    return obstacle


def _hazard(world: World, name: str, entry: Any, time: float) -> tuple[Hazard, float]:
    told = _mapping(entry, f"hazard '{name}'")
    since = _number(told.pop("since", None), f"hazard '{name}': since")
    motion = told.get("motion")
    if motion == "function":
        told["motion"] = _declared(world.hazards, "hazard", name).motion
    elif motion is not None:
        told["motion"] = _made(f"hazard '{name}'", lambda: restored_motion(motion))
    _kind(told.get("kind"), name)
    for key in ("replan", "deadly"):
        if not isinstance(told.get(key), bool):
            raise CheckpointError(f"hazard '{name}' in it has {key} = {told.get(key)!r:.40}, not true or false")
    if told.get("position") is not None:
        told["position"] = tuple(shapes.point(told["position"], f"hazard '{name}'", dim=world.dim).tolist())
    hazard = _made(f"hazard '{name}'", lambda: Hazard(**told))
    _place(world, f"hazard '{name}'", hazard.position, hazard.motion, time)
    return hazard, since


def _declared(things: Any, what: str, name: str) -> Any:
    if name not in things or things[name].motion is None:
        raise ParameterError(f"{what} '{name}' moves by a function that this script does not define; define it")
    return things[name]


def _kind(value: Any, name: str) -> str:
    if not isinstance(value, str):
        raise CheckpointError(f"'{name}' in it is of the kind {value!r:.40}, which is not a text")
    return value


def _place(world: World, what: str, position: Any, motion: MotionLike | None, time: float) -> None:
    """Raise if an object is not at a valid place in this world."""
    if motion is not None:
        position_at(motion, time, what=what, dim=world.dim)
    else:
        shapes.point(position, what, dim=world.dim)


def _made(what: str, make: Any) -> Any:
    """The result of `make`, or a CheckpointError that names the object with the invalid entry."""
    try:
        return make()
    except (ValidationError, TypeError, KeyError, ValueError) as error:
        why = error.errors()[0]["msg"] if isinstance(error, ValidationError) else f"{type(error).__name__}: {error}"
        raise CheckpointError(f"{what} in it cannot be read ({why})") from error
