"""The lattice crowd decides, and settles conflicts, as a plain reading of the rules says."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
import shapely
from hypothesis import given, settings
from hypothesis import strategies as st
from lattice_reference import Cell, ClosedCells, PlainFilter, PlainLattice, Someone, check_step

from tropel import Group, Lattice, Obstacle, PathPlans, Simulation, Target, World
from tropel.world.ground import Filter

CELL = 0.5  # exact in binary, so that centres of cells are too
ROWS, COLUMNS = 14, 19


def centre(cell: Cell) -> tuple[float, float]:
    return (cell[1] + 0.5) * CELL, (cell[0] + 0.5) * CELL


def cells_of(sim: Simulation) -> list[Cell]:
    columns, rows = np.floor(sim.agents.position / CELL).astype(int).T.tolist()
    return list(zip(rows, columns, strict=True))


def random_filters(generator: np.random.Generator, count: int) -> tuple[list[Filter], list[PlainFilter]]:
    """The same sub-layers for the simulation, in logarithms, and for the reference, as factors."""
    logs, plain = [], []
    for _ in range(count):
        height, width = generator.integers(1, 8, 2)
        row, column = generator.integers(0, (ROWS - height, COLUMNS - width))
        factor = generator.uniform(0.2, 1.0, (height, width)) * (generator.random((height, width)) > 0.3)
        group, spares = int(generator.integers(-1, 2)), bool(generator.random() < 0.5)
        with np.errstate(divide="ignore"):
            log_value = np.log(factor)
        logs.append(Filter(row=int(row), column=int(column), log_value=log_value, group=group, spares_inside=spares))
        cells = {(int(row + y), int(column + x)): float(value) for (y, x), value in np.ndenumerate(factor)}
        plain.append(PlainFilter(factor=cells, group=None if group < 0 else group, spares_inside=spares))
    return logs, plain


def random_scene(seed: int, headway: float = 0.0) -> tuple[Simulation, PlainLattice, float]:
    """A noisy map with three targets, two groups with people of all speeds, and sub-layers."""
    generator = np.random.default_rng(seed)
    free = generator.random((ROWS, COLUMNS)) > generator.uniform(0.0, 0.3)
    goals = [(int(y), int(x)) for y, x in generator.integers(0, (ROWS, COLUMNS), (3, 2))]
    for cell in goals:
        free[cell] = True
    room = [(int(y), int(x)) for y, x in np.argwhere(free)]
    people = [room[k] for k in generator.permutation(len(room))[: int(generator.integers(1, 90))]]
    separation, gamma = float(generator.choice([0.5, 0.7, 1.0])), float(generator.choice([0.3, 0.6, 0.9]))
    # A small disk in the middle of a cell blocks that cell and no other.
    blocks = {f"block {y} {x}": Obstacle(radius=0.1, position=centre((int(y), int(x)))) for y, x in np.argwhere(~free)}
    world = World(
        shapely.box(0, 0, COLUMNS * CELL, ROWS * CELL),
        obstacles=blocks,
        targets={f"target {k}": Target(position=centre(cell), radius=0.05) for k, cell in enumerate(goals)},
    )
    half = len(people) // 2
    groups = [Group("first", positions=[centre(c) for c in people[half:]])]
    if half:
        groups.append(Group("second", positions=[centre(c) for c in people[:half]]))
    dt = float(generator.choice([0.05, 0.2]))
    sim = Simulation(
        world, [_at(group, "target 0") for group in groups],
        planning=PathPlans(cell=CELL, gamma=gamma),
        local=Lattice(cell=CELL, separation=separation, headway=headway, headway_spread=0.0), dt=dt, seed=seed,
    )  # fmt: skip
    sim.agents.goal[:] = generator.integers(0, 3, len(sim.agents))
    sim.agents.desired_speed[:] = generator.uniform(0.0, CELL / dt, len(sim.agents))
    sim.agents.desired_speed[generator.random(len(sim.agents)) < 0.4] = CELL / dt
    sim.agents.credit[:] = np.minimum(generator.uniform(0.0, 1.0), CELL / np.maximum(sim.agents.desired_speed, 0.1))
    sim.step()  # plans for all goals are laid from here on
    logs, plain = random_filters(generator, int(generator.integers(0, 4)))
    for number, each in enumerate(logs):
        sim.ground.set_filter(f"filter {number}", each)
    lattice = PlainLattice(
        free=free, goals={k: [cell] for k, cell in enumerate(goals)}, gamma=gamma, separation=separation, cell=CELL,
        filters=plain, headway=headway, free_part=0.3,
    )  # fmt: skip
    return sim, lattice, dt


def _at(group: Group, goal: str) -> Group:
    return Group(group.name, positions=group.positions, goal=goal)


def one_step(sim: Simulation) -> list[Someone]:
    before, credit = cells_of(sim), sim.agents.credit.copy()
    sim.step()
    agents = sim.agents
    return [
        Someone(
            before=before[i],
            after=after,
            goal=int(agents.goal[i]),
            group=int(agents.group[i]),
            speed=float(agents.desired_speed[i]),
            credit=float(credit[i]),
            credit_after=float(agents.credit[i]),
        )
        for i, after in enumerate(cells_of(sim))
    ]


@pytest.mark.filterwarnings("ignore:.*have no path to")
@settings(max_examples=60)
@given(seed=st.integers(0, 100_000))
def test_every_step_is_one_that_the_rules_allow_and_demand(seed: int) -> None:
    sim, lattice, dt = random_scene(seed)
    for _ in range(5):
        check_step(lattice, one_step(sim), dt)


@pytest.mark.filterwarnings("ignore:.*have no path to")
@settings(max_examples=60)
@given(seed=st.integers(0, 100_000), headway=st.sampled_from([0.05, 0.4, 1.3]))
def test_every_step_keeps_the_headways_and_demands_nothing_more(seed: int, headway: float) -> None:
    sim, lattice, dt = random_scene(seed, headway)
    # All cells are open when the watch begins.
    sim.all_layers()[-1].restore({"closed_cells": np.empty((0, 2), dtype=np.int64)})
    closed = ClosedCells(lattice, dt)
    for _ in range(8):
        people = one_step(sim)
        check_step(lattice, people, dt, shut=closed.surely(), perhaps=closed.perhaps())
        closed.note(people)


@pytest.mark.filterwarnings("ignore:.*have no path to")
def test_in_the_random_scenes_people_wait_for_closed_cells() -> None:
    """Otherwise the test above would prove nothing."""
    waited = 0
    for seed in range(20):
        sim, lattice, dt = random_scene(seed, 1.3)
        closed = ClosedCells(lattice, dt)
        for _ in range(4):
            people = one_step(sim)
            occupied = {one.before for one in people}
            for one in people:
                best = lattice.best_cells(one.before, one.goal, one.group, occupied)
                waited += bool(best) and best <= closed.surely()
            closed.note(people)
    assert waited > 50


@pytest.mark.filterwarnings("ignore:.*have no path to")
def test_the_random_scenes_have_moves_ties_conflicts_and_vetoes() -> None:
    """Otherwise the test above would prove nothing."""
    moves = ties = conflicts = vetoed = 0
    for seed in range(30):
        sim, lattice, dt = random_scene(seed)
        people = one_step(sim)
        moves += check_step(lattice, people, dt)
        occupied = {one.before for one in people}
        best = [lattice.best_cells(one.before, one.goal, one.group, occupied) for one in people]
        bare = PlainLattice(
            free=lattice.free, goals=lattice.goals, gamma=lattice.gamma, separation=lattice.separation, cell=CELL
        )
        ties += sum(len(cells) > 1 for cells in best)
        alone = [next(iter(cells)) for cells in best if len(cells) == 1]
        conflicts += len(alone) - len(set(alone))
        vetoed += sum(
            best[i] != bare.best_cells(one.before, one.goal, one.group, occupied) for i, one in enumerate(people)
        )
    assert min(moves, ties, conflicts, vetoed) > 8


# Chances -----------------------------------------------------------------------------------------------------------

TILES = 8
AROUND = [(0, 1), (1, 0), (0, -1), (-1, 0), (1, 1), (1, -1), (-1, -1), (-1, 1)]


def chambers(
    *, targets: list[Cell], people: list[Cell], seed: int, grouped: bool = False
) -> tuple[Simulation, np.ndarray]:
    """Closed chambers of 3 × 3 cells with the same targets and people in each; ids are in no order.

    With `grouped`, everybody's place in `people` is also its group.

    Returns the simulation and, by id, the chamber and the place in `people` of everybody.
    """
    side = 4 * TILES * CELL
    lines = [4 * k * CELL + 0.5 * CELL for k in range(TILES)]
    middles = [(4 * ty + 2, 4 * tx + 2) for ty in range(TILES) for tx in range(TILES)]
    world = World(
        shapely.box(0, 0, side, side),
        walls=[[(at, 0), (at, side)] for at in lines] + [[(0, at), (side, at)] for at in lines],
        targets={
            f"{k}/{n}": Target(position=centre((y + dy, x + dx)), radius=0.05)
            for k, (y, x) in enumerate(middles)
            for n, (dy, dx) in enumerate(targets)
        },
    )
    who = [(k, n) for k in range(len(middles)) for n in range(len(people))]
    order = np.random.default_rng(seed).permutation(len(who))
    who = sorted((who[k] for k in order), key=lambda one: one[1] if grouped else 0)
    places = [(middles[k][0] + people[n][0], middles[k][1] + people[n][1]) for k, n in who]
    groups = [
        Group(f"group {n}", positions=[centre(c) for c, w in zip(places, who, strict=True) if not grouped or w[1] == n],
              goal="nearest target")
        for n in range(len(people) if grouped else 1)
    ]  # fmt: skip
    sim = Simulation(
        world, groups,
        planning=PathPlans(cell=CELL), local=Lattice(cell=CELL, separation=1.0, headway=0.0), dt=0.2, seed=seed,
    )  # fmt: skip
    return sim, np.array(who)


def repeated(sim: Simulation, times: int) -> list[np.ndarray]:
    """Moves of everybody, in cells, in as many steps that all begin alike, with time enough for any move."""
    begin = sim.agents.position.copy()
    moves = []
    for _ in range(times):
        sim.agents.position[:] = begin
        sim.agents.credit[:] = math.sqrt(2.0) * CELL / sim.agents.desired_speed
        sim.step()
        moves.append(np.rint((sim.agents.position - begin) / CELL).astype(int))
    return moves


def close_to(count: int, trials: int, chance: float) -> bool:
    """Whether a count agrees with a chance: no farther off than four and a half standard deviations."""
    return bool(abs(count - trials * chance) < 4.5 * math.sqrt(trials * chance * (1.0 - chance)))


@pytest.mark.parametrize("targets", [AROUND[:2], AROUND[1:4], AROUND[:4], AROUND[4:6], AROUND[4:]])
def test_of_equally_good_cells_each_is_taken_as_often(targets: list[Cell]) -> None:
    sim, _ = chambers(targets=targets, people=[(0, 0)], seed=3)
    moves = np.concatenate(repeated(sim, 40))
    counts = [int(((moves[:, 1] == dy) & (moves[:, 0] == dx)).sum()) for dy, dx in targets]
    assert sum(counts) == 40 * TILES**2
    assert all(close_to(count, sum(counts), 1.0 / len(targets)) for count in counts)


@pytest.mark.parametrize("people", [AROUND[:2], AROUND[4:7], [(0, 1), (1, 1), (-1, 0), (-1, -1)], AROUND])
def test_of_those_who_want_one_cell_each_wins_as_often(people: list[Cell]) -> None:
    sim, who = chambers(targets=[(0, 0)], people=people, seed=len(people))
    by_direction, by_rank = np.zeros(len(people)), np.zeros(len(people))
    rank = np.array([int((who[: k + 1, 0] == who[k, 0]).sum()) - 1 for k in range(len(who))])
    previous: list[np.ndarray] = []
    for moves in repeated(sim, 40):
        winners = np.flatnonzero(moves.any(axis=1))
        assert sorted(who[winners, 0].tolist()) == list(range(TILES**2)), "one enters each cell that is wanted"
        by_direction += np.bincount(who[winners, 1], minlength=len(people))
        by_rank += np.bincount(rank[winners], minlength=len(people))
        previous.append(winners[np.argsort(who[winners, 0])])
    trials = 40 * TILES**2
    assert all(close_to(count, trials, 1.0 / len(people)) for count in (*by_direction, *by_rank))
    # Who has won before has no advantage from it, and no disadvantage.
    again = sum(int((a == b).sum()) for a, b in itertools.pairwise(previous))
    assert close_to(again, 39 * TILES**2, 1.0 / len(people))


@pytest.mark.parametrize("aside", [(0, 1), (1, 0), (0, -1), (-1, 0)])
def test_of_two_who_would_cross_one_goes_and_each_as_often(aside: Cell) -> None:
    # Two stand side by side before two targets side by side, and to each the one straight ahead is forbidden.
    ahead = (aside[1], aside[0])
    both = (ahead[0] + aside[0], ahead[1] + aside[1])
    sim, who = chambers(targets=[ahead, both], people=[(0, 0), aside], seed=3, grouped=True)
    for group, forbidden in enumerate((ahead, both)):
        vetoes = np.zeros(sim.ground.raster.shape)
        vetoes[2 + forbidden[0] :: 4, 2 + forbidden[1] :: 4] = -np.inf
        sim.ground.set_filter(f"for {group}", Filter(row=0, column=0, log_value=vetoes, group=group))
    rows = [np.flatnonzero(who[:, 1] == n)[np.argsort(who[who[:, 1] == n, 0])] for n in range(2)]
    across = np.zeros(2, dtype=int)
    for moves in repeated(sim, 40):
        diagonal = np.array([np.abs(moves[rows[n]]).sum(axis=1) == 2 for n in range(2)])
        assert (diagonal.sum(axis=0) == 1).all(), "one of the two goes"
        across += diagonal.sum(axis=1)
    assert close_to(across[0], 40 * TILES**2, 0.5)


def test_the_own_cell_is_left_even_for_a_worse_one_and_kept_only_when_all_others_are_vetoed() -> None:
    world = World(shapely.box(0, 0, 5 * CELL, CELL), targets={"end": Target(position=centre((0, 4)), radius=0.05)})
    people = [centre((0, 2)), centre((0, 3)), centre((0, 4))]
    sim = Simulation(
        world, Group("people", positions=people, goal="end"), planning=PathPlans(cell=CELL),
        local=Lattice(cell=CELL, headway=0.0), dt=0.1, seed=1,
    )  # fmt: skip
    sim.agents.credit[:] = 1.0
    sim.step()
    # The last turns back rather than stay; the one in the middle has nowhere to go; the first has arrived.
    assert cells_of(sim) == [(0, 1), (0, 3), (0, 4)]
    sim.ground.set_filter("shut", Filter(row=0, column=0, log_value=np.full((1, 3), -np.inf)))
    for _ in range(30):
        sim.step()
    assert cells_of(sim)[0] == (0, 1)


@pytest.mark.filterwarnings("ignore:.*have no path to")
def test_the_order_of_rows_does_not_matter() -> None:
    generator = np.random.default_rng(5)
    for seed in (3, 8):
        sim, _, _ = random_scene(seed)
        shuffled, _, _ = random_scene(seed)
        order = generator.permutation(len(sim.agents))
        shuffled.agents.columns.update({name: array[order] for name, array in shuffled.agents.columns.items()})
        shuffled.agents.touch()
        shuffled.population._members.clear()
        for _ in range(15):
            sim.step()
            shuffled.step()
            back = np.argsort(shuffled.agents.id)
            np.testing.assert_array_equal(sim.agents.position, shuffled.agents.position[back])
            np.testing.assert_array_equal(sim.agents.credit, shuffled.agents.credit[back])
