"""SequentialFlock: the flocking model of the public comparisons of agent-based frameworks, with their own rules.

The rules are those of JuliaDynamics' ABMFrameworksComparison (Agents.jl, Mesa, NetLogo, MASON; "Flocking" and its
DECLARATION.md), so that times and results can be compared on equal terms. Agents are activated one by one, in a random
order that is new in every step, and see the agents before them at their new positions. Each agent

1. finds the N others within its sight (`sense_radius`), with d the offset to each of them and u its heading;
2. turns from its heading u0 to

       u0 + (cohere Σ d  -  separate Σ' d  +  match Σ u) / max(N, 1)          normalised to a unit vector

   where Σ' runs over those nearer than `separation`;
3. moves by `desired_speed` · dt in that direction.

The comparison has a speed of 1, a step of 1 and a space that repeats on both axes: `World.box((0, 0), (150, 150),
periodic=True)` with dt = 1. The model also works in open and walled space, and in 3D. It does not follow planned
directions. All agents of the model form one flock and do not see agents of other models. For any other kind of flock
use `Flocking`, which does not depend on the order of agents, runs on all cores and avoids obstacles.

The order of agents is a function of seed, step and ids (`random_order`). Agents move one after another on one thread,
so results cannot depend on the number of threads. For the same reason this is the only model that does not keep the
promise of the frozen state: what an agent does depends on which members of the flock have moved before it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tropel._kernels.cells import behind_seam, wrapping_window
from tropel._kernels.compile import inlined_kernel, kernel
from tropel._kernels.philox import normal_pair, random_key, words
from tropel.agents.state import Column, Steered
from tropel.contracts import Model, ModelDeclaration, Moment, Moves
from tropel.errors import named_parameters
from tropel.foundation import quantities
from tropel.local.sequential_flock.cells import (
    COUNT,
    HEADINGS,
    LANES,
    NEAR,
    OFFSETS,
    SUMS,
    add_block_2d,
    add_block_3d,
    cell_of,
    change_cell,
    laid_out,
    stretch,
)

# A new random order of agents for every step, from counter-based draws: a function of seed, step and ids alone.


_HALF = np.uint64(32)


@kernel
def _draw(ids, key, step, shift, drawn, tally):
    for m in range(ids.shape[0]):
        a, b, _, _ = words(key, ids[m], step, 0)
        drawn[m] = (np.uint64(a) << _HALF) | np.uint64(b)
        tally[drawn[m] >> shift] += 1


@kernel
def _arrange(ids, drawn, shift, tally, order):
    """Counting sort by the first bits of the draws, which have about as many values as there are agents."""
    place = 0
    for k in range(tally.shape[0]):
        here = tally[k]
        tally[k] = place
        place += here
    for m in range(ids.shape[0]):
        k = drawn[m] >> shift
        order[tally[k]] = m
        tally[k] += 1
    # Few draws share their first bits; an insertion sort orders these. Equal draws are in the order of ids.
    for at in range(1, order.shape[0]):
        m = order[at]
        before = at - 1
        while before >= 0 and (
            drawn[order[before]] > drawn[m] or (drawn[order[before]] == drawn[m] and ids[order[before]] > ids[m])
        ):
            order[before + 1] = order[before]
            before -= 1
        order[before + 1] = m


def random_order(ids: NDArray[np.int64], *, key: np.uint64, step: int) -> NDArray[np.int64]:
    """The numbers 0 to len(ids) - 1 in random order. All orders are equally likely and depend only on the ids."""
    count = len(ids)
    bits = max(count - 1, 1).bit_length()
    shift = np.uint64(64 - bits)
    drawn = np.empty(count, dtype=np.uint64)
    order = np.empty(count, dtype=np.int64)
    tally = np.zeros(1 << bits, dtype=np.int64)
    _draw(ids, key, step, shift, drawn, tally)
    _arrange(ids, drawn, shift, tally, order)
    return order


_ZERO, _BLOCK = np.uint64(0), np.uint64(LANES)


@named_parameters
@dataclass(frozen=True, kw_only=True)
class SequentialFlockParameters:
    """Parameters of `SequentialFlock`; the defaults are those of the public comparison."""

    cohere: float = quantities.number(0.03, low=0.0, about="weight of the offsets to the others")
    separate: float = quantities.number(0.015, low=0.0, about="weight of the offsets away from those too near")
    match: float = quantities.number(0.05, low=0.0, about="weight of the others' headings")
    separation: float = quantities.number(1.0, low=0.0, unit="m", about="agents nearer than this are too near")
    random_start: bool = True  #: newcomers begin in a random direction; if false, along their heading


@inlined_kernel
def _wrapped(x, origin, period):
    """A coordinate shifted by whole periods into the box."""
    if period <= 0.0:
        return x
    inside = x - period * math.floor((x - origin) / period)
    return origin if inside >= origin + period else max(inside, origin)


@inlined_kernel
def _lane_sum(sums, number):
    """The lanes of a sum, added up in a fixed order."""
    at = np.uint64(number * LANES)
    total = 0.0
    for lane in range(_ZERO, _BLOCK):
        total += sums[at + lane]
    return total


@kernel
def _see(x, y, z, dim, sight, separation, cells, slots, sums):
    """Sum over all agents in sight, including the agent itself."""
    limit, near = sight * sight, separation * separation
    columns = np.uint64(2 * dim)
    for number in range(np.uint64(SUMS * LANES)):
        sums[number] = 0.0
    x0, x1, y0, y1, z0, z1 = wrapping_window(cells, x, y, z, sight)
    for wz in range(z0, z1 + 1):
        cz, shift_z = behind_seam(cells, 2, wz)
        for wy in range(y0, y1 + 1):
            cy, shift_y = behind_seam(cells, 1, wy)
            row = (cz * cells.shape[1] + cy) * cells.shape[0]
            for wx in range(x0, x1 + 1):
                cx, shift_x = behind_seam(cells, 0, wx)
                c = np.uint64(row + cx)
                begin, apart = stretch(c, columns, slots)
                taken = np.uint64(slots.taken[c])
                for at in range(_ZERO, taken, _BLOCK):
                    if dim == 3:
                        add_block_3d(sums, slots.hot, begin + at, apart, taken - at, x + shift_x, y + shift_y,
                                     z + shift_z, limit, near)  # fmt: skip
                    else:
                        add_block_2d(sums, slots.hot, begin + at, apart, taken - at, x + shift_x, y + shift_y, limit,
                                     near)  # fmt: skip


@kernel
def _fly(order, begin, place, heading, stride, sight, waits, rules, cells, slots, sums, way):
    """Move members one after another, from number `begin` of the order on, until a cell is full.

    Returns the number at which it stopped.

    `place` (inside the period) and `heading` are updated together with the slots; `way` is each member's displacement.
    """
    dim = place.shape[1]
    cohere, separate, match, separation = rules
    columns = np.uint64(2 * dim)
    for number in range(begin, order.shape[0]):
        m = np.uint64(order[number])
        if waits[m]:
            continue
        _see(place[m, 0], place[m, 1], place[m, 2] if dim == 3 else 0.0, dim, sight[m], separation, cells, slots, sums)
        share = 1.0 / max(_lane_sum(sums, COUNT) - 1.0, 1.0)
        length = 0.0
        for axis in range(dim):
            # The agent's own heading is among those in sight.
            others = _lane_sum(sums, HEADINGS + axis) - heading[m, axis]
            pull = cohere * _lane_sum(sums, OFFSETS + axis) - separate * _lane_sum(sums, NEAR + axis) + match * others
            way[m, axis] = heading[m, axis] + share * pull
            length += way[m, axis] * way[m, axis]
        length = math.sqrt(length)
        for axis in range(dim):
            if length > 0.0:
                heading[m, axis] = way[m, axis] / length
            way[m, axis] = stride[m] * heading[m, axis]
            place[m, axis] = _wrapped(place[m, axis] + way[m, axis], cells.origin[axis], cells.period[axis])
        cell = cell_of(cells, place[m, 0], place[m, 1], place[m, 2] if dim == 3 else 0.0)
        if cell != slots.cell[m] and not change_cell(m, cell, columns, slots):
            return number + 1
        at, apart = stretch(np.uint64(cell), columns, slots)
        at += np.uint64(slots.slot[m])
        for axis in range(dim):
            slots.hot[at] = place[m, axis]
            at += apart
        for axis in range(dim):
            slots.hot[at] = heading[m, axis]
            at += apart
    return order.shape[0]


@kernel
def _face_anywhere(ids, flying, key, heading):
    """Turn the members that do not fly yet in a random direction, all equally likely."""
    dim = heading.shape[1]
    for m in range(ids.shape[0]):
        if flying[m] != 0.0:
            continue
        for draw in range(64):
            a, b = normal_pair(key, ids[m], 0, 2 * draw)
            c = normal_pair(key, ids[m], 0, 2 * draw + 1)[0] if dim == 3 else 0.0
            length = math.sqrt(a * a + b * b + c * c)
            if length > 0.0:
                heading[m, 0], heading[m, 1] = a / length, b / length
                if dim == 3:
                    heading[m, 2] = c / length
                break


class SequentialFlock(Model):
    """The flock of the public comparisons: agents decide and move one after another, in random order."""

    declares = ModelDeclaration(
        memory=(Column(name="flying", about="1 once a member of a sequential flock has begun to fly"),),
        periodic_space=True,
        moves=Moves.ITSELF,
        bodies_may_overlap=True,
        senses=False,
    )

    def __init__(self, **parameters: Any) -> None:
        self.parameters = SequentialFlockParameters(**parameters)

    def prepare(self, moment: Moment) -> None:
        self._order_key = random_key(moment.seed, "sequential flock: order")
        self._start_key = random_key(moment.seed, "sequential flock: start")

    def steer(self, moment: Moment, out: Steered) -> None:
        """Write position, heading and `flying` of the members into `out`."""
        state, members, dt = moment.state, moment.members, moment.dt
        if len(members) == 0:
            return
        ids = state.id[members]
        if len(ids) > 1 and (np.diff(ids) < 0).any():
            members = members[np.argsort(ids)]
            ids = state.id[members]
        place, heading = state.position[members], state.heading[members]
        if self.parameters.random_start:
            _face_anywhere(ids, state.flying[members], self._start_key, heading)
        waits = moment.waiting[members] if len(moment.waiting) else np.zeros(len(members), dtype=np.bool_)
        stride, sight = state.desired_speed[members] * dt, state.sense_radius[members]
        rules = (
            float(self.parameters.cohere),
            float(self.parameters.separate),
            float(self.parameters.match),
            float(self.parameters.separation),
        )
        order = random_order(ids, key=self._order_key, step=moment.step)
        way, sums = np.zeros_like(place), np.empty(SUMS * LANES)
        cells, done = moment.cells.cell_list, 0
        while done < len(order):
            done = _fly(order, done, place, heading, stride, sight, waits, rules, cells,
                        laid_out(place, heading, cells), sums, way)  # fmt: skip
        out.position[members] = state.position[members] + way
        out.heading[members] = heading
        out.memory["flying"][members] = 1.0
