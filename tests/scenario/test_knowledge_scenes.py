"""Scenes in which knowledge decides: who finds the open way, and how fast word spreads; and both without sharing."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tropel.scenario import load_builtin
from tropel.simulation import Simulation

SEEDS = (1, 2, 3)


def built(name: str, seed: int, **changed: Any) -> Simulation:
    """A scene with another seed, and with other knowledge for all of its groups."""
    scenario = load_builtin(name)
    spec = scenario.spec
    update: dict[str, Any] = {"seed": seed}
    if spec.knowledge is not None:
        update["knowledge"] = spec.knowledge.model_copy(update=changed)
    update["groups"] = [
        group
        if group.knowledge is None
        else group.model_copy(update={"knowledge": group.knowledge.model_copy(update=changed)})
        for group in spec.groups
    ]
    return replace(scenario, spec=spec.model_copy(update=update)).build(threads=1)


def share_in_the_dead_end(sim: Simulation, group: str) -> float:
    """The share of a group that has walked into the passage to the shut door after 14 s."""
    own = sim.agents.group == sim.groups.index(group)
    ids, entered = sim.agents.id[own].copy(), set()
    while sim.time < 14.0:
        sim.step()
        inside = (sim.agents.position[:, 0] > 15.0) & (sim.agents.position[:, 1] < 5.0)
        entered |= set(sim.agents.id[inside].tolist())
    return len(entered & set(ids.tolist())) / len(ids)


@pytest.mark.parametrize("seed", SEEDS)
def test_an_informed_group_finds_the_open_way_that_an_uninformed_one_misses(seed: int) -> None:
    sim = built("informed", seed)
    staff = share_in_the_dead_end(sim, "staff")
    inside = (sim.agents.position[:, 0] > 15.0) & (sim.agents.position[:, 1] < 5.0)
    visitors = inside[sim.agents.group == sim.groups.index("visitors")].mean()
    assert staff == 0.0
    assert visitors >= 0.5


@pytest.mark.parametrize("seed", SEEDS)
def test_without_sharing_the_staff_misses_it_too(seed: int) -> None:
    assert share_in_the_dead_end(built("informed", seed, held_by="agent", share=False), "staff") >= 0.5


def told_after(sim: Simulation, seconds: float) -> tuple[int, int]:
    """How many know that the gate is shut, and how many of them have not seen it themselves."""
    sim.run(until=seconds)
    log = sim.knowledge.log
    shut = log["state"] == "shut"
    told = log["holder"][shut] != log["source"][shut]
    return len(sim.knowledge.who_knows("gate", "shut")), int(np.count_nonzero(told))


@pytest.mark.parametrize("seed", SEEDS)
def test_word_of_the_shut_gate_runs_through_the_crowd(seed: int) -> None:
    knowing, told = told_after(built("rumour", seed), 10.0)
    assert knowing >= 55
    assert told >= 0.8 * knowing


@pytest.mark.parametrize("seed", SEEDS)
def test_without_sharing_only_those_that_see_the_gate_know(seed: int) -> None:
    knowing, told = told_after(built("rumour", seed, share=False), 10.0)
    assert knowing <= 35
    assert told == 0


@pytest.mark.long
@pytest.mark.parametrize("seed", [1, 2, 3, 4, 5])
def test_word_gets_people_out_sooner(seed: int) -> None:
    times = []
    for share in (True, False):
        sim = built("rumour", seed, share=share)
        sim.run(until="empty", limit=240.0)
        times.append(float(sim.population.departures()["time"].mean()))
    assert times[0] < 0.8 * times[1]
