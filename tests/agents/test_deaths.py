"""Deaths: who dies in a hazard stays where it is, counts no longer, and is remembered."""

from __future__ import annotations

import math

import numpy as np
import pytest
import shapely

import tropel
from tropel import events
from tropel.recording import read_trajectory

MODELS = {
    "seek": tropel.Seek,
    "collision_free_speed": tropel.CollisionFreeSpeed,
    "dynamical": tropel.Dynamical,
}


def hall(*, hazards=None, **options):
    return tropel.World(
        shapely.box(0, 0, 20, 10),
        exits={"east": shapely.box(19, 4, 20, 6), "west": shapely.box(0, 4, 1, 6)},
        hazards=hazards or {},
        **options,
    )


def blast(*, threads=1, model=tropel.Seek, deadly=True, people=120, seed=3, **options):
    """A crowd on its way to two exits, an explosion in the middle of it, and a fire that grows at the wall."""
    sim = tropel.Simulation(
        hall(),
        [tropel.Group("some", count=people // 2), tropel.Group("others", count=people // 2, delay=2.0)],
        local=model(),
        seed=seed,
        threads=threads,
        **options,
    )
    sim.at(1.0, events.AddHazard(name="blast", inner=2.5, position=(10, 5), type="explosion", until=1.5, deadly=deadly))
    sim.at(1.2, events.AddHazard(name="fire", inner=0.5, position=(10, 1), growth=0.4, largest=2.0, deadly=deadly))
    return sim


@pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)
def test_exactly_those_within_the_inner_radius_die_and_never_move_again(model):
    sim = blast(model=model)
    while sim.step_number < 20:
        sim.step()
    before = sim.agents.position.copy()
    ids = sim.agents.id.copy()
    hit = ids[np.hypot(before[:, 0] - 10, before[:, 1] - 5) <= 2.5]
    sim.step()
    assert len(hit) > 3
    assert sim.population.deaths()["id"].tolist() == hit.tolist()
    assert sim.population.deaths()["time"].tolist() == [1.0] * len(hit)
    place = {int(number): sim.population.deaths()["position"][k].copy() for k, number in enumerate(hit)}
    assert all(np.array_equal(place[int(n)], before[ids == n][0]) for n in hit)
    for _ in range(150):
        sim.step()
        rows = sim.agents.rows_of(hit)
        assert len(rows) == len(hit), "nobody takes the dead away"
        assert np.array_equal(sim.agents.position[rows], np.array(list(place.values())))
        assert not sim.agents.velocity[rows].any()


def test_without_deadly_hazards_nobody_dies():
    deadly, harmless = (blast(deadly=kills).run(until="empty", limit=60.0) for kills in (True, False))
    assert deadly.deaths > 3
    assert harmless.deaths == 0
    assert harmless.evacuated == harmless.agents
    assert deadly.evacuated == deadly.agents - deadly.deaths


def test_a_run_is_over_when_nobody_alive_is_left():
    summary = blast().run(until="empty", limit=60.0)
    assert summary.reason == "nobody alive is left"
    assert summary.remaining == 0
    assert summary.deaths > 0
    assert summary.evacuation_time is not None
    assert summary.evacuation_time < 60.0
    table = summary.table()
    cells = dict(zip(table.columns[0]._cells, table.columns[1]._cells, strict=True))
    assert cells["died"] == f"{summary.deaths}"
    assert summary.as_dict()["deaths"] == summary.deaths


def test_the_row_of_deaths_is_only_there_when_somebody_died():
    table = blast(deadly=False).run(until=2.0).table()
    assert "died" not in table.columns[0]._cells


def test_where_everybody_dies_there_is_no_time_of_evacuation():
    world = hall(hazards={"all": tropel.Hazard(inner=15.0, position=(10, 5))})
    sim = tropel.Simulation(world, tropel.Group("few", positions=[(5.0, 5.0), (8.0, 3.0)]))
    summary = sim.run(until="empty", limit=10.0)
    assert (summary.deaths, summary.remaining, summary.evacuated) == (2, 0, 0)
    assert summary.evacuation_time is None
    assert summary.steps == 1


def test_the_dead_do_not_leave_through_the_exit_they_lie_in():
    world = hall(hazards={"fire": tropel.Hazard(inner=1.0, position=(19.5, 5))})
    sim = tropel.Simulation(world, tropel.Group("one", positions=[(19.2, 5.0)]))
    for _ in range(10):
        sim.step()
    assert sim.agents.dead.tolist() == [1]
    assert len(sim.population.departures()["id"]) == 0


def test_the_rim_belongs_to_the_hazard():
    world = hall(hazards={"fire": tropel.Hazard(inner=1.0, position=(10, 5))})
    places = [(11.0, 5.0), (10.0, math.nextafter(6.0, 7.0))]
    sim = tropel.Simulation(world, tropel.Group("two", positions=places, goal="none"))
    sim.step()
    assert sim.agents.dead.tolist() == [1, 0]


def test_planners_and_models_are_given_the_living_only():
    asked = []

    class Watcher(tropel.Seek):
        def steer(self, moment, out):
            asked.append((moment.members.copy(), moment.state.dead.copy()))
            assert not moment.directions[moment.state.dead == 1].any()
            super().steer(moment, out)

    sim = blast(model=Watcher)
    sim.run(until=3.0)
    assert any(dead.any() for _, dead in asked)
    for members, dead in asked:
        assert members.tolist() == np.flatnonzero(dead == 0).tolist()


def test_members_of_a_group_are_its_living():
    sim = blast()
    sim.run(until=1.2)
    for number in range(2):
        alive = (sim.agents.group == number) & (sim.agents.dead == 0)
        assert sim.population.members([number]).tolist() == np.flatnonzero(alive).tolist()
    assert sim.population.living == int((sim.agents.dead == 0).sum()) < len(sim.agents)


def walk_past_a_body(*, alive_body):
    """One walks straight at somebody who lies in a narrow corridor; returns their nearest distance and who died."""
    world = tropel.World(shapely.box(0, 0, 12, 1.2), exits={"out": shapely.box(11, 0, 12, 1.2)})
    sim = tropel.Simulation(
        world,
        [
            tropel.Group("lying", positions=[(5.0, 0.4)], goal="none", radius=0.2),
            tropel.Group("walking", positions=[(1.0, 0.45)], radius=0.2),
        ],
        local=tropel.CollisionFreeSpeed(),
    )
    if not alive_body:
        sim.at(0.0, events.AddHazard(name="shot", inner=0.1, position=(5.0, 0.4), until=0.1))
    nearest = math.inf
    for _ in range(400):
        sim.step()
        rows = sim.agents.rows_of([0, 1])
        if len(rows) == 2:
            nearest = min(nearest, float(np.hypot(*np.diff(sim.agents.position[rows], axis=0)[0])))
    return nearest, sim


def test_nobody_walks_through_a_dead_body():
    nearest, sim = walk_past_a_body(alive_body=False)
    assert sim.agents.dead[0] == 1
    assert sim.agents.position[0].tolist() == [5.0, 0.4]
    assert 0.4 - 1e-8 <= nearest < 0.6


def test_obstacles_walls_and_doors_do_not_move_the_dead():
    sweeper = tropel.Obstacle(radius=0.5, motion=tropel.Waypoints(points=((2, 5), (18, 5)), speed=2.0))
    world = hall(doors={"door": tropel.Door([(10, 0), (10, 10)], open=True)}, obstacles={"sweeper": sweeper})
    places = [(8.0, 5.1), (10.0, 7.0), (14.0, 0.05)]
    sim = tropel.Simulation(world, tropel.Group("some", count=3))
    sim.agents.position[:] = places
    sim.at(0.0, events.AddHazard(name="all", inner=15.0, position=(10, 5), until=0.1))
    sim.at(0.5, events.CloseDoor(door="door"))
    for _ in range(120):
        sim.step()
    assert sim.agents.position.tolist() == [list(place) for place in places]


def test_a_living_person_is_pushed_by_what_does_not_move_the_dead():
    sweeper = tropel.Obstacle(radius=0.5, motion=tropel.Waypoints(points=((2, 5), (18, 5)), speed=2.0))
    sim = tropel.Simulation(
        hall(obstacles={"sweeper": sweeper}), tropel.Group("one", positions=[(8.0, 5.1)], goal="none")
    )
    for _ in range(120):
        sim.step()
    assert sim.agents.position[0].tolist() != [8.0, 5.1]


def test_a_growing_fire_kills_who_waits_too_long():
    """It reaches somebody 2 m away after (2 - 0.5) / 0.4 s; who sets out before that lives."""
    reached = (2.0 - 0.5) / 0.4
    for delay, dies in ((reached - 1.0, 0), (reached + 1.0, 1)):
        world = hall(hazards={"fire": tropel.Hazard(inner=0.5, position=(8, 5), growth=0.4)})
        sim = tropel.Simulation(world, tropel.Group("one", positions=[(10.0, 5.0)], goal="east", delay=delay))
        summary = sim.run(until="empty", limit=30.0)
        assert summary.deaths == dies
        if dies:
            assert sim.population.deaths()["time"][0] == pytest.approx(reached, abs=0.05 + 1e-9)


def test_dead_people_can_be_removed_and_stay_counted():
    sim = blast()
    sim.run(until=2.0)
    dead = sim.population.deaths()["id"]
    sim.remove_agents(ids=dead.tolist())
    assert not sim.agents.dead.any()
    assert sim.population.deaths()["id"].tolist() == dead.tolist()


def test_deaths_in_three_dimensions():
    world = tropel.World.box((0, 0, 0), (9, 9, 9), hazards={"blast": tropel.Hazard(inner=1.0, position=(5, 5, 5))})
    sim = tropel.Simulation(world, tropel.Group("two", positions=[(5, 5, 5.9), (5, 5, 6.1)], goal="none"))
    sim.step()
    assert sim.agents.dead.tolist() == [1, 0]
    assert sim.population.deaths()["position"].tolist() == [[5, 5, 5.9]]


@pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)
def test_threads_and_a_resume_give_the_same_bits(model, tmp_path):
    straight = blast(model=model, threads=1)
    straight.run(until=4.0)
    for pause in (1.3, 2.5):
        first, second = blast(model=model, threads=2), blast(model=model, threads=2)
        first.run(until=pause)
        first.save(tmp_path / "checkpoint")
        second.restore(tmp_path / "checkpoint")
        second.run(until=4.0)
        assert second.state_hash() == straight.state_hash()
        assert second.population.deaths()["id"].tolist() == straight.population.deaths()["id"].tolist()


