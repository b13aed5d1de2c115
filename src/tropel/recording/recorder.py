"""From the simulation to a trajectory file: which steps become frames, and what they hold of the state."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import shapely
from numpy.typing import NDArray

from tropel.foundation.arguments import checked_arguments
from tropel.foundation.quantities import Quantity
from tropel.recording.frames import deaths_note, hazards_note, knowledge_note, news_note, squads_note, stages_note
from tropel.recording.people import DIED, LEFT, NOWHERE, REMOVED, THERE, People
from tropel.recording.scene import Scene
from tropel.recording.writing import TrajectoryWriter, open_trajectory
from tropel.run.long_bodies import long_bodies, shown_columns
from tropel.run.observers import Every, Observer
from tropel.world.motion import stored_motion

if TYPE_CHECKING:
    from tropel.run.loop import Summary
    from tropel.simulation import Simulation

#: With this many steps between two frames, a run has only the first one.
_SELDOM = 1e15


class Recorder(Observer):
    """Writes a frame every few steps. Frame f is the state after step f · every; frame 0 is the start."""

    def __init__(self, writer: TrajectoryWriter, *, every: int, resumed: bool) -> None:
        self.writer = writer
        self.every = every
        self.trigger = Every(steps=every)
        self.resumed = resumed
        self._doors: dict[str, bool] | None = None
        self._compared_version = -1
        self._differ = False
        # A resumed file gets them again, because its last note may be older than the checkpoint.
        self._noted_hazards = -1 if resumed else 0

    @classmethod
    def open(cls, sim: Simulation, path: Path, *, fps: float) -> Recorder:
        """Open a trajectory file for a simulation; a restored simulation continues where its checkpoint was."""
        every = steps_per_frame(fps, sim.dt)
        resumed = sim.step_number > 0 and path.exists()
        writer = open_trajectory(
            path,
            scene=sim.scene,
            fps=1.0 / (every * sim.dt),
            append_after=sim.step_number // every if resumed else None,
            resume_step=sim.step_number if resumed else None,
        )
        return cls(writer, every=every, resumed=resumed)

    def begin(self, sim: Simulation) -> None:
        """Write a frame of the current state, unless a resumed file already has it."""
        if self.trigger.due(sim) and not self.resumed:
            self.step_done(sim)

    def step_done(self, sim: Simulation) -> None:
        """Write a frame."""
        agents = sim.agents
        frame = sim.step_number // self.every
        obstacles = sim.world.obstacles
        if self._obstacles_changed(sim):
            self.writer.obstacles(frame, obstacles.names, obstacles.position, obstacles.radius)
        self._note_hazards(sim, frame)
        self.writer.write(
            frame,
            id=agents.id,
            position=agents.position,
            heading=agents.heading,
            group=agents.group,
            radius=agents.radius,
            speed=(agents.velocity**2).sum(axis=1) ** 0.5,
            geometry_wkt=self._changed_geometry(sim),
            extra={name: agents.columns[name] for name in self.writer.scene.columns},
        )

    def _obstacles_changed(self, sim: Simulation) -> bool:
        """Whether the obstacles differ from those of the scene, or are not where the scene declares them."""
        obstacles = sim.world.obstacles
        if obstacles.version != self._compared_version:
            self._compared_version = obstacles.version
            declared = sim.scene.obstacles
            self._differ = obstacles.names != list(declared) or any(
                entry["position"] != place
                for entry, place in zip(declared.values(), obstacles.position.tolist(), strict=True)
            )
        return bool(obstacles.moving) or self._differ

    def _note_hazards(self, sim: Simulation, frame: int) -> None:
        hazards = sim.world.hazards
        if hazards.version == self._noted_hazards:
            return
        self._noted_hazards = hazards.version
        now = {
            name: {"kind": hazards[name].kind, "position": position, "inner": inner, "outer": outer}
            for name, position, inner, outer in zip(
                hazards.names, hazards.position.tolist(), hazards.inner.tolist(), hazards.outer.tolist(), strict=True
            )
        }
        # Dated one step earlier, so that a run resumed from here keeps the note together with its frame.
        self.writer.event(frame, max(sim.step_number - 1, 0), hazards_note(now))

    def _changed_geometry(self, sim: Simulation) -> str | None:
        """The walkable area without closed doors, when a door has changed since the last frame."""
        doors = {name: door.open for name, door in sim.world.doors.items()}
        if doors == self._doors:
            return None
        self._doors = doors
        return walkable_now(sim)

    def event(self, sim: Simulation, text: str) -> None:
        """Store an event that has been applied."""
        self.store_event(sim.step_number, text)

    def deaths(self, sim: Simulation, ids: NDArray[np.int64]) -> None:
        """Store the agents that died at the beginning of a step."""
        self.store_event(sim.step_number, deaths_note(ids.tolist()))

    def stages_begun(self, sim: Simulation, rows: NDArray[np.int64]) -> None:
        """Store who began which stage in this step."""
        begun: dict[str, list[int]] = {}
        for row in rows.tolist():
            text = str(sim.population.agendas.present(sim.agents, row))
            begun.setdefault(text, []).append(int(sim.agents.id[row]))
        self.store_event(sim.step_number, stages_note(begun))

    def news(self, sim: Simulation, of: str, what: Sequence[tuple[str, str, Sequence[int]]]) -> None:
        """Store what happened to tasks, or who changed its mood, in this step."""
        self.store_event(sim.step_number, news_note(of, what))

    def squads(self, sim: Simulation, news: Sequence[tuple[str, str]]) -> None:
        """Store what squads did in this step."""
        self.store_event(sim.step_number, squads_note(news))

    def learnt(self, sim: Simulation, news: Mapping[str, NDArray[Any]]) -> None:
        """Store what was learnt in this step."""
        columns = (news[name].tolist() for name in ("holder", "thing", "state", "source"))
        self.store_event(sim.step_number, knowledge_note(list(zip(*columns, strict=True))))

    def store_event(self, step: int, text: str) -> None:
        """Store what happened at the beginning of a step, which may be in the past."""
        self.writer.event(-(-step // self.every), step, text)

    def flush(self) -> None:
        """Wait until everything handed over is on disk."""
        self.writer.flush()

    def end(self, sim: Simulation, *, whole: bool, summary: Summary | None) -> None:
        """Close the file, with the table of people if the state is one between two steps."""
        told = None if summary is None else summary.as_dict()
        self.writer.close(told, people=people_of(sim) if whole else None)


#: Frames per simulated second.
FPS = Quantity(name="fps", above=0.0, high=1e6, unit="frames per simulated second")


@checked_arguments
def steps_per_frame(fps: Annotated[float, FPS], dt: float) -> int:
    """The number of steps between two frames; at least one."""
    return max(1, round(min(1.0 / max(fps * dt, 1e-300), _SELDOM)))


def walkable_now(sim: Simulation) -> str:
    """The walkable area as WKT, with closed doors cut out as slits a millimetre wide."""
    area = sim.world.walkable
    if area is None:
        return ""
    closed = [door.line.buffer(5e-4, cap_style="flat") for door in sim.world.doors.values() if not door.open]
    if closed:
        area = area.difference(shapely.union_all(closed))
    return str(shapely.to_wkt(area, rounding_precision=-1))


def people_of(sim: Simulation) -> People:
    """All agents that have ever been present, and what became of them so far."""
    population = sim.population
    came, left = population.arrivals(), population.departures()
    count = len(came["id"])
    fate = np.full(count, REMOVED, dtype=np.int8)
    gone = np.full(count, np.nan)
    through = np.full(count, NOWHERE, dtype=np.int32)
    fate[population.state.id] = THERE
    fate[left["id"]] = LEFT
    gone[left["id"]] = left["time"]
    through[left["id"]] = left["goal"]
    deaths = population.deaths()
    # Dead agents stay in the state, so this overwrites THERE.
    fate[deaths["id"]] = DIED
    gone[deaths["id"]] = deaths["time"]
    places = sorted(sim.world.goal_numbers, key=sim.world.goal_numbers.__getitem__)
    return People(
        id=came["id"],
        group=came["group"],
        came=came["time"],
        gone=gone,
        fate=fate,
        through=through,
        places=tuple(places),
    )


def scene_of(sim: Simulation) -> Scene:
    """What pictures and replays need to know about the world."""
    world = sim.world
    exact = {"rounding_precision": -1}
    numbers = {name: world.goals().position[number].tolist() for name, number in world.goal_numbers.items()}
    return Scene(
        dim=world.dim,
        bounds=world.bounds.tolist(),
        sides=np.where(world.period > 0.0, "joined", np.where(world.walled, "wall", "open")).tolist(),
        walkable_wkt="" if world.walkable is None else shapely.to_wkt(world.walkable, **exact),
        walls_wkt=shapely.to_wkt(shapely.union_all(world.walls), **exact) if world.walls else "",
        exits={name: shapely.to_wkt(e.polygon, **exact) for name, e in world.exits.items()},
        regions={name: shapely.to_wkt(r, **exact) for name, r in {**world.rooms, **world.regions}.items()},
        doors={n: {"wkt": shapely.to_wkt(d.line, **exact), "open": d.open} for n, d in world.doors.items()},
        groups=list(sim.groups),
        targets={name: _target_entry(target, numbers[name]) for name, target in world.targets.items()},
        obstacles={
            name: {"radius": float(radius), "position": position.tolist()}
            for name, radius, position in zip(
                world.obstacles.names, world.obstacles.radius, world.obstacles.position, strict=True
            )
        },
        title=sim.title,
        dt=sim.dt,
        seed=sim.seed,
        extra=_about_bodies(sim),
    )


def _about_bodies(sim: Simulation) -> dict[str, Any]:
    """What is recorded in addition if some bodies are more than discs."""
    bodies = long_bodies(sim)
    return {"columns": list(shown_columns(sim)), "bodies": bodies} if bodies else {}


def _target_entry(target: Any, position: list[float]) -> dict[str, Any]:
    """Where a target is, or its path and motion if they are known beforehand."""
    path = getattr(target.motion, "path", None)
    entry = {"position": position} if path is None else {"path": [list(p) for p in path()]}
    return entry | ({} if path is None else {"motion": stored_motion(target.motion)}) | {"radius": float(target.radius)}
