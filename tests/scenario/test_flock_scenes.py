"""Flocks as built-in scenes: what each shows, measured, and gone when its mechanism is switched off."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tropel.analysis import subflocks
from tropel.scenario import load_builtin
from tropel.scenario.schema import GroupSpec, LayerSpec
from tropel.simulation import Simulation


def variant(
    name: str,
    *,
    of: str = "",
    groups: dict[str, dict[str, Any]] | None = None,
    stones: bool = True,
    layout: int | None = None,
    **local: Any,
) -> Simulation:
    """A built-in scene with other numbers of its groups, and of its model or of the one that steers group `of`.

    With a `layout`, stones and flock are at other random places.
    """
    scenario = load_builtin(name)

    def changed(layer: LayerSpec) -> LayerSpec:
        return LayerSpec(model=layer.model, **{**(layer.model_extra or {}), **local})

    def member(group: GroupSpec) -> GroupSpec:
        update = dict((groups or {}).get(group.name, {}))
        if group.name == of and group.local is not None:
            update["local"] = changed(group.local)
        return group.model_copy(update=update)

    update: dict[str, Any] = {"groups": [member(group) for group in scenario.spec.groups]}
    if not of:
        update["local"] = changed(scenario.spec.local)
    world = scenario.spec.world
    if not stones:
        update["world"] = world.model_copy(update={"scatter": {}})
    elif layout is not None:
        scattered = {key: each.model_copy(update={"seed": layout}) for key, each in world.scatter.items()}
        update |= {"world": world.model_copy(update={"scatter": scattered}), "seed": layout}
    return replace(scenario, spec=scenario.spec.model_copy(update=update)).build()


def stepped(sim: Simulation, until: float) -> Iterator[Simulation]:
    while sim.time < until - 1e-9:
        sim.step()
        yield sim


def clearance(sim: Simulation) -> float:
    """Least free distance between anybody and an obstacle [m]."""
    obstacles = sim.world.obstacles
    away = np.linalg.norm(sim.agents.position[:, None] - obstacles.position, axis=-1)
    return float((away - sim.agents.radius[:, None] - obstacles.radius).min(initial=np.inf))


def pieces(position: NDArray[np.float64], within: float) -> NDArray[np.int64]:
    """Sizes of the sub-flocks."""
    return np.bincount(subflocks(position, within=within))


# GROUPS' field ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Crossing:
    """How a flock crossed the field."""

    most_pieces: int
    parted: float  #: the largest share of all that was in a second piece
    pieces: int  #: at the end
    arrived: float  #: share of all who are within a metre of the goal at the end
    clearance: float


def crossing(sim: Simulation) -> Crossing:
    most, parted, free = 0, 0.0, np.inf
    for _ in stepped(sim, 40.0):
        if sim.step_number % 5 == 0:
            sizes = np.sort(pieces(sim.agents.position, 0.2))
            most = max(most, len(sizes))
            parted = max(parted, float(sizes[:-1].max(initial=0) / sizes.sum()))
            free = min(free, clearance(sim))
    away = np.linalg.norm(sim.agents.position - sim.world.targets["goal"].position, axis=1)
    return Crossing(
        most_pieces=most,
        parted=parted,
        pieces=len(pieces(sim.agents.position, 0.2)),
        arrived=float((away < 1.0).mean()),
        clearance=free,
    )


def layouts(few: int) -> list[Any]:
    """How many layouts of the stones a test looks at, each with a flock of its own: a few, and twenty if asked for."""
    return [pytest.param(few, id=f"{few} layouts"), pytest.param(20, id="20 layouts", marks=pytest.mark.long)]


@pytest.mark.parametrize("number", layouts(4))
@pytest.mark.parametrize(("scene", "split"), [("groups_field", 2), ("groups_field_240", 4)])
def test_a_flock_follows_its_leader_through_stones_splits_and_is_one_again(scene: str, split: int, number: int) -> None:
    """In typical layouts: nearly all flocks arrive in one piece, and nearly all have split on the way."""
    outcomes = [crossing(variant(scene, layout=layout)) for layout in range(number)]
    one_again = [outcome.arrived == 1.0 and outcome.pieces == 1 for outcome in outcomes]
    has_split = [outcome.most_pieces >= split and outcome.parted >= 0.05 for outcome in outcomes]
    assert np.mean(one_again) >= 0.95
    assert np.mean(has_split) >= 0.9
    assert min(outcome.clearance for outcome in outcomes) > -1e-9


def test_without_stones_a_flock_stays_in_one_piece() -> None:
    outcome = crossing(variant("groups_field", stones=False))
    assert outcome.most_pieces == 1
    assert outcome.arrived == 1.0


@pytest.mark.parametrize("number", layouts(2))
@pytest.mark.parametrize("scene", ["groups_field", "groups_field_240"])
def test_without_the_pull_of_the_leader_a_flock_does_not_arrive(scene: str, number: int) -> None:
    # In 20 layouts, 1 to 67 % of a flock drift to the goal without a pull, 18 % on average; all of it with one.
    outcomes = [crossing(variant(scene, layout=layout, leader_pull=0.0)) for layout in range(number)]
    assert np.mean([outcome.arrived for outcome in outcomes]) < 0.3
    assert all(outcome.arrived < 0.9 and outcome.pieces > 5 for outcome in outcomes)


@pytest.mark.parametrize("number", layouts(2))
@pytest.mark.parametrize(("count", "share"), [(32, 1.0), (512, 0.6)])
def test_small_and_large_flocks_cross_the_field(count: int, share: float, number: int) -> None:
    # In 20 layouts, 32 boids arrive to the last one in all, and 512 in 14; at least 97 % of them arrive in the others.
    outcomes = [crossing(variant("groups_field", groups={"flock": {"count": count}}, layout=k)) for k in range(number)]
    assert all(outcome.arrived > 0.95 for outcome in outcomes)
    assert np.mean([outcome.arrived == 1.0 for outcome in outcomes]) >= share
    assert min(outcome.clearance for outcome in outcomes) > -1e-9


# Columns ----------------------------------------------------------------------------------------------------------


def past_columns(until: float, **local: Any) -> tuple[int, float, float, float]:
    """A fifth of the flock, which sees further for that: the most lanes between the first columns, the share of its
    largest piece at the end, how far its middle has come, and the least clearance."""
    seen = {"sense_radius": 2.5}
    sim = variant("flock_columns", groups={"birds": {"count": 4000, **seen}, "leaders": seen}, **local)
    lanes, free = 0, np.inf
    for _ in stepped(sim, until):
        if sim.step_number % 10:
            continue
        beside = sim.agents.position[np.abs(sim.agents.position[:, 0] - 40.0) < 1.5]
        if len(beside) > 400:
            lanes = max(lanes, int((pieces(beside, 2.5) > 100).sum()))
            free = min(free, clearance(sim))
    sizes = pieces(sim.agents.position, 2.5)
    return lanes, float(sizes.max() / sizes.sum()), float(np.median(sim.agents.position[:, 0])), free


def test_a_flock_in_space_parts_into_lanes_between_columns_and_is_one_again_behind_them() -> None:
    lanes, largest, come, free = past_columns(until=48.0)
    assert lanes == 3
    assert largest > 0.97
    assert come > 90.0
    assert free > -1e-9


def test_without_the_pull_of_leaders_a_flock_in_space_does_not_come_past_the_columns() -> None:
    # Half of a flock with leaders is past the columns at 24 s.
    lanes, largest, come, _ = past_columns(until=32.0, leader_pull=0.0)
    assert lanes == 0
    assert largest < 0.8
    assert come < 40.0


# A predator -------------------------------------------------------------------------------------------------------


def hunted(until: float, **prey: Any) -> tuple[list[int], float]:
    """The numbers of pieces of a school from the predator's coming on, and how near the nearest fish usually was
    while it hunted."""
    sim = variant("school_predator", of="fish", **prey)
    fish, predator = sim.agents.group == 0, sim.agents.group == 2
    numbers, nearest = [], []
    for _ in stepped(sim, until):
        if sim.step_number % 4:
            continue
        if sim.time > 15.0:
            numbers.append(len(pieces(sim.agents.position[fish], 1.5)))
        if 18.0 < sim.time < 45.0:
            nearest.append(np.linalg.norm(sim.agents.position[fish] - sim.agents.position[predator], axis=1).min())
    return numbers, float(np.median(nearest))


def test_a_school_parts_before_a_predator_and_closes_when_it_is_gone() -> None:
    numbers, nearest = hunted(until=70.0)
    assert numbers[0] == 1
    assert max(numbers) >= 4
    assert numbers[-1] == 1
    assert nearest > 0.8


def test_a_school_that_does_not_flee_does_not_part() -> None:
    numbers, nearest = hunted(until=45.0, flight=0.0)
    assert max(numbers) == 1
    assert nearest < 0.5


# A hundred thousand -----------------------------------------------------------------------------------------------


def from_leaders(sim: Simulation) -> float:
    """How far everybody usually is from its leader [m]."""
    leader = sim.agents.columns["leader"]
    led = leader >= 0
    d = sim.agents.position[led] - sim.agents.position[np.searchsorted(sim.agents.id, leader[led])]
    d -= sim.world.period * np.round(d / sim.world.period)
    return float(np.median(np.linalg.norm(d, axis=1)))


def test_boids_gather_about_forty_leaders_and_do_not_without_their_pull() -> None:
    def gathered(**local: Any) -> float:
        sim = variant("flock_100k", groups={"boids": {"count": 3000}}, **local)
        before = from_leaders(sim)
        for _ in stepped(sim, 20.0):
            pass
        return from_leaders(sim) / before

    assert gathered() < 0.75
    assert gathered(leader_pull=0.0) > 1.0


def test_a_hundred_thousand_boids_take_their_first_steps() -> None:
    sim = load_builtin("flock_100k").build()
    for _ in stepped(sim, 0.3):
        pass
    assert len(sim.agents) == 100_040
    assert np.isfinite(sim.agents.position).all()
    # Some may have been stopped by a stone.
    assert np.median(np.linalg.norm(sim.agents.velocity, axis=1)) > 1.4
