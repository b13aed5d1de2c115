"""Timing of steering models: who walks, how far, and what is reported."""

from __future__ import annotations

import sys

import numba
import numpy as np
import pytest
import shapely
from scipy.spatial import cKDTree

from tropel.bench.steering_speed import (
    JUPEDSIM,
    OURS,
    SAME_MODEL,
    TIMED,
    Case,
    Contest,
    JuPedSimCrowd,
    check_same_way,
    crowd_in,
    flatness,
    pillars,
    plaza,
)
from tropel.errors import MissingExtraError, ModelError


def way(start: np.ndarray, end: np.ndarray) -> float:
    return float(np.linalg.norm(end - start, axis=1).mean())


def test_there_is_one_agent_per_square_metre_with_ten_neighbours() -> None:
    for place in (plaza, pillars):
        where = place(1_000)
        free = where.walkable.intersection(where.start).area
        assert 1_000 / free == pytest.approx(1.0, abs=0.06)
        sim = crowd_in(where, OURS, agents=1_000)
        pairs = len(cKDTree(sim.agents.position).query_pairs(float(sim.agents.sense_radius[0])))
        assert 2 * pairs / 1_000 >= 10.0


def test_the_corridor_has_68_pillars_in_both_programs() -> None:
    place = pillars(1_000)
    assert len(place.walkable.interiors) == 68
    assert len(crowd_in(place, OURS, agents=10).world.segments) == 4 * 69


def test_jupedsim_moves_the_same_people_over_the_same_distance() -> None:
    place = plaza(150)
    ours = crowd_in(place, SAME_MODEL, agents=150)
    theirs = JuPedSimCrowd(ours.agents, walkable=place.walkable, goal=place.goal, dt=ours.dt)
    start = ours.agents.position.copy()
    np.testing.assert_array_equal(theirs.position, start)
    for _ in range(40):
        ours.step()
        theirs.step()
    assert way(start, theirs.position) > 1.0
    np.testing.assert_allclose(ours.agents.position, theirs.position, atol=5e-3)
    assert way(ours.agents.position, theirs.position) < 1e-4


def test_both_programs_walk_past_the_pillars() -> None:
    place = pillars(118)
    crowds = {model: crowd_in(place, model, agents=118) for model in (OURS, SAME_MODEL)}
    start = crowds[OURS].agents.position.copy()
    np.testing.assert_array_equal(crowds[SAME_MODEL].agents.position, start)
    theirs = JuPedSimCrowd(crowds[OURS].agents, walkable=place.walkable, goal=place.goal, dt=0.05)
    for _ in range(40):
        theirs.step()
        for sim in crowds.values():
            sim.step()
    ahead = float((theirs.position - start)[:, 0].mean())
    assert ahead > 0.8
    assert (crowds[SAME_MODEL].agents.position - start)[:, 0].mean() == pytest.approx(ahead, rel=0.15)
    for sim in crowds.values():
        assert (sim.agents.position - start)[:, 0].mean() > 0.8 * ahead
        assert shapely.contains_xy(place.walkable, sim.agents.position).all()


def test_a_contest_has_a_row_for_each_crowd_and_number_of_threads() -> None:
    contest = Contest(Case(label="open_tiny", place=plaza, agents=100, all_threads=True))
    contest.round()
    threads = sorted({1, numba.config.NUMBA_NUM_THREADS})
    rows = contest.rows()
    wanted = [(model, count) for model in TIMED for count in threads] + [(JUPEDSIM, 1)]
    assert [(row["model"], row["threads"]) for row in rows] == wanted
    for row in rows:
        assert row["ns_per_agent_step"] * row["agent_steps_per_s"] == pytest.approx(1e9, rel=1e-3)
    assert {row["sense_radius_m"] for row in rows[:-1]} == {2.0}
    theirs = rows[-1]["ns_per_agent_step"]
    assert contest.ratios() == pytest.approx(
        {
            "jupedsim_over_ours_open_tiny": theirs / rows[0]["ns_per_agent_step"],
            "jupedsim_over_ours_open_tiny_same_model": theirs / rows[len(threads)]["ns_per_agent_step"],
        }
    )


def test_the_number_of_neighbours_is_that_of_a_search_tree() -> None:
    contest = Contest(Case(label="open_tiny", place=plaza, agents=80, bursts=1, peer=False))
    contest.round()
    sim = contest.timed[0].crowd
    pairs = len(cKDTree(sim.agents.position).query_pairs(2.0))
    assert contest.rows()[0]["neighbours"] == pytest.approx(2 * pairs / 80)


def test_without_jupedsim_its_ratios_are_left_out_and_the_note_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jupedsim", None)
    contest = Contest(Case(label="open_tiny", place=plaza, agents=30, bursts=1))
    contest.round()
    assert contest.ratios() == {}
    assert [row["model"] for row in contest.rows()] == list(TIMED)
    assert "JuPedSim needs the extra 'bench'" in contest.note
    with pytest.raises(MissingExtraError):
        JuPedSimCrowd(crowd_in(plaza(10), OURS, agents=10).agents, walkable=shapely.box(0, 0, 1, 1), goal=(0, 0), dt=1)


def test_different_motions_are_not_compared() -> None:
    start = np.zeros((3, 2))
    end = start + np.array([1.0, 0.0])
    check_same_way(start, 1.005 * end, end, what="open")
    with pytest.raises(ModelError, match=r"'open'.*comparison of different motions"):
        check_same_way(start, 1.02 * end, end, what="open")


def test_flat_is_the_least_cost_per_agent_over_the_greatest() -> None:
    contests = []
    for label, agents, cost in (("open_20", 20, 3e-6), ("open_40", 40, 2e-6), ("open_60", 60, 4e-6)):
        contest = Contest(Case(label=label, place=plaza, agents=agents, bursts=1, peer=False))
        contest.timed[0].rounds = [cost * agents]
        contests.append(contest)
    assert flatness(contests) == pytest.approx({"flat_20_to_60": 0.5})
    assert flatness(contests[:1]) == {}
