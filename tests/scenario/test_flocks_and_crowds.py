"""Flocks and crowds as built-in scenes: what each shows, measured, and gone when its mechanism is switched off."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from many_seeds import fast_first
from tropel.scenario import load_builtin
from tropel.scenario.schema import LayerSpec
from tropel.simulation import Simulation
from wall_crossings import closed_lines, crossings

NEVER = 1e9


@dataclass(frozen=True)
class Run:
    """What happened, by agent id where it is an array."""

    left: int  #: how many had not arrived at the end
    arrival: NDArray[np.float64]  #: [s]; NEVER for those who had not
    clearance: NDArray[np.float64]  #: least free distance to any obstacle [m]
    overlapping: int  #: pairs of agents that ever overlapped
    wall_crossings: int
    off_course: dict[str, float]  #: per group, root mean square distance from the middle of its course [m]


def variant(
    name: str,
    *,
    seed: int | None = None,
    count: int | None = None,
    parameters: dict[str, dict[str, Any]] | None = None,
    **local: Any,
) -> Simulation:
    """A built-in scene with some numbers changed: of the groups, of their members' characters, of the model."""
    scenario = load_builtin(name)
    layer = LayerSpec(model=scenario.spec.local.model, **{**(scenario.spec.local.model_extra or {}), **local})
    groups = [
        group.model_copy(
            update={
                "count": group.count if count is None else count,
                "parameters": {**group.parameters, **(parameters or {}).get(group.name, {})},
            }
        )
        for group in scenario.spec.groups
    ]
    spec = scenario.spec.model_copy(update={"local": layer, "groups": groups})
    return replace(scenario, spec=spec).build(seed=seed)


def watched(sim: Simulation, *, limit: float) -> Run:
    """Run until all have arrived, looking at every step."""
    people = len(sim.agents)
    clearance = np.full(people, np.inf)
    obstacles = sim.world.obstacles
    chords: list[NDArray[np.float64]] = []
    away: dict[str, list[NDArray[np.float64]]] = {name: [] for name in sim.groups}
    while len(sim.agents) and sim.time < limit - 1e-9:
        ids, before = sim.agents.id.copy(), sim.agents.position.copy()
        sim.step()
        agents = sim.agents
        stayed = np.isin(ids, agents.id)
        if sim.world.dim == 2:
            chords.append(np.stack([before[stayed], agents.position], axis=1))
        if len(obstacles):
            centres = np.linalg.norm(agents.position[:, None] - obstacles.position, axis=-1)
            free = (centres - agents.radius[:, None] - obstacles.radius).min(axis=1)
            clearance[agents.id] = np.minimum(clearance[agents.id], free)
        for number, group in enumerate(sim.groups):
            away[group].append(_off_course(sim, agents.position[agents.group == number], group))
    arrival = np.full(people, NEVER)
    gone = sim.population.departures()
    arrival[gone["id"]] = gone["time"]
    log = sim.collisions
    between_agents = {(a, b) for a, b in zip(log.id_a, log.id_b, strict=True) if b >= 0}
    return Run(
        left=len(sim.agents),
        arrival=arrival,
        clearance=clearance,
        overlapping=len(between_agents),
        wall_crossings=_wall_crossings(sim, chords),
        off_course={name: float(np.sqrt(np.mean(np.concatenate(parts) ** 2))) for name, parts in away.items()},
    )


def _wall_crossings(sim: Simulation, chords: list[NDArray[np.float64]]) -> int:
    if not len(sim.world.segments) or not chords:
        return 0
    moves = np.concatenate(chords)
    return crossings(moves[:, 0], moves[:, 1], closed_lines(sim.world))


def _off_course(sim: Simulation, position: NDArray[np.float64], group: str) -> NDArray[np.float64]:
    """How far those of a group who are between the obstacles are from the line they would fly without any."""
    target = f"{group}_roost"
    if target not in sim.world.targets:
        return np.zeros(1)
    middle = np.asarray(sim.world.targets[target].position)[1:]
    among = (position[:, 0] > 15.0) & (position[:, 0] < 52.0)
    return np.asarray(np.linalg.norm(position[among, 1:] - middle, axis=1))


# A flock of many characters ---------------------------------------------------------------------------------------

FEW, MANY = range(1, 4), range(1, 21)
#: tanh D of an obstacle that is so many d0 away is g21 = 0.05: nearer ones repel, those farther away are ignored.
FELT = -math.log(math.atanh(0.05))


@dataclass(frozen=True)
class Flock:
    """What became of flocks with several seeds; one row per agent of each."""

    courage: NDArray[np.float64]
    stuck: NDArray[np.bool_]  #: has not arrived, though there was time for it twice over
    touched: NDArray[np.bool_]  #: a stone
    overlapping: int  #: pairs of agents

    @property
    def stops_unmoved(self) -> NDArray[np.bool_]:
        """Whether the distance d1 at which somebody stops is one from which a stone is not felt yet."""
        d0 = np.maximum(2.0 ** (2.0 * (1.0 - self.courage)) - 1.0, 1e-3)
        d1 = 3.2 * np.minimum(1.0, 2.0 * (1.0 - self.courage)) - 0.5 * 0.5
        return np.maximum(d1, 0.05) > FELT * d0


