"""Sources: how many come and when, and that nobody is lost where there is no room."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import shapely
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from scipy.spatial import cKDTree

from tropel import Group, Simulation, Source, Uniform, World
from tropel.agents.population import Population
from tropel.errors import GeometryError, ParameterError, SpawnError

HALL = shapely.box(0, 0, 30, 30)


def arrivals(source: Source, *, dt: float, steps: int, seed: int = 0, number: int = 0) -> list[int]:
    return [source.arriving(seed=seed, number=number, step=step, dt=dt) for step in range(steps)]


@given(
    rate=st.floats(0.01, 50.0),
    dt=st.sampled_from([0.01, 0.05, 0.1, 0.3, 1.0]),
    begin=st.sampled_from([0.0, 0.73, 2.0]),
    length=st.sampled_from([1.0, 3.3, math.inf]),
)
@settings(max_examples=100, deadline=None)
def test_even_arrivals_come_one_every_interval_and_none_is_lost_to_rounding(
    rate: float, dt: float, begin: float, length: float
) -> None:
    source = Source("a", rate=rate, region="r", begin=begin, end=begin + length)
    counts = np.cumsum(arrivals(source, dt=dt, steps=200))
    for step, sofar in enumerate(counts):
        passed = min((step + 1) * dt, begin + length) - begin
        assert abs(sofar - max(passed, 0.0) * rate) < 1.0 + 1e-6


def test_even_arrivals_at_round_numbers_are_exact() -> None:
    assert sum(arrivals(Source("a", rate=0.1, region="r"), dt=0.1, steps=100)) == 1
    assert sum(arrivals(Source("a", rate=10.0, region="r"), dt=0.1, steps=1000)) == 1000
    assert arrivals(Source("a", rate=10.0, region="r"), dt=0.1, steps=5) == [1, 1, 1, 1, 1]
    assert sum(arrivals(Source("a", rate=2.0, region="r", begin=1.0, end=4.0), dt=0.05, steps=200)) == 6


@pytest.mark.parametrize(("rate", "dt"), [(0.4, 0.05), (3.0, 0.1), (40.0, 0.5), (2000.0, 1.0)])
def test_random_arrivals_are_poisson(rate: float, dt: float) -> None:
    counts = np.array(arrivals(Source("a", rate=rate, region="r", arrivals="random"), dt=dt, steps=4000, seed=2))
    mean = rate * dt
    assert abs(counts.mean() - mean) < 5 * math.sqrt(mean / counts.size)
    spread = math.sqrt((mean + 2 * mean**2) / counts.size)
    assert abs(counts.var() - mean) < 5 * spread
    none = math.exp(-mean)
    assert abs((counts == 0).mean() - none) < 5 * math.sqrt(none * (1 - none) / counts.size) + 1e-12
    if mean < 30:
        edges = np.arange(0, int(mean + 6 * math.sqrt(mean)) + 2)
        assert abs((counts <= edges[:, None]).mean(axis=1) - stats.poisson(mean).cdf(edges)).max() < 0.03


def test_random_arrivals_depend_on_seed_and_source_and_are_the_same_when_asked_again() -> None:
    source = Source("a", rate=5.0, region="r", arrivals="random")
    first = arrivals(source, dt=0.1, steps=200)
    assert arrivals(source, dt=0.1, steps=200) == first
    assert arrivals(source, dt=0.1, steps=200, seed=1) != first
    assert arrivals(source, dt=0.1, steps=200, number=1) != first


def test_nobody_arrives_before_the_beginning_or_after_the_end() -> None:
    source = Source("a", rate=100.0, region="r", begin=1.0, end=2.0, arrivals="random")
    counts = arrivals(source, dt=0.1, steps=40)
    assert sum(counts[:10]) == 0
    assert sum(counts[20:]) == 0
    assert sum(counts) > 50


def let_in(population: Population, steps: int, dt: float = 0.1, first: int = 0) -> None:
    for step in range(first, first + steps):
        population.let_in(step, dt)


def crowd(*sources: Source, world: World | None = None, groups: tuple[Group, ...] = ()) -> Population:
    population = Population(world or World(HALL), [*groups, *sources], seed=0)
    population.spawn_all(())
    return population


def test_newcomers_appear_in_the_region_with_their_own_values_and_do_not_overlap() -> None:
    region = shapely.box(2, 2, 8, 8)
    population = crowd(
        Source("a", rate=10.0, region=region, radius=Uniform(0.1, 0.3), delay=1.5, goal="none", desired_speed=0.7)
    )
    let_in(population, 60)
    state = population.state
    assert len(state) == 60
    assert shapely.contains_xy(region, *state.position.T).all()
    assert len(np.unique(state.radius)) == 60
    assert (state.desired_speed == 0.7).all()
    # The n-th comes in the step that begins at (n - 1) / 10 s.
    np.testing.assert_allclose(state.stage_until, 1.5 + 0.1 * np.arange(60), atol=0.1 + 1e-9)
    pairs = cKDTree(state.position).query_pairs(0.6, output_type="ndarray")
    away = np.linalg.norm(state.position[pairs[:, 0]] - state.position[pairs[:, 1]], axis=1)
    assert (away >= state.radius[pairs].sum(axis=1)).all()


def test_who_finds_no_room_waits_and_comes_in_when_there_is_some() -> None:
    population = crowd(Source("a", rate=50.0, region=shapely.box(1, 1, 3, 3)))
    let_in(population, 40)
    inside = len(population.state)
    assert 0 < inside < 200
    assert population.emitted == [inside]
    assert population.waiting == [200 - inside]
    population.remove(group=None, region=None, ids=population.state.id[:10])
    let_in(population, 1, first=40)
    assert population.emitted[0] + population.waiting[0] == 205
    assert population.emitted[0] > inside
    for step in range(41, 400):
        population.remove(group=None, region=None, ids=None)
        population.let_in(step, 0.1)
    assert population.emitted[0] + population.waiting[0] == 2000
    assert population.emitted[0] > 1900
    assert (np.diff(population.state.id) > 0).all()


def test_a_blocked_source_loses_nobody_for_all_its_waiting() -> None:
    region = shapely.box(1, 1, 2, 2)
    blocker = Group("blocker", positions=[(1.5, 1.5)], radius=1.0)
    population = crowd(Source("a", rate=1.0, region=region, total=7), groups=(blocker,))
    let_in(population, 300)
    assert len(population.state) == 1
    assert population.waiting == [7]
    assert population.more_will_come(1e9)
    population.remove(group="blocker", region=None, ids=None)
    for step in range(300, 330):
        population.let_in(step, 0.1)
        population.remove(group="a", region=None, ids=None)
    assert population.emitted == [7]
    assert population.waiting == [0]
    assert not population.more_will_come(0.0)


def test_the_total_is_kept_and_the_end_is_known() -> None:
    population = crowd(Source("a", rate=20.0, region=shapely.box(1, 1, 29, 29), total=33))
    let_in(population, 100)
    assert len(population.state) == 33
    assert not population.more_will_come(0.0)
    ends = crowd(Source("a", rate=1.0, region=HALL, end=5.0))
    assert ends.more_will_come(4.9)
    assert not ends.more_will_come(5.0)
    assert not crowd(Source("a", rate=1.0, region=HALL, total=0)).more_will_come(0.0)


def test_two_sources_may_feed_one_group_and_keep_their_own_count() -> None:
    population = crowd(
        Source("a", rate=10.0, region=shapely.box(1, 1, 9, 9)),
        Source("a", rate=5.0, region=shapely.box(15, 15, 25, 25)),
    )
    let_in(population, 20)
    assert population.groups == ["a"]
    assert population.emitted == [20, 10]
    assert (population.state.group == 0).all()
    assert population.state.id.tolist() == list(range(30))


def test_a_resumed_source_goes_on_as_if_nothing_had_happened() -> None:
    def fresh() -> Population:
        return crowd(
            Source("a", rate=30.0, region=shapely.box(1, 1, 4, 4), arrivals="random", radius=Uniform(0.1, 0.3))
        )

    through, first, second = fresh(), fresh(), fresh()
    let_in(through, 60)
    let_in(first, 30)
    second.restore(first.stored())
    let_in(second, 30, first=30)
    assert second.waiting == through.waiting
    assert second.emitted == through.emitted
    for name, column in through.stored().items():
        np.testing.assert_array_equal(column, second.stored()[name])


def test_sources_work_in_a_box() -> None:
    population = crowd(Source("fish", rate=20.0, region=((1, 1, 1), (4, 4, 4))), world=World.box((0, 0, 0), (5, 5, 5)))
    let_in(population, 20)
    assert len(population.state) == 40
    assert ((population.state.position >= 1) & (population.state.position <= 4)).all()


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"rate": 0.0}, "rate must be positive"),
        ({"rate": -1.0}, "rate must be positive"),
        ({"rate": math.nan}, "rate must be positive"),
        ({"rate": math.inf}, "rate must be positive"),
        ({"rate": 1.0, "begin": 5.0, "end": 4.0}, "ends .* before it begins"),
        ({"rate": 1.0, "begin": math.nan}, "begin must be a finite number, not nan"),
        ({"rate": 1.0, "total": -1}, "total must not be negative"),
        ({"rate": 1.0, "arrivals": "often"}, "'even' or 'random'"),
        ({"rate": 1.0, "rat": 2.0}, "no parameter 'rat'; did you mean 'rate'"),
    ],
)
def test_a_source_that_makes_no_sense_is_refused(fields: dict[str, Any], says: str) -> None:
    with pytest.raises(ParameterError, match=says):
        Source("a", region="r", **fields)


@pytest.mark.parametrize(
    ("fields", "error", "says"),
    [
        ({"region": "nowhere"}, ParameterError, "no region 'nowhere'"),
        ({"region": shapely.box(50, 50, 60, 60)}, SpawnError, "the source of 'a': its region lies outside"),
        ({"region": "POLYGON ((0 0"}, GeometryError, "region of"),
        ({"region": HALL, "goal": "mars"}, ParameterError, "goal 'mars'"),
        ({"region": HALL, "parameters": {"patience": 1}}, ParameterError, "no parameter 'patience'"),
        ({"region": HALL, "radius": "fat"}, ParameterError, "a/radius"),
        ({"region": HALL, "radius": [0.1, 0.2]}, ParameterError, "a/radius"),
    ],
)
def test_a_source_that_cannot_work_is_refused_before_the_first_step(
    fields: dict[str, Any], error: type[Exception], says: str
) -> None:
    with pytest.raises(error, match=says):
        Simulation(World(HALL), Source("a", rate=1.0, begin=1e6, **fields))
