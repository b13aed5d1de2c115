"""Velocity to position: the one place where agents move, and the order in which contact is dealt with.

The promise concerns the straight chord between consecutive positions: it touches no wall and no closed door, exactly,
at any speed and time step. Solid bodies do not push into each other, also between two steps.

The dead are moved by nothing. Solid ones still have a body, which the others walk around. Where a step has several
phases each moves only the agents of its models.

In periodic space the end point may lie beyond the seam, where walls and obstacles have images. It is brought back into
the box at the very end; velocity is the displacement before that.
"""

from __future__ import annotations

import numpy as np

from tropel.agents.state import AgentState, Steered
from tropel.contact.bodies import Bodies
from tropel.contact.fidgeting import note_held
from tropel.contact.moves import HowTheyMove
from tropel.contact.moving import move_exactly, move_freely, move_towards, walls_around
from tropel.contact.wanted import check_short, wanted_ends
from tropel.movement import Moves
from tropel.reductions import ONE_PROCESS, Reductions
from tropel.world import World


def integrate(
    state: AgentState,
    steered: Steered,
    world: World,
    dt: float,
    *,
    moves: HowTheyMove = Moves.FREELY,
    bodies: Bodies | None = None,
    reduce: Reductions = ONE_PROCESS,
) -> None:
    """Move everybody by one step and swap the fresh columns in.

    `moves` says how: one value where all agents are alike, else a code of `Moves` for each row. Afterwards velocity is
    the displacement over dt, except for agents that move exactly, which keep what the model wrote; heading and memory
    are as steered. Where there are solid `bodies`, they do not push into each other.
    """
    widest = reduce.largest(state.radius)
    # Where nothing depends on what all want before the first one moves, once through the agents is enough.
    at_once = bodies is None and not world.is_periodic
    if at_once and moves is Moves.FREELY:
        move_freely(state, steered, world, dt, widest)
    elif at_once and moves is Moves.EXACTLY and world.dim == 2:
        move_exactly(state, steered, world)
    else:
        _move_together(state, steered, world, dt, moves, bodies, widest, reduce)
    _swap_in(state, steered)


def _move_together(
    state: AgentState,
    steered: Steered,
    world: World,
    dt: float,
    moves: HowTheyMove,
    bodies: Bodies | None,
    widest: float,
    reduce: Reductions,
) -> None:
    """The order of contact: each stage works on the ends of moves that the one before it has left."""
    wanted, own_longest = wanted_ends(state, steered, dt, moves, keep_apart=bodies is not None)
    longest = reduce.largest(np.array([own_longest]))
    if world.is_periodic:
        check_short(state, wanted, longest, widest, world)
    target = wanted
    if bodies is not None:
        target = bodies.press(state, wanted, longest, walls_around(widest, world), dt, moves)
    # Walls and discs, then the exact check of the chord.
    move_towards(target, state, steered, world, dt, moves, widest)
    if bodies is not None:
        # A part of a move that crosses no wall crosses none either.
        bodies.give_way(state, steered, moves)
        note_held(state.position, wanted, steered.position, dt, state.held)
    world.wrap(steered.position)


def _swap_in(state: AgentState, steered: Steered) -> None:
    """Make what was steered the state; its old columns are written in the next step."""
    for name in ("position", "velocity", "heading"):
        fresh = getattr(steered, name)
        setattr(steered, name, state.columns[name])
        state.columns[name] = fresh
    for name, fresh in steered.memory.items():
        steered.memory[name], state.columns[name] = state.columns[name], fresh
