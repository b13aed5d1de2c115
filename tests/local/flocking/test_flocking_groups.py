"""Several flocks: groups that join, avoid, ignore, chase or flee from each other, against brute force."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from flock_reference import OFF, Floats, Reference

import tropel
from tropel.errors import ParameterError

WEIGHTS = {"separation": 0.7, "cohesion": 0.5, "alignment": 0.9, "avoidance": 0.6, "flight": 1.1, "pursuit": 0.8}
FREE = {"max_force": 1e9, "least_speed": 0.0}
COUNT = 30


def three_flocks(dim: int, models: Any) -> tuple[tropel.Simulation, Floats, Floats]:
    """Groups a, b and c of COUNT boids each, mixed; after a step of 0.1 s."""
    rng = np.random.default_rng(2)
    x, v = rng.uniform(0.2, 5.8, (3 * COUNT, dim)), rng.normal(size=(3 * COUNT, dim))
    world = tropel.World.box((0.0,) * dim, (6.0,) * dim, open=True)
    groups = [
        tropel.Group(name, positions=x[k * COUNT : (k + 1) * COUNT], sense_radius=2.0, radius=0.05, desired_speed=2.0)
        for k, name in enumerate("abc")
    ]
    sim = tropel.Simulation(world, groups, local=models, dt=0.1, watch_collisions=False)
    sim.agents.velocity[:] = v
    sim.step()
    return sim, x, v


def relation(*pairs: str) -> np.ndarray:
    """A matrix of who stands in a relation to whom, from pairs such as "ab"."""
    group = np.repeat(list("abc"), COUNT)
    return np.array([[f"{mine}{other}" in pairs for other in group] for mine in group])


def compare(sim: tropel.Simulation, x: Floats, v: Floats, **relations: Any) -> None:
    expected = Reference(x, v, 2.0, weights=WEIGHTS, **relations).new_velocity()
    np.testing.assert_allclose(sim.agents.velocity, expected, rtol=0, atol=1e-10)


@pytest.mark.parametrize("dim", [2, 3])
def test_groups_of_one_model_fly_together(dim: int) -> None:
    compare(*three_flocks(dim, tropel.Flocking(**OFF | WEIGHTS | FREE)))


@pytest.mark.parametrize("dim", [2, 3])
def test_groups_of_other_models_are_avoided_unless_told_otherwise(dim: int) -> None:
    shared = tropel.Flocking(**OFF | WEIGHTS | FREE)
    alone = tropel.Flocking(**OFF | WEIGHTS | FREE)
    compare(
        *three_flocks(dim, {"a": shared, "b": shared, "c": alone}),
        mates=relation("aa", "bb", "ab", "ba", "cc"),
        avoided=relation("ac", "bc", "ca", "cb"),
    )


@pytest.mark.parametrize("nearest", [None, 3])
def test_groups_can_be_joined_avoided_and_ignored(nearest: int | None) -> None:
    def model(**told: Any) -> tropel.Flocking:
        return tropel.Flocking(**OFF | WEIGHTS | FREE, nearest=nearest, blind_angle=1.0, **told)

    compare(
        *three_flocks(2, {"a": model(join=["b"], ignore=["c"]), "b": model(avoid=["a"]), "c": model(avoid=["c"])}),
        mates=relation("aa", "ab", "bb"),
        avoided=relation("ba", "cc"),
        nearest=nearest,
        blind_angle=1.0,
    )


@pytest.mark.parametrize("dim", [2, 3])
def test_predators_chase_the_nearest_prey_and_prey_flees_from_as_far_as_its_own_radius(dim: int) -> None:
    prey = tropel.Flocking(**OFF | WEIGHTS | FREE, flee=["c"], flee_radius=2.7)
    hunter = tropel.Flocking(**OFF | WEIGHTS | FREE, chase=["a", "b"], ignore=["c"], blind_angle=2.0)
    sim, x, v = three_flocks(dim, {"a": prey, "b": prey, "c": hunter})
    mates = relation("aa", "ab", "ba", "bb")
    flocks = [
        Reference(x, v, 2.0, weights=WEIGHTS, mates=mates, fled=relation("ac", "bc"), flee_radius=2.7),
        Reference(x, v, 2.0, weights=WEIGHTS, mates=mates, chased=relation("ca", "cb"), blind_angle=2.0),
    ]
    expected = np.concatenate([flocks[0].new_velocity()[: 2 * COUNT], flocks[1].new_velocity()[2 * COUNT :]])
    np.testing.assert_allclose(sim.agents.velocity, expected, rtol=0, atol=1e-10)


def test_a_predator_catches_up_with_slower_prey_and_without_pursuit_does_not() -> None:
    def gap(pursuit: float) -> float:
        groups = [
            tropel.Group("prey", positions=[(20.0, 0.0)], sense_radius=3.0, desired_speed=1.0, goal="none"),
            tropel.Group("shark", positions=[(16.0, 3.0)], sense_radius=9.0, desired_speed=1.5, goal="none"),
        ]
        models = {"prey": tropel.Flocking(flee=["shark"]), "shark": tropel.Flocking(chase=["prey"], pursuit=pursuit)}
        world = tropel.World.box((0.0, -20.0), (40.0, 20.0), open=True)
        sim = tropel.Simulation(world, groups, local=models, dt=0.1, seed=3)
        sim.agents.velocity[:] = [(1.0, 0.0), (-1.0, 0.0)]
        return min(float(np.linalg.norm(np.diff(_next(sim).agents.position, axis=0))) for _ in range(300))

    assert gap(2.0) < 1.0 < 4.0 < gap(0.0)


def _next(sim: tropel.Simulation) -> tropel.Simulation:
    sim.step()
    return sim


def test_the_dead_are_nobodys_mates() -> None:
    rng = np.random.default_rng(4)
    x, v = rng.uniform(0.2, 5.8, (40, 2)), rng.normal(size=(40, 2))
    group = tropel.Group("flock", positions=x, sense_radius=2.0, radius=0.05, desired_speed=2.0)
    world = tropel.World.box((0.0, 0.0), (6.0, 6.0), open=True)
    model = tropel.Flocking(**OFF | WEIGHTS | FREE)
    sim = tropel.Simulation(world, group, local=model, dt=0.1, watch_collisions=False)
    sim.agents.velocity[:] = v
    sim.agents.dead[:10] = 1
    sim.step()
    alive = np.arange(40) >= 10
    expected = Reference(x, v, 2.0, weights=WEIGHTS, mates=np.tile(alive, (40, 1))).new_velocity()
    np.testing.assert_allclose(sim.agents.velocity[alive], expected[alive], rtol=0, atol=1e-10)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"separation": -1.0}, "separation must be a number from 0 to 1e\\+09"),
        ({"cohesion": float("nan")}, "cohesion must be"),
        ({"max_force": "much"}, "max_force must be"),
        ({"separation_distance": 0.0}, "separation_distance must be a positive number"),
        ({"blind_angle": 7.0}, "blind_angle must be a number from 0 to 6.283"),
        ({"least_speed": 1.5}, "least_speed must be a number from 0 to 1"),
        ({"nearest": 0}, "nearest must be a whole number from 1 to 1000"),
        ({"nearest": 2.5}, "nearest must be a whole number"),
        ({"combine": "max"}, "combine must be 'sum' or 'priorities'"),
        ({"look_ahead": -1.0}, "look_ahead must be a number that is not negative"),
        ({"join": "a"}, "join must be a list, each a string"),
        ({"join": ["a"], "avoid": ["a"]}, "'a' is named in both join and avoid"),
        ({"cohesoin": 1.0}, "did you mean 'cohesion'?"),
    ],
)
def test_bad_parameters_are_named(parameters: dict[str, Any], message: str) -> None:
    with pytest.raises(ParameterError, match=message.replace("(", r"\(").replace("?", r"\?")):
        tropel.Flocking(**parameters)


@pytest.mark.parametrize("told", ["join", "avoid", "ignore", "chase", "flee"])
def test_groups_that_are_not_there_are_named(told: str) -> None:
    world = tropel.World.box((0.0, 0.0), (6.0, 6.0))
    with pytest.raises(ParameterError, match=f"{told} names the group 'sharks'; did you mean 'shark'"):
        tropel.Simulation(world, tropel.Group("shark", count=2), local=tropel.Flocking(**{told: ["sharks"]}))


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [("cohesion", -0.5, "cohesion must be"), ("least_speed", 2.0, "from 0 to 1"), ("separation", np.nan, "not nan")],
)
def test_bad_values_of_a_group_are_named_before_the_first_step(name: str, value: float, message: str) -> None:
    world = tropel.World.box((0.0, 0.0), (6.0, 6.0))
    with pytest.raises(ParameterError, match=message):
        tropel.Simulation(world, tropel.Group("b", count=2, parameters={name: value}), local=tropel.Flocking())


def test_a_flee_radius_of_more_than_half_a_period_is_refused() -> None:
    world = tropel.World.box((0.0, 0.0), (6.0, 6.0), periodic=True)
    groups = [tropel.Group(name, count=2, sense_radius=1.0, goal="none") for name in ("prey", "shark")]
    models = {"prey": tropel.Flocking(flee=["shark"], flee_radius=3.5), "shark": tropel.Flocking()}
    sim = tropel.Simulation(world, groups, local=models)
    with pytest.raises(tropel.TropelError, match=r"flee_radius of 3.5 m.*less than half"):
        sim.step()


@pytest.mark.parametrize(("sight", "told"), [(0.0, {"avoid": ["b"]}), (2.0, {"flee": ["b"], "flee_radius": 0.0})])
def test_who_sees_nothing_flies_on_where_another_is_at_the_same_place(sight: float, told: dict[str, Any]) -> None:
    world = tropel.World.box((0.0, 0.0), (6.0, 6.0), open=True)
    groups = [tropel.Group(name, positions=[(3.0, 3.0)], sense_radius=sight, goal="none") for name in "ab"]
    sim = tropel.Simulation(world, groups, local={"a": tropel.Flocking(**told), "b": tropel.Flocking(ignore=["a"])})
    sim.agents.velocity[:] = 0.1, 0.0
    sim.step()
    # Nothing turns it, and it takes up its least speed.
    np.testing.assert_allclose(sim.agents.velocity[0], (0.5 * sim.agents.desired_speed[0], 0.0), rtol=0, atol=1e-12)