def test_the_hash_knows_of_hazards_and_deaths():
    sims = [tropel.Simulation(hall(), tropel.Group("one", positions=[(5.0, 5.0)], goal="none")) for _ in range(3)]
    sims[1].at(0.0, events.AddHazard(name="x", inner=0.5, position=(15, 5)))
    sims[2].at(0.0, events.AddHazard(name="x", inner=0.5, position=(5, 5)))
    for sim in sims:
        sim.step()
    assert len({sim.state_hash() for sim in sims}) == 3


# Recordings -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", ["sqlite", "parquet"])
def test_recordings_tell_who_died_when_and_where_hazards_were(suffix, tmp_path):
    sim = blast()
    sim.run(until=3.0, record=tmp_path / f"run.{suffix}")
    died = sim.population.deaths()
    with read_trajectory(tmp_path / f"run.{suffix}") as run:
        told = run.deaths()
        assert told["id"].tolist() == died["id"].tolist()
        assert told["time"] == pytest.approx(died["time"])
        assert run.hazards(9) == {}
        assert run.hazards(12)["blast"] == {"kind": "explosion", "position": [10.0, 5.0], "inner": 2.5, "outer": 10.0}
        assert list(run.hazards(20)) == ["fire"]
        # Frames show a step's world as it was at its beginning, obstacles and hazards alike.
        assert run.hazards(20)["fire"]["inner"] == pytest.approx(0.5 + 0.4 * (1.95 - 1.2))
        assert [entry.event["kind"] for entry in run.events] == ["add_hazard", "add_hazard"]
        last = run.frame(int(run.frames[-1]))
        assert set(died["id"]) <= set(last.id.tolist()), "the dead are still in the frames"


