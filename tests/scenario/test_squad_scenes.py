"""The scenes of squads over several seeds and starting places, and what is gone when a mechanism is switched off."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import shapely

from tropel.scenario import load_builtin
from tropel.simulation import Simulation


def hold(seed: int, *, assess: bool) -> Simulation:
    """Guards and raiders that assess threats, or do not."""
    scenario = load_builtin("squad_hold")
    groups = []
    for group in scenario.spec.groups:
        assert group.squad is not None
        groups.append(group.model_copy(update={"squad": replace(group.squad, assess=assess)}))
    return replace(scenario, spec=scenario.spec.model_copy(update={"groups": groups})).build(seed=seed, threads=1)


def in_the_vault(sim: Simulation, group: str) -> int:
    """How many living agents of a group are in the vault, by their places alone."""
    own = (sim.agents.group == sim.groups.index(group)) & (sim.agents.dead == 0)
    return int(shapely.contains_xy(sim.world.rooms["vault"], *sim.agents.position[own].T).sum())


def kept(sim: Simulation, until: float) -> bool:
    """Whether at the end six of the eight guards are in the vault, and no raiders."""
    sim.run(until=until)
    return in_the_vault(sim, "guards") >= 6 and in_the_vault(sim, "raiders") == 0


def test_guards_keep_the_vault_if_squads_assess_threats_and_not_otherwise() -> None:
    assert kept(hold(1, assess=True), 30.0)
    assert not kept(hold(1, assess=False), 30.0)


@pytest.mark.long
def test_guards_keep_the_vault_whatever_the_seed() -> None:
    seeds = range(1, 13)
    assert np.mean([kept(hold(seed, assess=True), 45.0) for seed in seeds]) >= 0.85
    assert np.mean([kept(hold(seed, assess=False), 45.0) for seed in seeds]) <= 0.25


def search(seed: int, begin: tuple[str, str], *, share: bool) -> Simulation:
    """The office floor with squads that begin elsewhere."""
    scenario = load_builtin("squad_search")
    groups = []
    for group, region in zip(scenario.spec.groups, begin, strict=True):
        assert group.stages is not None
        stages = (replace(group.stages[0], share=share), *group.stages[1:])
        groups.append(group.model_copy(update={"region": region, "stages": stages}))
    return replace(scenario, spec=scenario.spec.model_copy(update={"groups": groups})).build(seed=seed, threads=1)


def visits(sim: Simulation, until: float) -> dict[str, set[int]]:
    """Which groups have had somebody in each room, by their places alone."""
    found: dict[str, set[int]] = {name: set() for name in sim.world.rooms}
    rooms: Any = sim.world.rooms
    while sim.time < until and not all("lobby" in sim.squads[name].mission for name in sim.squads):
        sim.step()
        for name, room in rooms.items():
            inside = shapely.contains_xy(room, *sim.agents.position.T)
            found[name] |= set(sim.agents.group[inside].tolist())
    return found


@pytest.mark.long
@pytest.mark.parametrize("begin", [("west", "east"), ("west", "lobby"), ("kitchen", "meeting")])
@pytest.mark.parametrize("seed", [1, 2])
def test_every_room_is_visited_once_if_rooms_are_shared_out_and_twice_if_not(seed: int, begin: tuple[str, str]) -> None:
    found = visits(search(seed, begin, share=True), 150.0)
    assert all(found.values())
    # Whoever begins in a room is in it, and a room whose door was shut may be visited by both.
    again = [name for name, groups in found.items() if len(groups) > 1]
    assert len(set(again) - {*begin, "archive"}) <= 1
    alone = visits(search(seed, begin, share=False), 220.0)
    assert sum(len(groups) for groups in alone.values()) >= 22


def test_the_scene_begins_with_a_room_for_each_squad() -> None:
    sim = search(1, ("west", "east"), share=True)
    sim.run(until=6.0)
    rooms = {name: sim.squads[name].room for name in sim.squads}
    assert len(set(rooms.values())) == 2
    assert sum(share == 1.0 for share in sim.squads.searched().values()) >= 1
    assert all(finding.severity != "warning" for finding in search(1, ("west", "east"), share=True).check())
