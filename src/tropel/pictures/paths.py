"""Reading the paths of all agents, in as much detail as a picture can show."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tropel.errors import RecordingError
from tropel.recording import Trajectory
from tropel.recording.people import DIED, THERE

#: At most this many frames are read, and fewer if a large crowd would need more rows than this.
_FRAMES = 600
_ROWS = 4_000_000
#: More paths or pieces than this only darken the same pixels.
_PATHS = 1500
_PIECES = 80_000

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False, kw_only=True)
class Paths:
    """A whole run, as one picture shows it."""

    frames: Ints  #: the frames that were read
    times: Floats  #: their times [s]
    there: Ints  #: number of living agents in each frame
    left: Ints  #: number of agents that have left by then
    died: Ints  #: number of agents that have died by then
    agents: int  #: number of agents seen in any frame
    drawn: int  #: number of agents with a path below
    pieces: Floats  #: (S, 2, dim) straight pieces of paths [m]
    piece_times: Floats  #: (S,) the time at the middle of each [s]
    starts: Floats  #: (A, dim) where each agent was first seen
    ends: Floats  #: (E, dim) positions in the last frame of the agents that are there at the end, alive
    dead: Floats  #: (D, dim) positions of dead agents
    bounds: Floats  #: (2, dim) the box that holds the world's bounds and every agent


def read_paths(trajectory: Trajectory) -> Paths:
    """Read a run from its first frame to its last."""
    frames = sampled_frames(trajectory, _most_frames(trajectory))
    dim = trajectory.scene.dim
    data = [trajectory.frame(int(k)) for k in frames]
    number = np.concatenate([d.id for d in data])
    position = np.concatenate([d.position for d in data]).reshape(-1, dim)
    present = np.array([len(d.id) for d in data], dtype=np.int64)
    sample = np.repeat(np.arange(len(frames)), present)
    deaths = trajectory.deaths()
    lying = [np.isin(d.id, deaths["id"][deaths["frame"] <= k]) for k, d in zip(frames, data, strict=True)]
    times = np.array([trajectory.time(int(k)) for k in frames])
    ids, first_row, agent = np.unique(number, return_index=True, return_inverse=True)
    seen = np.cumsum(np.bincount(sample[first_row], minlength=len(frames)))
    stride = max(1, -(-len(ids) // _PATHS))
    drawn = agent % stride == 0
    period = np.array(trajectory.scene.period)
    pieces, piece_times = _pieces(agent[drawn], sample[drawn], position[drawn], times)
    if period.any():
        pieces, piece_times = _cut_at_seams(pieces, piece_times, np.array(trajectory.scene.bounds), period)
    corners = np.vstack([position, trajectory.scene.bounds])
    alive, dead = _at_the_end(trajectory, data[-1].id, lying[-1])
    return Paths(
        frames=frames,
        times=times,
        there=present - np.array([dead.sum() for dead in lying], dtype=np.int64),
        left=seen - present,
        died=np.searchsorted(np.sort(deaths["frame"]), frames, side="right"),
        agents=len(ids),
        drawn=len(range(0, len(ids), stride)),
        pieces=pieces,
        piece_times=piece_times,
        starts=position[first_row],
        ends=data[-1].position.reshape(-1, dim)[alive],
        dead=data[-1].position.reshape(-1, dim)[dead],
        bounds=np.array([corners.min(axis=0), corners.max(axis=0)]),
    )


def _at_the_end(trajectory: Trajectory, seen: Ints, lying: NDArray[np.bool_]) -> tuple[NDArray[np.bool_], ...]:
    """Which agents of the last frame are there at the end, alive and dead: some may have left after that frame."""
    people = trajectory.people()
    if people is None:
        return ~lying, lying
    there, died = (np.isin(seen, people.id[people.fate == fate]) for fate in (THERE, DIED))
    return there, died


def sampled_frames(trajectory: Trajectory, most: int) -> Ints:
    """Frame numbers, evenly spread from the first to the last, at most `most` of them."""
    frames = trajectory.frames
    if len(frames) == 0:
        raise RecordingError(f"{trajectory.path} has no frames, so there is nothing to draw: run it again")
    if len(frames) <= most:
        return frames
    return frames[np.unique(np.linspace(0, len(frames) - 1, most).round().astype(np.int64))]


def _most_frames(trajectory: Trajectory) -> int:
    frames = sampled_frames(trajectory, 5)
    crowd = max(len(trajectory.frame(int(k)).id) for k in frames)
    return int(np.clip(_ROWS // max(crowd, 1), 40, _FRAMES))


def _pieces(agent: Ints, sample: Ints, position: Floats, times: Floats) -> tuple[Floats, Floats]:
    """Straight pieces between the sampled positions of each agent, thinned out if there are too many."""
    order = np.lexsort((sample, agent))
    agent, sample, position = agent[order], sample[order], position[order]
    continues = (np.diff(agent) == 0) & (np.diff(sample) == 1)
    first = np.concatenate([[True], ~continues])[: len(agent)]
    last = np.concatenate([~continues, [True]])[: len(agent)]
    row = np.arange(len(agent))
    along = row - np.maximum.accumulate(np.where(first, row, 0)) if len(row) else row
    step = max(1, -(-int(continues.sum()) // _PIECES))
    kept = np.flatnonzero((along % step == 0) | last)
    a, b = kept[:-1], kept[1:]
    # Both ends belong to one uninterrupted path if the later one does not begin a new path. Standing leaves no line.
    joined = ~first[b] & np.any(position[a] != position[b], axis=1)
    a, b = a[joined], b[joined]
    return np.stack([position[a], position[b]], axis=1), (times[sample[a]] + times[sample[b]]) / 2


def _cut_at_seams(pieces: Floats, times: Floats, bounds: Floats, period: Floats) -> tuple[Floats, Floats]:
    """Cut pieces at the seams of periodic space, where agents take the short path: such a piece becomes two.

    A piece that crosses two seams at once is left out.
    """
    begin, end = pieces[:, 0], pieces[:, 1]
    length = np.where(period > 0.0, period, 1.0)
    turns = np.where(period > 0.0, np.round((end - begin) / length), 0.0)
    crossed = np.count_nonzero(turns, axis=1)
    rows = np.flatnonzero(crossed == 1)
    axis = np.argmax(turns[rows] != 0.0, axis=1)
    shift = turns[rows] * period
    begin, end = begin[rows], end[rows]
    way = end - shift - begin
    pick = np.arange(len(rows)), axis
    # An agent that crossed in the positive direction (its end is lower than expected) left through the high side.
    side = np.where(turns[rows][pick] < 0.0, bounds[1][axis], bounds[0][axis])
    gone = way[pick]
    share = np.clip((side - begin[pick]) / np.where(gone != 0.0, gone, 1.0), 0.0, 1.0)[:, None]
    out = np.stack([begin, begin + share * way], axis=1)
    back = np.stack([end - (1.0 - share) * way, end], axis=1)
    whole = crossed == 0
    return np.concatenate([pieces[whole], out, back]), np.concatenate([times[whole], times[rows], times[rows]])
