"""What people did in a run: where they were and when they left, and the numbers that cases take from it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import shapely
from numpy.typing import NDArray

from tropel.simulation import Simulation

Floats = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class Track:
    """A run, person by person; the index of a person is their id."""

    times: Floats  #: of the frames [s]
    place: Floats  #: frame, person, x and y [m]; nan before a person comes and after they have left
    left: Floats  #: when each person left [s]; inf for those still there
    through: NDArray[np.str_]  #: the exit or target by which they left; empty for those still there
    group: NDArray[np.str_]
    desired_speed: Floats  #: [m/s]
    start: Floats  #: when each person begins to walk [s]
    end: float  #: when the run ended [s]

    @property
    def people(self) -> int:
        return len(self.left)

    @property
    def gone(self) -> int:
        """How many have left."""
        return int(np.isfinite(self.left).sum())

    @property
    def evacuation_time(self) -> float:
        """When the last person left [s]; inf if somebody is still there."""
        return float(self.left.max(initial=0.0))

    def of(self, *groups: str) -> NDArray[np.bool_]:
        """Which people belong to one of the groups."""
        return np.isin(self.group, groups)

    def thinned(self, seconds: float) -> Floats:
        """Places about every so many seconds, for pictures."""
        every = max(round(seconds / (self.times[1] - self.times[0])), 1) if len(self.times) > 1 else 1
        return self.place[::every].astype(np.float32)


def follow(
    sim: Simulation,
    *,
    limit: float,
    every: float = 0.0,
    until_gone: int | None = None,
    patience: float = math.inf,
) -> Track:
    """Run a simulation that nobody has left yet, and note where people are: in each step, or `every` so many seconds.

    It ends when all people have left or as many as `until_gone`, at the `limit` [s], or when nobody has left for
    `patience` seconds after the last has begun to walk: such a crowd is stuck.
    """
    agents = sim.agents
    count = agents.next_id
    by_id = np.argsort(agents.id)
    start = agents.stage_until[by_id].copy()
    frames, times = [_places(sim, count)], [sim.time]
    wanted = count if until_gone is None else until_gone
    gone, latest = 0, float(start.max(initial=0.0))
    track_step = max(round(every / sim.dt), 1)
    names = np.array(sim.groups)[agents.group[by_id]]
    desired = agents.desired_speed[by_id].copy()
    while gone < wanted and sim.time < min(limit, latest + patience) - 1e-9:
        sim.guarded_step()
        if sim.population.departed > gone:
            gone, latest = sim.population.departed, max(sim.time, latest)
        if sim.step_number % track_step == 0:
            frames.append(_places(sim, count))
            times.append(sim.time)
    departures = sim.population.departures()
    left, through = np.full(count, math.inf), np.full(count, "", dtype="<U32")
    goals = {number: name for name, number in sim.world.goal_numbers.items()}
    left[departures["id"]] = departures["time"]
    through[departures["id"]] = [goals[int(number)] for number in departures["goal"]]
    return Track(
        times=np.array(times),
        place=np.array(frames),
        left=left,
        through=through,
        group=names,
        desired_speed=desired,
        start=start,
        end=sim.time,
    )


def _places(sim: Simulation, count: int) -> Floats:
    places = np.full((count, 2), math.nan)
    places[sim.agents.id] = sim.agents.position
    return places


def passing_times(track: Track, at: float, *, axis: int = 0) -> Floats:
    """When each person first is beyond a coordinate, between frames by interpolation [s]; inf for those who never are.

    A person who leaves within a frame counts as beyond if the exit is: callers place exits beyond the line.
    """
    along = track.place[:, :, axis]
    passed = np.full(track.people, math.inf)
    for person in range(track.people):
        beyond = np.flatnonzero(along[:, person] > at)
        if len(beyond) == 0:
            passed[person] = track.left[person]
            continue
        k = int(beyond[0])
        if k == 0:
            passed[person] = track.times[0]
            continue
        before, after = along[k - 1, person], along[k, person]
        share = (at - before) / (after - before)
        passed[person] = track.times[k - 1] + share * (track.times[k] - track.times[k - 1])
    return passed


#: The flow is measured between these shares of a crowd, without the start and the last few people.
FLOW_FROM, FLOW_TO = 0.2, 0.8


def flow(passed: Floats, end: float) -> float:
    """People per second in the middle part of a crowd; if it got stuck, counted until the end of the run."""
    people = len(passed)
    first, last = math.ceil(FLOW_FROM * people), math.ceil(FLOW_TO * people)
    times = np.sort(passed[np.isfinite(passed)])
    if len(times) < first:
        return 0.0
    until = times[last - 1] if len(times) >= last else end
    return (min(len(times), last) - first) / float(until - times[first - 1])


def mean_density(track: Track, box: tuple[float, float, float, float], *, begin: float, end: float) -> float:
    """People per square metre in a box (x and y from, x and y to), averaged over a span of time."""
    frames = (track.times >= begin) & (track.times <= end)
    if not frames.any():
        return math.nan
    x, y = track.place[frames, :, 0], track.place[frames, :, 1]
    inside = (x >= box[0]) & (x <= box[2]) & (y >= box[1]) & (y <= box[3])
    return float(inside.sum(axis=1).mean() / ((box[2] - box[0]) * (box[3] - box[1])))


def moves_through_walls(track: Track, walkable: Any) -> int:
    """How many straight moves from frame to frame are not entirely within the walkable area."""
    before, after = track.place[:-1].reshape(-1, 2), track.place[1:].reshape(-1, 2)
    there = np.isfinite(before).all(axis=1) & np.isfinite(after).all(axis=1)
    moves = shapely.linestrings(np.stack([before[there], after[there]], axis=1))
    shapely.prepare(walkable)
    return int((~shapely.covers(walkable, moves)).sum())


def starting_times(track: Track, *, away: float = 0.3) -> Floats:
    """When each person began to walk [s]: when they are `away` metres from their start, less the time to get there.

    The distance makes sure that people who are only pushed aside do not count as walking.
    """
    begun = np.full(track.people, math.inf)
    gone = np.linalg.norm(track.place - track.place[0], axis=2)
    for person in range(track.people):
        far = np.flatnonzero(gone[:, person] >= away)
        if len(far):
            begun[person] = track.times[far[0]] - away / track.desired_speed[person]
    return begun
