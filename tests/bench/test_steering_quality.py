"""What is measured of a run of a scene."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest

from tropel.agents.state import Steered
from tropel.bench.steering import ClosestApproach, watch
from tropel.bench.steering_scenes import circle_swap, four_blocks, narrow_door, two_way_corridor
from tropel.bench.steering_speed import MODELS, OURS, PAPERS
from tropel.contracts import Model, Moment


class Straight(Model):
    """Walks where it is told, through everybody."""

    def steer(self, moment: Moment, out: Steered) -> None:
        members = moment.members
        out.velocity[members] = moment.state.desired_speed[members, None] * moment.directions[members]


def test_a_small_circle_arrives_and_does_not_touch() -> None:
    quality = watch(circle_swap(MODELS[OURS](), agents=24, ring=25.0))
    assert quality.arrived == 1.0
    assert quality.finish is not None
    assert quality.finish >= 50.0 - 1.5
    assert quality.closest_approach >= 1.0 - 1e-9
    assert (quality.overlapping_pairs, quality.deepest_overlap) == (0.0, 0.0)
    assert quality.path_over_shortest is not None
    assert 1.0 <= quality.path_over_shortest < 2.0


def test_the_papers_equations_alone_let_a_circle_of_bodies_overlap() -> None:
    quality = watch(circle_swap(MODELS[PAPERS](), agents=24, ring=25.0))
    assert quality.closest_approach < 0.95
    assert quality.overlapping_pairs > 0.0
    assert quality.deepest_overlap == pytest.approx(3.0 * (1.0 - quality.closest_approach), abs=1e-6)


def test_a_few_people_get_through_corridor_and_door() -> None:
    for scene in (two_way_corridor(MODELS[OURS](), people=16), narrow_door(MODELS[OURS](), people=10)):
        quality = watch(scene)
        assert quality.arrived == 1.0, scene.name
        assert quality.closest_approach >= 1.0 - 1e-9
        assert quality.path_over_shortest is not None
        assert 0.999 <= quality.path_over_shortest < 2.0


def test_small_blocks_walk_round_the_buildings() -> None:
    quality = watch(four_blocks(MODELS[OURS](), side=2))
    assert quality.arrived == 1.0
    assert quality.path_over_shortest is not None
    assert quality.path_over_shortest >= 0.999


def test_two_who_walk_through_each_other_are_seen_to() -> None:
    told: list[float] = []
    quality = watch(circle_swap(Straight(), agents=2, ring=10.0), told.append)
    assert quality.finish == pytest.approx(20.0 - 1.5, abs=0.25)
    assert quality.path_over_shortest == pytest.approx(1.0, abs=0.02)
    assert quality.closest_approach == pytest.approx(0.0, abs=1e-9)
    assert quality.overlapping_pairs == 1.0
    assert quality.deepest_overlap == pytest.approx(3.0)
    assert told == [12.5]


def test_a_run_that_does_not_finish_ends_at_the_limit() -> None:
    scene = dataclasses.replace(circle_swap(Straight(), agents=3, ring=20.0), limit=2.0)
    quality = watch(scene)
    assert scene.sim.time == 2.0
    assert (quality.arrived, quality.finish, quality.path_over_shortest) == (0.0, None, None)
    assert quality.row()["finish_s"] is None


def test_the_closest_approach_is_that_of_finely_sampled_motion() -> None:
    rng = np.random.default_rng(5)
    radius = rng.uniform(0.2, 0.5, 30)
    position = rng.uniform(0.0, 12.0, (30, 2))
    approach = ClosestApproach()
    sampled = math.inf
    for _ in range(6):
        after = position + rng.normal(0.0, 0.4, position.shape)
        approach.look(position, after, radius)
        for share in np.linspace(0.0, 1.0, 401):
            now = position + share * (after - position)
            apart = np.linalg.norm(now[:, None] - now, axis=2) / (radius[:, None] + radius)
            np.fill_diagonal(apart, math.inf)
            sampled = min(sampled, apart.min())
        assert approach.closest <= sampled + 1e-12
        assert approach.closest == pytest.approx(sampled, abs=5e-3)
        position = after


def test_one_alone_comes_close_to_nobody() -> None:
    approach = ClosestApproach()
    approach.look(np.zeros((1, 2)), np.ones((1, 2)), np.ones(1))
    assert math.isinf(approach.closest)
