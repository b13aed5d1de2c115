"""Types of obstacles, classes of any number, and the cone of view of the dynamical model."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tropel import Group, Obstacle, Simulation, World, events
from tropel.errors import ModelError, ParameterError
from tropel.local.dynamical.model import Dynamical
from tropel.run.phases import phases_of


def passing(
    *, kind: str = "obstacle", offset: float = 0.1, traits: dict[str, Any] | None = None, **parameters: Any
) -> Simulation:
    """One walks past a post."""
    world = World(
        bounds=(-5, -10, 25, 10),
        obstacles={"post": Obstacle(radius=0.5, position=(8.0, offset), type=kind)},
        targets={"t": (20.0, 0.0)},
    )
    walker = Group("a", positions=[(0.0, 0.0)], goal="t", sense_radius=6.0, parameters=traits or {})
    return Simulation(world, walker, local=Dynamical(noise=0.0, d0_base=1.0, **parameters), dt=0.05)


def clearance(sim: Simulation, seconds: float = 14.0) -> float:
    least = math.inf
    for _ in range(round(seconds / sim.dt)):
        sim.step()
        away = float(np.linalg.norm(sim.agents.position[0] - sim.world.obstacles.position[0]))
        least = min(least, away - 0.5 - float(sim.agents.radius[0]))
    return least


def test_a_fire_is_kept_farther_away_from_than_a_post() -> None:
    worse = {"fire": {"strength": 3.0, "reach": 3.0}}
    post, fire = clearance(passing(types=worse)), clearance(passing(kind="fire", types=worse))
    assert fire > post + 0.3
    assert clearance(passing(kind="fire")) == post


def test_a_type_that_an_event_brings_in_is_known() -> None:
    sim = passing(offset=9.0, types={"fire": {"strength": 4.0, "reach": 4.0}})
    plain = passing(offset=9.0)
    for each in (sim, plain):
        each.at(1.0, events.AddObstacle(name="blaze", radius=0.5, position=(8.0, 0.4), type="fire"))
        each.run(until=6.0)
    assert abs(sim.agents.position[0, 1] - plain.agents.position[0, 1]) > 0.3


def test_types_survive_a_checkpoint(tmp_path: Path) -> None:
    worse = {"fire": {"strength": 3.0, "reach": 3.0}}
    straight, first, second = (passing(kind="fire", types=worse) for _ in range(3))
    straight.run(until=6.0)
    first.run(until=3.0)
    first.save(tmp_path / "half")
    second.restore(tmp_path / "half")
    second.run(until=6.0)
    assert second.state_hash() == straight.state_hash()
    assert second.world.obstacles["post"].type == "fire"


def test_classes_may_be_grouped_freely() -> None:
    apart = Dynamical(types={"fire": {}}, classes="apart")
    grouped = Dynamical(types={"fire": {}}, classes=[["agents"], ["walls", "obstacles"], ["fire"]])
    widths = [next(c for c in m.declares.memory if c.name == "weights").width for m in (Dynamical(), apart, grouped)]
    assert widths == [1, 4, 3]


def test_a_class_of_its_own_competes_by_itself() -> None:
    sims = [
        passing(kind="fire", types={"fire": {}}, classes=c) for c in ([["agents", "walls", "obstacles"], ["fire"]],)
    ]
    for sim in sims:
        sim.run(until=4.5)
    assert sims[0].agents.weights[0, 0] == 0.0
    assert sims[0].agents.weights[0, 1] > 0.5


@pytest.mark.parametrize(
    ("classes", "said"),
    [
        ([["agents"], ["walls"]], "leaves out 'obstacles'"),
        ([["agents", "walls", "obstacles", "agents"]], "twice"),
        ([["agents", "wals", "obstacles"]], "did you mean 'walls'"),
        (["agents", "walls"], "'one' or 'apart' or a list"),
        ("both", "'one' or 'apart' or a list"),
    ],
)
def test_wrong_classes_are_explained(classes: Any, said: str) -> None:
    with pytest.raises(ParameterError, match=said):
        Dynamical(classes=classes)


def test_wrong_types_are_explained() -> None:
    with pytest.raises(ParameterError, match="types has 'walls', which has its own parameter"):
        Dynamical(types={"walls": {}})
    with pytest.raises(ParameterError, match="types must be a table by name"):
        Dynamical(types=["fire"])
    with pytest.raises(ParameterError, match=r"types\.fire"):
        Dynamical(types={"fire": 3.0})


def test_a_model_put_in_later_with_more_classes_is_refused() -> None:
    sim = passing()
    model = Dynamical(classes="apart")
    model.prepare(sim.moment())
    sim.layers.phases = phases_of([model], [()])
    with pytest.raises(ModelError, match="weights for 1 classes"):
        sim.step()


def test_who_looks_straight_ahead_only_forgets_the_post_while_rounding_it() -> None:
    least = [clearance(passing(offset=0.4, traits={"view_angle": math.radians(a)})) for a in (300, 20, 1)]
    assert least[0] == pytest.approx(clearance(passing(offset=0.4)), abs=0.02)
    assert least[2] < least[1] < least[0] - 0.1


def test_who_sees_all_round_and_who_sees_a_full_circle_are_the_same() -> None:
    wide = passing(traits={"view_angle": 2.0 * math.pi})
    assert clearance(wide) == clearance(passing())
