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
from tropel.planning.roadmap.shortening import Going, Shortening, apart, walk_blocked
from tropel.planning.roadmap.space import Moving
from tropel.planning.roadmap.sweeps import Solid

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

#: Nodes of both trees together, and random places, before it is given up.
_MOST_NODES, _MOST_PLACES = 256, 300
#: How often a tree grows straight to the other end instead of to a random place.
_BIAS = 0.2
#: What is being done: draw a random place and grow to it, grow the other tree to the new node, or walk on from where
#: the trees have met.
_DRAW, _CONNECT, _WALK = 0, 1, 2


class Trees(NamedTuple):
    """Both trees."""

    place: Floats  #: (N, dim)
    parent: Ints  #: (N,) -1 for the two ends
    tree: Ints  #: (N,) 0 or 1
    time: Floats  #: (N,) when the traveller is there, in the first tree [s]
    counts: Ints  #: (6,): nodes, random places drawn so far, whose turn it is, what is being done, two nodes
    met: Ints  #: (2,): the nodes where the trees meet, that of tree 0 first
    low: Floats  #: (dim,) corners of where random places are drawn from
    high: Floats
    clock: Floats  #: (1,) when the traveller is at the node of the second tree that is being looked at [s]


@dataclass(eq=False, kw_only=True)
class Rejoining:
    """A repair of one path that is under way."""

    trees: Trees
    step: float  #: how far a tree grows at a time [m]
    number: int  #: of the repair, for random numbers
    leg: int  #: the repaired path goes from the point before this one, or from the agent itself,
    to: int  #: to this one
    first: float  #: the radius that the body keeps free where it begins [m]
    last: float  #: and where it ends
    shortening: Shortening | None = None  #: of the path, once it has been found

    def record(self) -> dict[str, NDArray[Any]]:
        numbers = np.array([self.step, self.number, self.leg, self.to, self.first, self.last])
        stored = {"numbers": numbers, **self.trees._asdict()}
        if self.shortening is not None:
            stored |= {f"short_{name}": array for name, array in self.shortening.record().items()}
        return stored

    @classmethod
    def of(cls, stored: dict[str, NDArray[Any]]) -> Rejoining:
        step, number, leg, to, first, last = stored["numbers"].tolist()
        trees = Trees(*(np.ascontiguousarray(stored[name]) for name in Trees._fields))
        if trees.counts.shape != (6,) or trees.clock.shape != (1,) or trees.met.shape != (2,):
            raise ValueError("the trees of a repair do not fit together")
        nodes, drawn, turn, doing, new, other = trees.counts.tolist()
        sizes = {len(array) for array in (trees.place, trees.parent, trees.tree, trees.time)}
        fits = sizes == {_MOST_NODES} and 2 <= nodes <= _MOST_NODES and drawn >= 0 and turn in (0, 1)
        fits = fits and doing in (_DRAW, _CONNECT, _WALK) and max(new, other, *trees.met.tolist()) < nodes
        fits = fits and new >= (0 if doing == _CONNECT else -1) and other >= (0 if doing == _WALK else -1)
        if not fits or (trees.parent[:nodes] >= np.arange(nodes)).any() or not np.isin(trees.tree, (0, 1)).all():
            raise ValueError("the trees of a repair do not fit together")
        short = {name: stored[f"short_{name}"] for name in Shortening.names() if f"short_{name}" in stored}
        return cls(trees=trees, step=step, number=int(number), leg=int(leg), to=int(to), first=first, last=last,
                   shortening=Shortening.of(short) if short else None)  # fmt: skip


def begin_rejoining(
    ends: Floats, room: Floats, *, radius: float, number: int, leg: int, to: int, since: float
) -> Rejoining:
    """Begin to join two places again, within a box around them; the traveller is at the first one `since` from now.

    `room` has the radius that a body keeps free at each of the two.
    """
    begin, end = ends
    length = math.dist(begin.tolist(), end.tolist())
    around = max(0.75 * length, 6.0 * radius)
    place = np.zeros((_MOST_NODES, len(begin)))
    place[0], place[1] = begin, end
    parent, tree = np.full(_MOST_NODES, -1), np.zeros(_MOST_NODES, dtype=np.int64)
    tree[1] = 1
    time = np.zeros(_MOST_NODES)
    time[0] = since
    trees = Trees(
        place, parent, tree, time, np.array([2, 0, 0, _DRAW, -1, -1]), np.array([-1, -1]),
        np.minimum(begin, end) - around, np.maximum(begin, end) + around, np.zeros(1),
    )  # fmt: skip
    step = max(0.15 * length, 1.5 * radius, 1e-9)
    return Rejoining(trees=trees, step=step, number=number, leg=leg, to=to, first=float(room[0]), last=float(room[1]))


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
    if walk_blocked(trees.place, near, new, begin, radius, going, walls, discs, sides, moving):
        return -1, False
    trees.parent[new] = near
    trees.tree[new] = tree
    trees.time[new] = trees.time[near] + min(away, step) / going.speed
    trees.counts[0] = new + 1
    return new, away <= step