@pytest.mark.parametrize("suffix", ["sqlite", "parquet"])
@pytest.mark.parametrize("pause", [1.25, 1.3, 2.0])
def test_a_resumed_recording_tells_the_same(suffix, pause, tmp_path):
    blast().run(until=3.0, record=tmp_path / f"straight.{suffix}")
    target = tmp_path / f"resumed.{suffix}"
    first, second = blast(), blast()
    first.run(until=pause, record=target)
    first.save(tmp_path / "checkpoint")
    first.run(until=2.5, record=target)
    second.restore(tmp_path / "checkpoint")
    second.run(until=3.0, record=target)
    with read_trajectory(tmp_path / f"straight.{suffix}") as a, read_trajectory(target) as b:
        assert a.frames.tolist() == b.frames.tolist()
        assert all(a.hazards(int(k)) == b.hazards(int(k)) for k in a.frames)
        assert all(np.array_equal(a.deaths()[name], b.deaths()[name]) for name in ("id", "time", "frame"))


def test_a_recording_without_hazards_says_so(tmp_path):
    tropel.Simulation(hall(), tropel.Group("few", count=3)).run(until=0.5, record=tmp_path / "run.sqlite")
    with read_trajectory(tmp_path / "run.sqlite") as run:
        assert len(run.deaths()["id"]) == 0
        assert run.hazards(0) == {}
        assert run.entries() == []
