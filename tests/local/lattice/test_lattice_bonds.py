"""Families and followers on the lattice: what bonds are worth, and what they do to a crowd."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
import shapely
from numpy.typing import NDArray

from tropel import Group, Lattice, Normal, PathPlans, Simulation, Target, World, events
from tropel.agents.state import AgentState
from tropel.errors import ParameterError
from tropel.local.lattice.bonds import BOND_COLUMNS, BondFinder, worth_of_bonds

Floats = NDArray[np.float64]
REACH, STRENGTH = 6.0, 9.0
LENGTH, WIDTH, PULL = 3.0, 5.0, 8.0


def finder() -> BondFinder:
    return BondFinder(
        family_reach=REACH,
        family_strength=STRENGTH,
        leader_length=LENGTH,
        leader_width=WIDTH,
        leader_strength=PULL,
    )


def people(position: Floats, **columns: object) -> AgentState:
    state = AgentState(2, BOND_COLUMNS)
    state.add(len(position), {"position": position, **columns})
    return state


def log_worth(place: Floats, line: Floats, reach: float, strength: float) -> float:
    """The formula at the head of `lattice_bonds`, by dense sampling of the line instead of a projection."""
    points = line[:2] + np.linspace(0.0, 1.0, 20_001)[:, None] * (line[2:] - line[:2])
    away = np.sqrt(((points - place) ** 2).sum(axis=1)).min()
    return strength * math.log(max(1.0 - away / reach, 0.05))


def expected(state: AgentState, i: int, place: Floats) -> float:
    worth = 0.0
    members = state.position[state.family == state.family[i]]
    if state.family[i] >= 0 and len(members) > 1:
        middle = members.mean(axis=0)
        worth += log_worth(place, np.concatenate([middle, middle]), REACH, STRENGTH)
    for j in np.flatnonzero(state.id == state.leader[i]):
        axis = LENGTH * state.heading[j]
        worth += log_worth(place, np.concatenate([state.position[j] - axis, state.position[j] + axis]), WIDTH, PULL)
    return worth


def test_bonds_are_worth_what_the_formula_says() -> None:
    rng = np.random.default_rng(4)
    angle = rng.uniform(0.0, 2.0 * math.pi, 40)
    state = people(
        rng.uniform(0.0, 12.0, (40, 2)),
        family=np.where(np.arange(40) < 25, rng.integers(3, 12, 40), -1),
        leader=np.where(np.arange(40) % 3 == 0, rng.integers(0, 45, 40), -1),
        heading=np.column_stack([np.cos(angle), np.sin(angle)]),
    )
    state.leader[state.leader == state.id] = -1
    bonds = finder().bonds(state)
    for i in range(40):
        place = rng.uniform(0.0, 12.0, 2)
        found = worth_of_bonds(i, place[0], place[1], bonds)
        assert found == pytest.approx(expected(state, i, place), abs=1e-4)


def test_nobody_bound_has_no_bonds_to_pay_for() -> None:
    assert finder().bonds(people(np.zeros((5, 2)))).of.shape == (0, 2)


def test_a_family_of_one_and_a_leader_who_has_left_bind_nobody() -> None:
    state = people(np.arange(8.0).reshape(4, 2), family=[5, -1, -1, -1], leader=[-1, -1, 77, 2])
    bonds = finder().bonds(state)
    assert worth_of_bonds(0, 50.0, 50.0, bonds) == 0.0
    assert worth_of_bonds(2, 50.0, 50.0, bonds) == 0.0
    assert worth_of_bonds(3, 50.0, 50.0, bonds) < 0.0


def test_the_dead_bind_nobody() -> None:
    state = people(np.arange(8.0).reshape(4, 2), family=[5, 5, 5, -1], leader=[-1, -1, 3, -1])
    state.columns["dead"] = np.array([0, 1, 0, 1], dtype=np.uint8)
    bonds = finder().bonds(state)
    np.testing.assert_allclose(bonds.line[0, :2], [2.0, 3.0], atol=1e-6)
    assert bonds.strength.tolist() == [STRENGTH, 0.0]
    state.columns["dead"][2] = 1
    assert worth_of_bonds(0, 50.0, 50.0, finder().bonds(state)) == 0.0


def test_who_goes_is_bound_no_longer() -> None:
    state = people(np.arange(8.0).reshape(4, 2), family=[5, 5, 5, -1], leader=[3, -1, -1, -1])
    find = finder()
    assert (find.bonds(state).of[0] >= 0).all()
    state.keep(np.array([True, True, False, False]))
    bonds = find.bonds(state)
    assert bonds.of[0, 1] == -1
    np.testing.assert_allclose(bonds.line[0, :2], [1.0, 2.0], atol=1e-6)
    state.family[:] = state.leader[:] = -1
    assert len(find.bonds(state).of) == 0


def test_the_middle_of_a_family_does_not_depend_on_the_order_of_its_members() -> None:
    rng = np.random.default_rng(1)
    place = rng.uniform(0.0, 1000.0, (500, 2))
    one = finder().bonds(people(place, family=np.full(500, 7)))
    other = finder().bonds(people(place[rng.permutation(500)], family=np.full(500, 7)))
    np.testing.assert_array_equal(one.line, other.line)


def wide_room(**parameters: float) -> Simulation:
    """A room of 30 × 30 cells whose whole east side is the exit: the way from column c is 29 - c cells long."""
    world = World(shapely.box(0, 0, 12, 12), exits={"east": shapely.box(11.6, 0, 12, 12)})
    agents = [
        Group("guides", count=4, region=shapely.box(2, 2, 10, 10), desired_speed=1.0),
        Group("rest", count=90, families=3, follow="guides", region=shapely.box(0, 0, 10, 12), desired_speed=1.0),
    ]
    return Simulation(world, agents, planning=PathPlans(), local=Lattice(**parameters), dt=0.4, seed=6)


def test_bound_agents_step_to_the_best_of_their_neighbouring_cells() -> None:
    sim = wide_room()
    for _ in range(3):
        sim.step()
    state = sim.agents
    state.columns["credit"][:] = 0.4  # enough for any move
    before = AgentState(2, BOND_COLUMNS)
    before.columns = {name: column.copy() for name, column in state.columns.items()}
    cells = np.floor(before.position / 0.4).astype(int)
    taken = np.zeros((32, 32), dtype=bool)
    taken[cells[:, 1] + 1, cells[:, 0] + 1] = True
    sim.step()
    moved = 0
    for i in range(len(before)):
        now = np.flatnonzero(state.id == before.id[i])
        if not now.size:
            continue
        column, row = cells[i]
        worth = {}
        for dx, dy in ((dx, dy) for dx in (-1, 0, 1) for dy in (-1, 0, 1) if dx or dy):
            x, y = column + dx, row + dy
            if not (0 <= x < 30 and 0 <= y < 30) or taken[y + 1, x + 1]:
                continue
            around = taken[y : y + 3, x : x + 3].sum()
            place = np.array([x + 0.5, y + 0.5]) * 0.4
            bonds = expected(before, i, place)
            worth[x, y] = math.log(0.6) * (29 - x) + math.log(0.5) * around + bonds
        there = tuple(np.floor(state.position[now[0]] / 0.4).astype(int).tolist())
        if there != (column, row):
            moved += 1
            assert worth[there] == pytest.approx(max(worth.values()), abs=1e-3)
    assert moved > 40


def hall(*, families: int | None = 4, seed: int = 3, count: int = 120, **parameters: float) -> Simulation:
    side = 20.0 if count < 1000 else 60.0
    world = World(
        shapely.box(0, 0, 1.5 * side, side),
        exits={"west": shapely.box(0, 8, 0.4, 11), "east": shapely.box(1.5 * side - 0.4, 8, 1.5 * side, 11)},
    )
    speed = Normal(1.3, 0.25, low=0.7, high=1.9)
    people = Group("people", count=count, families=families, desired_speed=speed)
    return Simulation(world, people, planning=PathPlans(), local=Lattice(**parameters), dt=0.2, seed=seed)


def spread_of_families(sim: Simulation) -> float:
    """Mean distance of people from the middle of their family [m]."""
    family, place = sim.agents.columns["family"], sim.agents.position
    return float(
        np.mean(
            [
                np.linalg.norm(place[family == f] - place[family == f].mean(axis=0), axis=1).mean()
                for f in np.unique(family)
            ]
        )
    )


def mean_spread(sim: Simulation) -> float:
    found = []
    while sim.time < 9.0:
        sim.step()
        found.append(spread_of_families(sim))
    return float(np.mean(found))


def test_families_keep_together_and_without_bonds_they_do_not() -> None:
    bound, free = mean_spread(hall()), mean_spread(hall(family_strength=0.0))
    assert bound < 0.9
    assert free > 1.5
    assert bound < 0.5 * free


def test_everybody_in_a_family_gets_out_although_two_exits_pull() -> None:
    sim = hall()
    sim.run(until="empty", limit=60.0)
    assert len(sim.agents) == 0


def behind_a_guide(**parameters: float) -> Simulation:
    world = World(
        shapely.box(0, 0, 24, 16),
        exits={"out": shapely.box(23.6, 0, 24, 3)},
        regions={"start": shapely.box(2, 6, 6, 10)},
        targets={"statue": Target(position=(20.0, 14.0), radius=0.6)},
    )
    agents = [
        Group("guide", positions=[(4.0, 8.0)], goal="statue", desired_speed=0.9),
        Group("visitors", count=12, region="start", follow="guide", goal="out", desired_speed=1.2),
    ]
    return Simulation(world, agents, planning=PathPlans(), local=Lattice(**parameters), dt=0.25, seed=2)


def distance_from_the_axis(sim: Simulation) -> float:
    """Mean distance of the visitors from the axis on the guide [m] while it walks."""
    found = []
    while sim.time < 15.0:
        sim.step()
        place, heading = sim.agents.position, sim.agents.heading[0]
        assert sim.agents.group[0] == 0
        offset = place[1:] - place[0]
        along = np.clip(offset @ heading, -LENGTH, LENGTH)
        found.append(np.linalg.norm(offset - along[:, None] * heading, axis=1).mean())
    return float(np.mean(found))


def test_followers_stay_near_their_leaders_axis_and_without_bonds_they_do_not() -> None:
    led, free = distance_from_the_axis(behind_a_guide()), distance_from_the_axis(behind_a_guide(leader_strength=0.0))
    assert led < 1.5
    assert free > 2.0 * led


def test_bonds_can_be_untied_by_an_event() -> None:
    sim = behind_a_guide()
    sim.at(0.0, events.SetParameter(name="leader", value=-1, group="visitors"))
    assert distance_from_the_axis(sim) == distance_from_the_axis(behind_a_guide(leader_strength=0.0))


def test_bound_crowds_have_the_same_bits_after_a_resume_and_on_two_threads(tmp_path: Path) -> None:
    def build(threads: int) -> Simulation:
        sim = hall(count=2400)
        sim.threads = threads
        return sim

    one, two, resumed = build(1), build(2), build(2)
    for step in range(12):
        one.step()
        two.step()
        if step == 5:
            two.save(tmp_path / "half.npz")
    resumed.restore(tmp_path / "half.npz")
    for _ in range(6):
        resumed.step()
    assert one.state_hash() == two.state_hash() == resumed.state_hash()


@pytest.mark.parametrize(
    ("name", "value"), [("family_reach", 0.0), ("leader_width", math.inf), ("leader_strength", -1.0)]
)
def test_parameters_of_bonds_are_checked(name: str, value: float) -> None:
    with pytest.raises(ParameterError, match=name):
        Lattice(**{name: value})
