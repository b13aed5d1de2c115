"""How fast agents of the dynamical model go: the time gap against plain NumPy, the papers' laws as they always were."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from steered_once import PLAIN, steered
from time_gap_reference import crowd, others, pace
from tropel import Direct, Dynamical, Group, Obstacle, Simulation, Target, World
from tropel.errors import ParameterError

Floats = NDArray[np.float64]

#: Behind one person, straight ahead.
FILE: dict[str, Any] = {"heading": (1.0, 0.0), "velocity": (0.5, 0.0), "desired_speed": 1.34, "dt": 0.05}


def behind(gap: float, *, world: World = PLAIN, courage: float = 0.5, **parameters: Any) -> float:
    """The speed of a person at this free distance behind another one."""
    model = Dynamical(speed_law="time_gap", noise=0.0, **parameters)
    places = [(0.0, 0.0), (0.4 + gap, 0.0)]
    out = steered(model, places, [(1.0, 0.0)] * 2, world=world, radius=0.2, courage=courage, **FILE)
    return float(np.hypot(*out.velocity[0]))


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize(("time_gap", "push", "attraction"), [(0.6, 0.1, 1.0), (0.9, 0.3, 8.0)])
def test_with_a_time_gap_speeds_are_those_of_plain_numpy(
    seed: int, time_gap: float, push: float, attraction: float
) -> None:
    people = crowd(seed)
    told = {"time_gap": time_gap, "push": push}
    out = steered(Dynamical(speed_law="time_gap", noise=0.0, attraction=attraction, **told), dt=0.05, **people)
    slowed = 0
    for i in range(len(people["position"])):
        wanted = float(people["desired_speed"][i] * np.linalg.norm(people["directions"][i]))
        # The law looks along the new heading, whichever that is.
        expected = pace(i, out.heading[i], wanted, others(i, people, people["sense_radius"][i]), people, **told)
        np.testing.assert_allclose(out.velocity[i], expected * out.heading[i], atol=1e-9)
        slowed += expected < 0.9 * wanted
    assert slowed >= 5, "nobody is behind anybody: this crowd shows nothing"


@pytest.mark.parametrize("gap", [0.1, 0.4, 1.0])
def test_speed_follows_the_gap_and_people_with_courage_follow_more_closely(gap: float) -> None:
    for courage in (0.0, 0.5, 1.0):
        own = 0.6 * (1.5 - courage)
        expected = 1.34 * math.tanh(gap / (1.34 * own))
        assert behind(gap, courage=courage) == pytest.approx(expected, rel=1e-6)


def test_without_room_people_push_as_hard_as_they_are_told() -> None:
    assert behind(0.0, push=0.1) == pytest.approx(0.134)
    assert behind(0.0, push=0.0) == 0.0


def test_nobody_slows_down_for_people_behind_a_wall() -> None:
    wall = World(bounds=(-60, -60, 60, 60), walls=[[(0.45, -50.0), (0.45, 50.0)]])
    assert behind(0.5, world=wall, walls={"reach": 0.01}) == pytest.approx(1.34)
    assert behind(0.5, walls={"reach": 0.01}) < 1.0


def test_a_time_gap_is_for_two_dimensions() -> None:
    box, group = World.box((0, 0, 0), (5, 5, 5)), Group("a", count=1, goal="none")
    for parameters in ({"speed_law": "time_gap"}, {"keep_right": 1.0}, {"preset": "pedestrian"}):
        with pytest.raises(ParameterError, match="2D"):
            Simulation(box, group, local=Dynamical(**parameters))


# The papers' laws -----------------------------------------------------------------------------------------------------

#: Where the first, the twelfth and the last agent are after two seconds, recorded before there was a time gap.
RECORDED: dict[tuple[str, int], list[list[float]]] = {
    ("constant", 2): [[4.388865857, 6.77336072], [6.002497807, 2.398932651], [5.004171807, 6.817057441]],
    ("time_to_contact", 2): [[4.386477074, 6.774430206], [6.002497807, 2.398932651], [5.004171807, 6.817057441]],
    ("derivative", 2): [[4.313398056, 6.808472995], [5.968712143, 2.389826781], [4.984902164, 6.82461061]],
    ("time_to_contact", 3): [
        [4.155882833, 6.890738329, 2.952101664],
        [4.108535044, 1.576635112, 3.16164821],
        [3.966256346, 3.143307242, 2.147794557],
    ],
    ("derivative", 3): [
        [4.069411338, 6.923689927, 2.938119657],
        [4.061057855, 1.561793106, 3.157233007],
        [3.836354486, 3.127813432, 2.120367066],
    ],
}
#: The sum of all coordinates of all agents.
RECORDED_SUM = {
    ("constant", 2): 214.32894448,
    ("time_to_contact", 2): 213.83622196,
    ("derivative", 2): 211.54615565,
    ("time_to_contact", 3): 304.18112148,
    ("derivative", 3): 300.28845757,
}


def places_apart(draws: np.random.Generator, dim: int) -> Floats:
    """24 places with room between them, and around an obstacle in the middle."""
    kept: list[Floats] = []
    for place in draws.uniform(0.5, 7.5, (200, dim)):
        far = all(np.linalg.norm(place - other) > 0.6 for other in kept)
        if far and np.linalg.norm(place - 4.0) > 1.0:
            kept.append(place)
    return np.array(kept[:24])


@pytest.mark.parametrize(("law", "dim"), RECORDED)
def test_the_laws_of_the_papers_move_agents_as_they_always_did(law: str, dim: int) -> None:
    draws = np.random.default_rng(8)
    places = places_apart(draws, dim)
    personality = {name: draws.uniform(*span, 24) for name, span in
                   {"courage": (0.2, 0.9), "agility": (0.5, 1.0), "mass": (0.0, 0.5)}.items()}  # fmt: skip
    things: dict[str, Any] = {
        "targets": {"t": Target(position=(12.0, *[4.0] * (dim - 1)))},
        "obstacles": {"o": Obstacle(radius=0.5, position=(4.0,) * dim)},
    }
    low, high = (-5.0,) * dim, (20.0,) * dim
    posts = [[(9.0, 0.0), (9.0, 3.0)], [(9.0, 5.0), (9.0, 8.0)]]
    world = World.box(low, high, **things) if dim == 3 else World(bounds=(*low, *high), walls=posts, **things)
    group = Group("a", positions=places, goal="t", parameters=personality)
    sim = Simulation(world, group, planning=Direct(), local=Dynamical(speed_law=law), seed=5, threads=1)
    sim.run(until=2.0)
    np.testing.assert_allclose(sim.agents.position[[0, 11, 23]], RECORDED[law, dim], atol=2e-9)
    assert float(sim.agents.position.sum()) == pytest.approx(RECORDED_SUM[law, dim], abs=2e-8)
