"""Joining the ends of a blocked edge again: RRT-Connect among what stands still and what moves.

Kuffner & LaValle, "RRT-Connect: an efficient approach to single-query path planning", 2000. Two trees grow from the two
ends; one takes a step towards a random place, or with some probability towards the other end, and the other one tries
to reach the new node. Nodes of the first tree know when the traveller would be there, so its edges are tested against
what moves at that time. The second tree does not: where the trees meet, the rest of the path is tested with its times.
The trees are arrays, so that the search stops when its work is used up and goes on in a later step.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tropel._kernels.compile import kernel
from tropel._kernels.philox import uniform_pair
from tropel.planning.roadmap.graph import FOUND, NO_PATH, RUNNING
from tropel.planning.roadmap.moving import leg_blocked
from tropel.planning.roadmap.space import Moving
from tropel.planning.roadmap.sweeps import Solid, height_of, sweep_blocked

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

#: Nodes of both trees together, and random places, before it is given up.
_MOST_NODES, _MOST_PLACES = 256, 300
#: How often a tree grows straight to the other end instead of to a random place.
_BIAS = 0.2


class Trees(NamedTuple):
    """Both trees."""

    place: Floats  #: (N, dim)
    parent: Ints  #: (N,) -1 for the two ends
    tree: Ints  #: (N,) 0 or 1
    time: Floats  #: (N,) when the traveller is there, in the first tree [s]
    counts: Ints  #: (3,): nodes, random places drawn so far, and whose turn it is
    met: Ints  #: (2,): the nodes where the trees meet, that of tree 0 first
    low: Floats  #: (dim,) corners of where random places are drawn from
    high: Floats


@dataclass(eq=False, kw_only=True)
class Rejoining:
    """A repair of one path that is under way."""

    trees: Trees
    step: float  #: how far a tree grows at a time [m]
    number: int  #: of the repair, for random numbers
    leg: int  #: the repaired path goes from the point before this one, or from the agent itself,
    to: int  #: to this one

    def record(self) -> dict[str, NDArray[Any]]:
        numbers = np.array([self.step, self.number, self.leg, self.to])
        return {"numbers": numbers, **self.trees._asdict()}

    @staticmethod
    def names() -> tuple[str, ...]:
        return ("numbers", *Trees._fields)

    @classmethod
    def of(cls, stored: dict[str, NDArray[Any]]) -> Rejoining:
        step, number, leg, to = stored["numbers"].tolist()
        trees = Trees(*(np.ascontiguousarray(stored[name]) for name in Trees._fields))
        nodes, drawn = int(trees.counts[0]), int(trees.counts[1])
        if not (2 <= nodes <= len(trees.place) == len(trees.parent) == len(trees.tree)) or drawn < 0:
            raise ValueError("the trees of a repair do not fit together")
        if (trees.parent[:nodes] >= nodes).any() or (trees.met >= nodes).any() or not np.isin(trees.tree, (0, 1)).all():
            raise ValueError("the trees of a repair do not fit together")
        return cls(trees=trees, step=step, number=int(number), leg=int(leg), to=int(to))


def begin_rejoining(
    begin: Floats, end: Floats, *, radius: float, number: int, leg: int, to: int, since: float
) -> Rejoining:
    """Begin to join two places again, within a box around them; the traveller is at the first one `since` from now."""
    apart = float(np.linalg.norm(end - begin))
    around = max(0.75 * apart, 6.0 * radius)
    place = np.zeros((_MOST_NODES, len(begin)))
    place[0], place[1] = begin, end
    parent, tree = np.full(_MOST_NODES, -1), np.zeros(_MOST_NODES, dtype=np.int64)
    tree[1] = 1
    time = np.zeros(_MOST_NODES)
    time[0] = since
    trees = Trees(
        place, parent, tree, time, np.array([2, 0, 0]), np.array([-1, -1]), np.minimum(begin, end) - around,
        np.maximum(begin, end) + around,
    )  # fmt: skip
    step = max(0.15 * apart, 1.5 * radius, 1e-9)
    return Rejoining(trees=trees, step=step, number=number, leg=leg, to=to)


@kernel
def _nearest(trees, tree, target):
    best, least = -1, math.inf
    for n in range(trees.counts[0]):
        if trees.tree[n] == tree:
            away2 = 0.0
            for axis in range(target.size):
                away2 += (trees.place[n, axis] - target[axis]) ** 2
            if away2 < least:
                best, least = n, away2
    return best, math.sqrt(least)


class _Going(NamedTuple):
    """How a traveller goes, for kernels."""

    radius: float  #: that it keeps free [m]
    first: float  #: the same where it begins, which may be nearer to a wall
    last: float  #: and where it ends
    speed: float
    slack: float  #: how many seconds early or late what moves may be
    passed: float  #: since the repair began [s]
    horizon: float  #: what moves is expected to go on for so long [s]


@kernel
def _blocked(place, a, b, begin, radius, going, walls, discs, sides, moving):
    """Whether a body cannot go from node a, where it is at the time `begin`, to b; times below 0 mean any time."""
    ax, ay, az = place[a, 0], place[a, 1], height_of(place, a)
    bx, by, bz = place[b, 0], place[b, 1], height_of(place, b)
    if sweep_blocked(ax, ay, az, bx, by, bz, radius, walls, discs, sides):
        return True
    if begin < 0.0:
        return False
    # What moves is expected to stop at the horizon.
    t0 = min(max(begin - going.passed, 0.0), going.horizon)
    t1 = min(t0 + math.sqrt((ax - bx) ** 2 + (ay - by) ** 2 + (az - bz) ** 2) / going.speed, going.horizon)
    return leg_blocked(ax, ay, az, bx, by, bz, t0, t1, going.radius, going.slack, moving, True) < math.inf


@kernel
def _grow(trees, tree, target, step, going, walls, discs, sides, moving):
    """A step of a tree towards a place: the new node (-1 if it is blocked), and whether it got there."""
    near, away = _nearest(trees, tree, target)
    new = trees.counts[0]
    share = 1.0 if away <= step else step / away
    for axis in range(target.size):
        trees.place[new, axis] = trees.place[near, axis] + share * (target[axis] - trees.place[near, axis])
    begin = trees.time[near] if tree == 0 else -1.0
    radius = going.first if near == 0 else (going.last if near == 1 else going.radius)
    if _blocked(trees.place, near, new, begin, radius, going, walls, discs, sides, moving):
        return -1, False
    trees.parent[new] = near
    trees.tree[new] = tree
    trees.time[new] = trees.time[near] + min(away, step) / going.speed
    trees.counts[0] = new + 1
    return new, away <= step


@kernel
def _rest_blocked(trees, one, other, going, walls, discs, sides, moving):
    """Whether the branch of the second tree can be walked from where the first one meets it; and the tests it took."""
    time = trees.time[one]
    tests = 0
    while trees.parent[other] >= 0:
        above = trees.parent[other]
        tests += 1
        radius = going.last if above == 1 else going.radius
        if _blocked(trees.place, other, above, time, radius, going, walls, discs, sides, moving):
            return True, tests
        away2 = 0.0
        for axis in range(trees.place.shape[1]):
            away2 += (trees.place[other, axis] - trees.place[above, axis]) ** 2
        time += math.sqrt(away2) / going.speed
        other = above
    return False, tests


@kernel
def _rejoin(trees, target, step, bias, going, walls, discs, sides, moving, key, agent, number, most):
    """Grow the trees with at most about this many tests; returns how it stands and the tests it took."""
    dim = target.size
    tests = 0
    while tests < most:
        if trees.counts[1] >= _MOST_PLACES or trees.counts[0] >= _MOST_NODES - 2:
            return NO_PATH, tests
        draw = trees.counts[1]
        tree = trees.counts[2]
        u, v = uniform_pair(key, agent, number, 2 * draw)
        w, chance = uniform_pair(key, agent, number, 2 * draw + 1)
        trees.counts[1] += 1
        trees.counts[2] = 1 - tree
        for axis in range(dim):
            unit = u if axis == 0 else (v if axis == 1 else w)
            target[axis] = trees.low[axis] + unit * (trees.high[axis] - trees.low[axis])
            if chance < bias:
                target[axis] = trees.place[1 - tree, axis]
        new, _ = _grow(trees, tree, target, step, going, walls, discs, sides, moving)
        tests += 1
        if new < 0:
            continue
        # The other tree grows to the new node as far as it can.
        for axis in range(dim):
            target[axis] = trees.place[new, axis]
        while trees.counts[0] < _MOST_NODES - 1:
            other, there = _grow(trees, 1 - tree, target, step, going, walls, discs, sides, moving)
            tests += 1
            if other < 0:
                break
            if there:
                one, two = (new, other) if tree == 0 else (other, new)
                blocked, more = _rest_blocked(trees, one, two, going, walls, discs, sides, moving)
                tests += more
                if blocked:
                    break
                trees.met[0], trees.met[1] = one, two
                return FOUND, tests
    return RUNNING, tests


@kernel
def _shorten(place, time, going, walls, discs, sides, moving, keep):
    """Cut a repaired path short where the traveller can go straight at the time; returns the tests it took."""
    tests = 0
    last = place.shape[0] - 1
    here = 0
    keep[0] = True
    while here < last:
        there = last
        while there > here + 1:
            tests += 1
            # Legs that begin or end near a wall are not made longer.
            cut = (here > 0 or going.first == going.radius) and (there < last or going.last == going.radius)
            if cut and not _blocked(place, here, there, time, going.radius, going, walls, discs, sides, moving):
                break
            there -= 1
        away2 = 0.0
        for axis in range(place.shape[1]):
            away2 += (place[there, axis] - place[here, axis]) ** 2
        time += math.sqrt(away2) / going.speed
        keep[there] = True
        here = there
    return tests


class Repair(NamedTuple):
    """What a repair needs to know of a traveller and its surroundings."""

    radius: float
    first: float
    last: float
    speed: float
    slack: float
    passed: float
    horizon: float
    solid: Solid
    moving: Moving

    @property
    def going(self) -> _Going:
        return _Going(float(self.radius), float(self.first), float(self.last), max(float(self.speed), 1e-9),
                      float(self.slack), float(self.passed), float(self.horizon))  # fmt: skip


def go_on_rejoining(rejoining: Rejoining, repair: Repair, *, key: np.uint64, agent: int, most: int) -> tuple[int, int]:
    """Go on with at most about this many tests: how it stands (RUNNING, FOUND or NO_PATH), and the tests it took."""
    target = np.empty(len(rejoining.trees.low))
    status, tests = _rejoin(rejoining.trees, target, rejoining.step, _BIAS, repair.going, *repair.solid, repair.moving,
                            key, int(agent), int(rejoining.number), int(most))  # fmt: skip
    return int(status), int(tests)


def shortened_repair(points: Floats, since: float, repair: Repair) -> Floats:
    """A repaired path without the points that it does not need."""
    keep = np.zeros(len(points), dtype=np.bool_)
    _shorten(np.ascontiguousarray(points), float(since), repair.going, *repair.solid, repair.moving, keep)
    return points[keep]


def joined_points(rejoining: Rejoining) -> Floats:
    """The points from one end to the other, both included."""
    trees = rejoining.trees
    halves = []
    for node in trees.met.tolist():
        half = []
        while node >= 0:
            half.append(trees.place[node])
            node = int(trees.parent[node])
        halves.append(half)
    # The trees meet in one place, which both have.
    return np.array(halves[0][::-1] + halves[1][1:])