def flock(seeds: range, **changed: Any) -> Flock:
    sims = [variant("flock_personalities", seed=seed, **changed) for seed in seeds]
    courage = [sim.agents.courage.copy() for sim in sims]
    runs = [watched(sim, limit=200.0) for sim in sims]
    return Flock(
        courage=np.concatenate(courage),
        stuck=np.concatenate([run.arrival == NEVER for run in runs]),
        touched=np.concatenate([run.clearance < 1e-3 for run in runs]),
        overlapping=sum(run.overlapping for run in runs),
    )


@pytest.fixture(scope="module", params=fast_first([FEW, MANY], fast=1), ids=len)
def characters(request: pytest.FixtureRequest) -> Flock:
    return flock(request.param)


def test_nobody_of_a_flock_of_random_characters_runs_into_a_stone(characters: Flock) -> None:
    assert not characters.touched.any()
    # Bodies are not solid here, and others move: of 400 agents with 20 seeds, two overlap once.
    assert characters.overlapping <= 0.005 * len(characters.courage)


def test_some_get_stuck_through_their_own_character(characters: Flock) -> None:
    # With 20 seeds 69 of 400 are stuck, 61 of them as the equations say.
    assert 0.08 < characters.stuck.mean() < 0.3
    assert characters.stuck[characters.stops_unmoved].mean() > 0.3
    assert characters.stuck[~characters.stops_unmoved].mean() < 0.08


def test_only_the_speed_law_keeps_a_flock_of_random_characters_from_colliding() -> None:
    # With eight seeds and constant speed 65 of 160 touch a stone and 16 pairs overlap; with the printed law, 14 and 7.
    constant = flock(FEW, speed_law="constant")
    assert constant.touched.mean() > 0.25
    assert constant.overlapping >= 3
    printed = flock(FEW, speed_law="time_to_contact")
    assert printed.touched.mean() > 0.03


def test_those_who_feel_stones_in_time_do_not_get_stuck_whatever_else_they_are() -> None:
    # With eight seeds 7 of 160 are stuck, of whom some wait behind others.
    timid = flock(FEW, parameters={"flock": {"courage": 0.3}})
    assert not timid.stops_unmoved.any()
    assert timid.stuck.mean() < 0.1


# Two flocks in space ----------------------------------------------------------------------------------------------


def pair(**courage: float) -> Run:
    changed = {flock: {"courage": value} for flock, value in courage.items()}
    return watched(variant("flocks3d_pair", parameters=changed), limit=90.0)


def clearances(run: Run) -> tuple[float, float]:
    """Of the typical member of the timid and of the bold flock [m]."""
    return float(np.median(run.clearance[:40])), float(np.median(run.clearance[40:]))


def test_a_timid_flock_spreads_and_keeps_clear_where_a_bold_one_stays_together() -> None:
    run = pair()
    assert run.left == 0
    assert run.overlapping == 0
    assert run.off_course["timid"] > 1.2 * run.off_course["bold"]
    timid, bold = clearances(run)
    assert timid > 1.5
    assert bold < 0.8


def test_flocks_of_one_character_fly_alike_and_exchanged_characters_exchange_the_flocks() -> None:
    run = pair(timid=0.5, bold=0.5)
    assert run.off_course["timid"] == pytest.approx(run.off_course["bold"], rel=0.1)
    assert clearances(run)[0] == pytest.approx(clearances(run)[1], abs=0.25)
    run = pair(timid=0.7, bold=0.15)
    assert run.off_course["bold"] > 1.2 * run.off_course["timid"]
    assert clearances(run)[1] > clearances(run)[0] + 0.7


# Crowds -----------------------------------------------------------------------------------------------------------


def blocks(*, limit: float = 120.0, **changed: Any) -> Run:
    return watched(variant("four_blocks", **changed), limit=limit)


def test_four_blocks_cross_between_squares_and_nobody_runs_into_anybody() -> None:
    run = blocks()
    assert run.left == 0
    assert run.arrival.max() < 100.0
    assert np.median(run.arrival) < 38.0
    assert run.overlapping == 0
    assert run.wall_crossings == 0


def test_four_blocks_jam_when_nobody_turns_away_from_others() -> None:
    assert blocks(agents={"strength": 0.0}, limit=60.0).left > 80


def test_four_blocks_lose_their_time_at_the_squares_when_these_do_not_repel() -> None:
    assert np.median(blocks(walls={"strength": 0.0}, limit=80.0).arrival) > 42.0


def clutter(*, count: int | None = 60, limit: float = 300.0, **changed: Any) -> Run:
    return watched(variant("clutter", count=count, **changed), limit=limit)


def test_all_find_their_way_through_clutter_and_nobody_runs_into_anybody() -> None:
    run = clutter()
    assert run.left == 0
    assert run.overlapping == 0
    assert run.wall_crossings == 0
    assert run.clearance.min() > -1e-9


@pytest.mark.parametrize("off", [{"competition": False}, {"walls": {"strength": 0.0}}])
def test_without_competition_or_repulsion_people_stay_behind_the_walls_of_the_clutter(off: dict[str, Any]) -> None:
    run = clutter(**off, limit=150.0)
    assert run.left >= 4
    assert run.wall_crossings == 0


def test_bodies_that_are_not_solid_overlap_in_the_clutter() -> None:
    assert clutter(solid_bodies=False, limit=60.0).overlapping > 30


@pytest.mark.long
def test_two_thousand_find_their_way_through_clutter() -> None:
    run = clutter(count=None)
    assert len(run.arrival) == 2000
    assert run.left == 0
    assert run.overlapping == 0
    assert run.wall_crossings == 0
    assert run.clearance.min() > -1e-9
