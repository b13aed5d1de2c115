"""Links of the selected agent and trails: compared with the arrays they come from."""

from __future__ import annotations

import numpy as np
import pytest
import shapely
from overlay_scenes import flyers, on_cells, school, steps, walkers, walled

from tropel import Grid, Kinetic, Simulation
from tropel.viewer.live.agent_tab import portrait
from tropel.viewer.overlays.agents import LINKS, TRAILS, Trails, links_of
from tropel.viewer.overlays.overlay import overlays
from tropel.viewer.overlays.triangulation import look_at_near_set


@pytest.mark.parametrize("make", [walkers, flyers])
def test_links_are_the_neighbour_list_of_the_selected_agent(make: object) -> None:
    sim = steps(make(30), 3)  # type: ignore[operator]
    lists = sim.sense().csr()
    linked = 0
    for row, agent in enumerate(sim.agents.id.tolist()):
        links = links_of(sim, agent)
        assert links is not None
        assert links.rows.tolist() == sorted(lists.indices[lists.indptr[row] : lists.indptr[row + 1]].tolist())
        assert np.array_equal(links.there, sim.agents.position[links.rows])
        linked += len(links.rows)
    assert linked > 30


def test_links_and_neighbours_go_over_the_seam_of_periodic_space() -> None:
    sim = steps(school(40), 3)
    lists = sim.sense().csr()
    beyond = 0
    for row, agent in enumerate(sim.agents.id.tolist()):
        near = sorted(lists.indices[lists.indptr[row] : lists.indptr[row + 1]].tolist())
        links, seen = links_of(sim, agent), portrait(sim, agent)
        assert links is not None
        assert seen is not None
        assert links.rows.tolist() == near
        assert sorted(seen.neighbours.tolist()) == sim.agents.id[near].tolist()
        assert (np.linalg.norm(links.there - links.here, axis=1) <= links.reach).all()
        beyond += int((np.abs(links.there - sim.agents.position[links.rows]).max(axis=1) > 1.0).sum())
    assert beyond > 10


def is_behind_a_wall(sim: Simulation, row: int, other: int, visibility: str) -> bool:
    """By shapely: behind any wall, or for "approachable" behind one with both ends outside of the circle."""
    here, there = sim.agents.position[row], sim.agents.position[other]
    walls = sim.world.wall_grid(1.0).segments[sim.world.blocking != 0].reshape(-1, 2, 2)
    crossed = shapely.intersects(shapely.linestrings(walls), shapely.LineString([here, there]))
    if visibility == "approachable":
        crossed &= (np.linalg.norm(walls - here, axis=2) > sim.agents.sense_radius[row]).all(axis=1)
    return bool(crossed.any())


@pytest.mark.parametrize("visibility", ["approachable", "visible"])
def test_links_and_neighbours_leave_out_those_whom_walls_hide(visibility: str) -> None:
    sim = steps(walled(40, environment=Kinetic(visibility=visibility)), 3)
    lists = sim.sense().csr()
    hidden = 0
    for row, agent in enumerate(sim.agents.id.tolist()):
        near = sorted(lists.indices[lists.indptr[row] : lists.indptr[row + 1]].tolist())
        links, seen = links_of(sim, agent), portrait(sim, agent)
        assert links is not None
        assert seen is not None
        assert links.rows.tolist() == near
        assert np.array_equal(links.there, sim.agents.position[near])
        assert sorted(seen.neighbours.tolist()) == sim.agents.id[near].tolist()
        around = look_at_near_set(sim, agent)
        assert around is not None
        assert {tuple(place) for place in around.known.tolist()} == {
            tuple(place) for place in sim.agents.position[near].tolist()
        }
        within = Grid().known_to(row, sim.agents, sim.world)
        behind = [j for j in within.tolist() if is_behind_a_wall(sim, row, j, visibility)]
        assert sorted(set(within.tolist()) - set(near)) == behind
        hidden += len(behind)
    assert hidden > 0


def test_there_are_no_links_without_somebody_who_senses() -> None:
    sim = walkers(5)
    assert links_of(sim, None) is None
    assert links_of(sim, 999) is None
    crowd = on_cells(5)
    assert links_of(crowd, int(crowd.agents.id[0])) is None
    assert LINKS.fits(sim)
    assert not LINKS.fits(crowd)


def followed(sim: Simulation, trails: Trails, count: int, selected: int | None = None) -> list[np.ndarray]:
    """Positions after each step, of everybody who is there at the end."""
    places = []
    for _ in range(count):
        trails.after_step(sim, selected)
        places.append(sim.agents.position.copy())
        sim.step()
    return places


def test_trails_join_the_places_where_people_have_been() -> None:
    sim, trails = walkers(12), Trails()
    places = followed(sim, trails, 9)
    assert len(sim.agents) == 12
    seen = trails.look(sim, None)
    assert seen is not None
    # Every second step, since a step is 0.1 s and points are 0.2 s apart.
    expected = [np.stack([a, b], axis=1) for a, b in zip(places[0:-2:2], places[2::2], strict=True)]
    expected = [ends[np.any(ends[:, 0] != ends[:, 1], axis=1)] for ends in expected]
    assert np.array_equal(seen.ends, np.concatenate(expected))
    assert (np.diff(seen.age) <= 0.0).all(), "the oldest come first"
    assert seen.followed == seen.people == 12


def test_trails_have_an_end() -> None:
    sim, trails = walkers(6), Trails()
    sim.agents.goal[:] = -3
    sim.agents.velocity[:] = 0.0
    for step in range(400):
        sim.agents.position[:, 0] += 1e-3
        sim.step_number = step
        trails.after_step(sim, None)
    seen = trails.look(sim, None)
    assert seen is not None
    assert len(seen.ends) == 6 * 40
    assert seen.age.max() <= 1.0


def test_only_some_of_a_large_crowd_have_a_trail_and_the_selected_always() -> None:
    sim, trails = on_cells(300), Trails()
    trails._every = 4
    followed(sim, trails, 6, selected=7)
    seen = trails.look(sim, 7)
    assert seen is not None
    assert seen.followed == len({k for k in range(300) if k % 4 == 0} | {7})


def test_trails_of_a_restarted_run_begin_anew() -> None:
    sim, trails = walkers(4), Trails()
    followed(sim, trails, 6)
    again = walkers(4)
    assert trails.look(again, None) is None
    trails.after_step(again, None)
    assert trails.look(again, None) is None
    assert TRAILS.anew is not None
    assert TRAILS.anew().look(sim, None) is None, "switched on again it remembers nothing"


def test_who_jumps_across_the_world_leaves_no_trail_there() -> None:
    sim, trails = walkers(2), Trails()
    trails.after_step(sim, None)
    sim.agents.position[0] = [15.0, 1.0]
    sim.agents.position[1] += 0.01
    sim.step_number += 2
    trails.after_step(sim, None)
    seen = trails.look(sim, None)
    assert seen is not None
    assert len(seen.ends) == 1


@pytest.mark.parametrize("make", [walkers, lambda: on_cells(150, congestion=True), flyers])
def test_looking_changes_nothing_in_the_run(make: object) -> None:
    watched, alone = make(), make()  # type: ignore[operator]
    offered = [o if o.anew is None else o.anew() for o in overlays() if o.fits(watched)]
    for _ in range(15):
        for overlay in offered:
            overlay.look(watched, int(watched.agents.id[0]))
            overlay.look(watched, None)
            if overlay.after_step is not None:
                overlay.after_step(watched, None)
        watched.step()
        alone.step()
    assert watched.state_hash() == alone.state_hash()
