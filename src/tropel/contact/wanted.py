"""Where each agent wants to be after a step, and how long the longest of these moves is.

First come the codes for how agents move (`contracts/declarations.py`), as the array that the contact kernels read. Then
come the wanted ends of all moves, and the checks that they are finite and short enough for periodic space.
"""

from __future__ import annotations

import math

import numba
import numpy as np
from numpy.typing import NDArray

from tropel._kernels.compile import inlined_kernel, kernel, parallel_kernel
from tropel.agents.state import AgentState, Steered
from tropel.contracts.declarations import Moves
from tropel.errors import ModelError
from tropel.world import World

#: One value if all agents move alike, else one code per row.
HowTheyMove = Moves | NDArray[np.uint8]

FREELY, EXACTLY, NOT_NOW = int(Moves.FREELY), int(Moves.EXACTLY), int(Moves.NOT_NOW)

_ALIKE = {how: np.array([how], dtype=np.uint8) for how in Moves}


def codes_of(moves: HowTheyMove) -> NDArray[np.uint8]:
    """The codes of all rows. If all agents move alike this is a single code, so no array of crowd size is filled."""
    return _ALIKE[moves] if isinstance(moves, Moves) else moves


@inlined_kernel
def code_of(codes, i):
    """How agent i moves."""
    return codes[i] if codes.size > 1 else codes[0]


#: Agents per unit of parallel work.
_CHUNK = 1 << 14


@kernel
def want_some(first, last, position, velocity, dt, target):
    """Write where freely moving agents want to be; returns the longest move squared, nan if one is not finite."""
    longest2 = 0.0
    odd = 0.0
    for k in range(first, last):
        for axis in range(position.shape[1]):
            wanted = position[k, axis] + velocity[k, axis] * dt
            target[k, axis] = wanted
            # The difference of a number and itself is zero unless the number is infinite or nan.
            odd += wanted - wanted
        total = 0.0
        for axis in range(position.shape[1]):
            total += (target[k, axis] - position[k, axis]) ** 2
        longest2 = max(longest2, total)
    return longest2 + odd


@parallel_kernel
def _want_freely(position, velocity, dt, target, longest2):
    """`want_some` for all agents, with the longest move of each chunk of agents."""
    count = position.shape[0]
    for chunk in numba.prange(longest2.size):
        first = chunk * _CHUNK
        longest2[chunk] = want_some(first, min(first + _CHUNK, count), position, velocity, dt, target)


@parallel_kernel
def _want(position, velocity, places, codes, dt, target):
    """Write where each agent wants to be; returns an upper bound for the length of all moves, nan if one is not finite.

    `target` may be `places`. The bound is built from lengths along the axes, because squares of absurdly long steps
    would overflow.
    """
    longest = 0.0
    faults = 0
    for i in numba.prange(position.shape[0]):
        how = code_of(codes, i)
        for axis in range(position.shape[1]):
            wanted = places[i, axis]
            if how == FREELY:
                wanted = position[i, axis] + velocity[i, axis] * dt
            elif how == NOT_NOW:
                wanted = position[i, axis]
            target[i, axis] = wanted
            longest = max(longest, abs(wanted - position[i, axis]))
            faults += np.int64(wanted - wanted != 0.0)
    return math.nan if faults else math.sqrt(position.shape[1]) * longest


def wanted_ends(
    state: AgentState, steered: Steered, dt: float, moves: HowTheyMove, *, keep_apart: bool
) -> tuple[NDArray[np.float64], float]:
    """Where each agent wants to be after the step, and an upper bound for the length of all moves [m].

    The wanted ends are written into the new positions, unless they must be kept apart from where agents will end up.
    """
    wanted = np.empty_like(state.position) if keep_apart else steered.position
    if moves is Moves.FREELY:
        longest2 = np.zeros(-(-len(state) // _CHUNK))
        _want_freely(state.position, steered.velocity, dt, wanted, longest2)
        longest = math.sqrt(longest2.max(initial=0.0))
    else:
        longest = _want(state.position, steered.velocity, steered.position, codes_of(moves), dt, wanted)
    if math.isnan(longest) or not (longest < math.inf or np.isfinite(wanted).all()):
        raise not_finite(state, wanted)
    return wanted, longest


def check_short(state: AgentState, wanted: NDArray[np.float64], longest: float, widest: float, world: World) -> None:
    """Raise when a body could meet another one on both of its sides within a step."""
    quarter = 0.25 * world.shortest_period
    if longest + widest < quarter:
        return
    steps = np.linalg.norm(wanted - state.position, axis=1)
    reach = steps + state.radius
    row = _lowest_id(state, np.flatnonzero(reach == reach.max()))
    if steps[row] + widest < quarter:
        return
    raise ModelError(
        f"agent {int(state.id[row])} of {state.radius[row]:g} m radius makes a step of {steps[row]:.3g} m; where space "
        f"repeats every {4.0 * quarter:g} m, step and radius together must be less than a quarter of that: use a "
        f"shorter dt, slower or smaller agents, or a larger world"
    )


def not_finite(state: AgentState, wanted: NDArray[np.float64]) -> ModelError:
    """The error for wanted places that are not all finite."""
    row = _lowest_id(state, np.flatnonzero(~np.isfinite(wanted).all(axis=1)))
    return ModelError(
        f"agent {int(state.id[row])} was steered to {wanted[row].tolist()} from {state.position[row].tolist()}; "
        f"its steering model returned a velocity or position that is not finite"
    )


def _lowest_id(state: AgentState, rows: NDArray[np.int64]) -> int:
    """The row of the agent to name in an error, independent of the order of the rows."""
    return int(rows[np.argmin(state.id[rows])])
