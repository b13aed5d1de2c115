"""The built-in scenes of families and of a guided tour, with their bonds and without."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tropel import Simulation
from tropel.scenario.loading import load_builtin, parse_scenario


def scene(name: str, *, told: str = "") -> Simulation:
    """A built-in scene, with something more told to its model."""
    found = load_builtin(name)
    text = found.text.replace('model = "lattice"', f'model = "lattice"\n{told}')
    return parse_scenario(text, source=name, folder=Path()).build()


def families_leaving(sim: Simulation) -> tuple[float, float, float]:
    """Mean distance from the middle of the family [m], mean time between its first and last [s], share divided."""
    family = dict(zip(sim.agents.id.tolist(), sim.agents.columns["family"].tolist(), strict=True))
    away = []
    while len(sim.agents) and sim.time < 60.0:
        if len(sim.agents) > 40:
            _, its, size = np.unique(sim.agents.columns["family"], return_inverse=True, return_counts=True)
            middle = np.stack([np.bincount(its, x) for x in sim.agents.position.T], axis=1) / size[:, None]
            away.append(np.linalg.norm(sim.agents.position - middle[its], axis=1).mean())
        sim.step()
    assert len(sim.agents) == 0
    left: dict[int, list[tuple[float, int]]] = {}
    gone = sim.population.departures()
    for who, time, goal in zip(gone["id"].tolist(), gone["time"].tolist(), gone["goal"].tolist(), strict=True):
        left.setdefault(family[who], []).append((time, goal))
    between = [max(times)[0] - min(times)[0] for times in left.values()]
    divided = [len({goal for _, goal in each}) > 1 for each in left.values()]
    return float(np.mean(away)), float(np.mean(between)), float(np.mean(divided))


def test_families_leave_together_and_without_bonds_they_do_not() -> None:
    away, between, divided = families_leaving(scene("families"))
    assert (away, between) == (pytest.approx(0.6, abs=0.15), pytest.approx(1.6, abs=0.6))
    assert divided == 0.0
    away, between, divided = families_leaving(scene("families", told="family_strength = 0.0"))
    assert away > 1.4
    assert between > 4.0
    assert divided > 0.0


def visitors_of_statues(sim: Simulation) -> tuple[int, int, float]:
    """How many visitors come within 4 m of each statue, and how far they are from the guide while it is there [m]."""
    seen: tuple[set[int], set[int]] = set(), set()
    away = []
    while len(sim.agents) and sim.time < 120.0:
        sim.step()
        place, visitor = sim.agents.position, sim.agents.group == 1
        for who, statue in zip(seen, ((9.0, 10.2), (26.0, 10.2)), strict=True):
            close = np.linalg.norm(place - statue, axis=1) < 4.0
            who.update(sim.agents.id[close & visitor].tolist())
        if visitor.any() and not visitor.all():
            away.append(np.median(np.linalg.norm(place[visitor] - place[~visitor], axis=1)))
    assert len(sim.agents) == 0
    return len(seen[0]), len(seen[1]), float(np.mean(away))


def test_visitors_follow_the_guide_to_both_statues_and_without_bonds_they_go_straight_out() -> None:
    first, second, away = visitors_of_statues(scene("guided_tour"))
    assert first == 16
    assert second >= 12
    assert away < 2.5
    first, second, away = visitors_of_statues(scene("guided_tour", told="leader_strength = 0.0"))
    assert first <= 4
    assert second == 0
    assert away > 5.0