@kernel
def _draw(trees, target, bias, key, agent, number):
    """Draw the next place for the tree whose turn it is; returns that tree."""
    draw, tree = trees.counts[1], trees.counts[2]
    u, v = uniform_pair(key, agent, number, 2 * draw)
    w, chance = uniform_pair(key, agent, number, 2 * draw + 1)
    trees.counts[1] += 1
    trees.counts[2] = 1 - tree
    for axis in range(target.size):
        unit = u if axis == 0 else (v if axis == 1 else w)
        target[axis] = trees.low[axis] + unit * (trees.high[axis] - trees.low[axis])
        if chance < bias:
            target[axis] = trees.place[1 - tree, axis]
    return tree


@kernel
def _connect(trees, target, step, going, walls, discs, sides, moving):
    """A step of the other tree to the new node; if it gets there, the rest is walked next."""
    new = trees.counts[4]
    for axis in range(target.size):
        target[axis] = trees.place[new, axis]
    other, there = _grow(trees, 1 - trees.tree[new], target, step, going, walls, discs, sides, moving)
    if other < 0:
        trees.counts[3] = _DRAW
    elif there:
        trees.met[0], trees.met[1] = (new, other) if trees.tree[new] == 0 else (other, new)
        trees.counts[3], trees.counts[5], trees.clock[0] = _WALK, trees.met[1], trees.time[trees.met[0]]


@kernel
def _walk(trees, going, walls, discs, sides, moving):
    """An edge of the second tree, at the time at which the traveller would be there."""
    other = trees.counts[5]
    above = trees.parent[other]
    radius = going.last if above == 1 else going.radius
    if walk_blocked(trees.place, other, above, trees.clock[0], radius, going, walls, discs, sides, moving):
        trees.counts[3] = _DRAW
    else:
        trees.clock[0] += apart(trees.place, other, above) / going.speed
        trees.counts[5] = above


@kernel
def _rejoin(trees, target, step, bias, going, walls, discs, sides, moving, key, agent, number, most):
    """Grow the trees with at most this many tests; returns how it stands and the tests it took."""
    tests = 0
    while True:
        doing = trees.counts[3]
        if doing == _WALK and trees.parent[trees.counts[5]] < 0:
            return FOUND, tests
        if doing == _CONNECT and trees.counts[0] >= _MOST_NODES - 1:
            trees.counts[3] = _DRAW
            continue
        if doing == _DRAW and (trees.counts[1] >= _MOST_PLACES or trees.counts[0] >= _MOST_NODES - 2):
            return NO_PATH, tests
        if tests >= most:
            return RUNNING, tests
        tests += 1
        if doing == _WALK:
            _walk(trees, going, walls, discs, sides, moving)
        elif doing == _CONNECT:
            _connect(trees, target, step, going, walls, discs, sides, moving)
        else:
            tree = _draw(trees, target, bias, key, agent, number)
            new, _ = _grow(trees, tree, target, step, going, walls, discs, sides, moving)
            if new >= 0:
                trees.counts[3], trees.counts[4] = _CONNECT, new


class Repair(NamedTuple):
    """What a repair needs to know of a traveller and its surroundings."""

    going: Going
    solid: Solid
    moving: Moving


def go_on_rejoining(rejoining: Rejoining, repair: Repair, *, key: np.uint64, agent: int, most: int) -> tuple[int, int]:
    """Go on with at most this many tests: how it stands (RUNNING, FOUND or NO_PATH), and the tests it took.

    When it has been found, `rejoining.shortening` has the points.
    """
    used = 0
    if rejoining.shortening is None:
        target = np.empty(len(rejoining.trees.low))
        status, used = _rejoin(rejoining.trees, target, rejoining.step, _BIAS, repair.going, *repair.solid,
                               repair.moving, key, int(agent), int(rejoining.number), int(most))  # fmt: skip
        if status != FOUND:
            return int(status), int(used)
        rejoining.shortening = Shortening.begin(joined_points(rejoining), since=float(rejoining.trees.time[0]))
    used += rejoining.shortening.go_on(repair.going, repair.solid, repair.moving, most - used)
    return FOUND if rejoining.shortening.done else RUNNING, int(used)


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
