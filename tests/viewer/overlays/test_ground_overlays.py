"""What lies on the ground: compared with plain recounts of the same arrays."""

from __future__ import annotations

import math

import numpy as np
import pytest
from overlay_scenes import GAP, WALL_X, cells_of, flyers, on_cells, rooms, steps, walkers

from tropel import Group, Hazard, Seek, Simulation, VectorField
from tropel.recording import Scene
from tropel.viewer.colours import time_to_exit
from tropel.viewer.overlays.bottlenecks import BOTTLENECKS, Bottlenecks
from tropel.viewer.overlays.cells import (
    CONGESTION,
    DENSITY,
    OCCUPANCY,
    GroundPicture,
    congestion_picture,
    density_picture,
    draw_picture,
    occupancy_picture,
    picture_legend,
    pixels_of,
    shares,
)
from tropel.viewer.overlays.field import ARROWS, COLOURS, field_arrows, field_picture
from tropel.viewer.overlays.overlay import Canvas
from tropel.viewer.server import HOST, start_server, stop_server


def test_density_is_a_recount_of_people_per_square() -> None:
    sim = steps(walkers(60), 5)
    picture = density_picture(sim)
    assert picture is not None
    x, y = sim.agents.position.T
    counted, _, _ = np.histogram2d(y, x, bins=[np.arange(9.0), np.arange(17.0)])
    assert np.array_equal(np.nan_to_num(picture.values), counted)
    assert picture.cell == 1.0
    assert np.isnan(picture.values[counted == 0]).all()


def test_the_dead_are_not_counted() -> None:
    world = rooms(hazards={"fire": Hazard(inner=2.0, position=(2.0, 2.0))})
    people = Group("people", positions=[(2.0, 2.0), (6.0, 6.0)])
    sim = steps(Simulation(world, people, local=Seek(), dt=0.1, threads=1), 1)
    assert sim.agents.dead.sum() == 1
    picture = density_picture(sim)
    assert picture is not None
    assert np.nansum(picture.values) == 1.0


def test_occupancy_is_a_recount_of_the_cells_people_stand_in() -> None:
    sim = steps(on_cells(), 6)
    assert sim.population.departed == 0
    picture = occupancy_picture(sim)
    assert picture is not None
    taken = {(int(row), int(column)) for row, column in np.argwhere(picture.values == 1.0)}
    assert taken == cells_of(sim.agents.position, picture.origin, picture.cell)
    assert len(taken) == 100


def test_a_congestion_lowers_the_worth_of_places_as_equation_4_says() -> None:
    sim = on_cells(
        200,
        congestion={"high": 4.0, "low": 2.0, "area": 3.0, "every": 1, "intensity": 2.0, "reach": 4.0, "replan": False},
    )
    assert congestion_picture(sim) is None
    (watch,) = (planner.watch for planner in [sim.planners["people"]])
    for _ in range(80):
        sim.step()
        if watch.congested.any():
            break
    picture = congestion_picture(sim)
    assert picture is not None
    rows, columns = np.indices(picture.values.shape)
    x = picture.origin[0] + (columns + 0.5) * picture.cell
    y = picture.origin[1] + (rows + 0.5) * picture.cell
    worth = np.ones_like(x)
    for number in np.flatnonzero(watch.congested):
        at = watch.bottlenecks[number].position
        share = (np.hypot(x - at[0], y - at[1]) - 1.5) / (6.0 - 1.5)
        worth *= np.clip(share, 0.0, 1.0) ** 2.0
    shown = np.nan_to_num(picture.values)
    free = sim.ground.raster.free
    assert np.allclose(shown[free], (1.0 - worth)[free], atol=1e-9)
    assert not shown[~free].any()


def test_bottlenecks_that_are_watched_show_what_was_counted() -> None:
    sim = steps(on_cells(200, congestion={"high": 4.0, "low": 2.0, "every": 1}), 40)
    watch = sim.planners["people"].watch
    marked = Bottlenecks().look(sim)
    assert marked is not None
    assert [each.count for each in marked] == watch.counts.tolist()
    assert [each.congested for each in marked] == watch.congested.tolist()
    for each in marked:
        assert f"{each.count}/" in each.text
        assert each.text.endswith("full") == each.congested


def test_bottlenecks_that_nobody_watches_are_found_at_the_gap() -> None:
    sim = on_cells()
    memory = Bottlenecks()
    marked = memory.look(sim)
    assert marked
    nearest = min(marked, key=lambda each: math.dist(each.bottleneck.position, (WALL_X, 4.0)))
    assert math.dist(nearest.bottleneck.position, (WALL_X, 4.0)) < 1.0
    assert nearest.bottleneck.width == pytest.approx(GAP)
    assert nearest.text == f"{GAP:g} m"
    assert memory.look(sim) is marked, "found anew although nothing has changed"


def test_the_field_shows_the_way_to_the_goal_in_metres() -> None:
    sim = walkers()
    picture = field_picture(sim)
    assert picture is not None
    assert picture.unit == "m"
    assert "nearest exit" in picture.about
    # Straight ahead of the exit, east of the wall, the way is as long as the distance to the exit.
    row = int((4.0 - picture.origin[1]) // picture.cell)
    for x in (9.8, 11.4, 13.0):
        column = int((x - picture.origin[0]) // picture.cell)
        assert picture.values[row, column] == pytest.approx(15.2 - x, abs=2.0 * picture.cell)
    assert np.nanmin(picture.values) == picture.low == 0.0


def test_the_field_of_the_selected_agent_is_shown() -> None:
    sim = walkers()
    sim.agents.goal[:] = -3
    assert field_picture(sim) is None
    assert field_picture(sim, selected=int(sim.agents.id[0])) is None
    sim = walkers()
    chosen = field_picture(sim, selected=int(sim.agents.id[3]))
    assert chosen is not None
    assert field_picture(sim, selected=12345) is None


def test_arrows_point_to_the_exit_and_stay_in_their_squares() -> None:
    sim = walkers()
    seen = field_arrows(sim)
    assert seen is not None
    way = seen.ends[:, 1] - seen.ends[:, 0]
    middle = seen.ends.mean(axis=1)
    ahead = (middle[:, 0] > 10.0) & (middle[:, 0] < 15.0) & (np.abs(middle[:, 1] - 4.0) < 0.5)
    assert ahead.any()
    assert (way[ahead, 0] > 0.95 * np.linalg.norm(way[ahead], axis=1)).all()
    assert (np.linalg.norm(way, axis=1) <= seen.size * (1.0 + 1e-6)).all()


def test_arrows_of_a_painted_field_are_what_is_painted() -> None:
    sim = walkers(planning=VectorField(lambda points: np.stack([-points[:, 1], points[:, 0]], axis=1) / 20.0))
    seen = field_arrows(sim)
    assert seen is not None
    middle, way = seen.ends.mean(axis=1), seen.ends[:, 1] - seen.ends[:, 0]
    wanted = np.stack([-middle[:, 1], middle[:, 0]], axis=1) / 20.0
    assert np.allclose(way, seen.size * wanted, atol=1e-9)
    assert ARROWS.fits(sim)
    assert not COLOURS.fits(sim)


def test_overlays_are_offered_where_they_have_something_to_show() -> None:
    assert [o.name for o in (DENSITY, OCCUPANCY, CONGESTION, BOTTLENECKS, COLOURS) if o.fits(walkers(4))] == [
        "density",
        "planning field",
    ]
    assert not CONGESTION.fits(on_cells(4))
    assert all(o.fits(on_cells(4, congestion=True)) for o in (OCCUPANCY, CONGESTION, BOTTLENECKS, COLOURS))
    assert not any(o.fits(flyers(4)) for o in (DENSITY, OCCUPANCY, CONGESTION, BOTTLENECKS, COLOURS, ARROWS))


def test_an_empty_world_shows_nothing_and_says_so() -> None:
    sim = walkers(3)
    sim.remove_agents()
    assert density_picture(sim) is None
    assert field_picture(sim) is None
    assert field_arrows(sim) is None
    assert picture_legend(None) == "Nothing to show."


def test_darker_is_more_and_nothing_is_seen_through() -> None:
    picture = GroundPicture(
        values=np.array([[0.0, 2.0, 4.0], [9.0, np.nan, 1.0]]),
        origin=np.zeros(2),
        cell=1.0,
        low=0.0,
        high=4.0,
        about="",
    )
    pixels = pixels_of(picture)
    assert pixels[0, 1, 3] == 0, "the first row of pixels is the northern one"
    light = pixels[1, :, :3].astype(int) @ [299, 587, 114]
    assert light[0] > light[1] > light[2]
    assert np.array_equal(pixels[0, 0], pixels[1, 2]), "beyond the scale is its end"


def test_large_layers_become_means_of_blocks() -> None:
    layer = np.zeros((1100, 700), dtype=bool)
    layer[0:3, 0:2] = True
    layer[1099, 699] = True
    means, block = shares(layer)
    assert block == 3
    assert means.shape == (367, 234)
    assert means[0, 0] == pytest.approx(6 / 9)
    assert means.sum() == pytest.approx(7 / 9)


def test_time_to_exit_is_straight_where_ways_are_painted() -> None:
    sim = walkers(planning=VectorField(lambda points: np.ones_like(points)))
    x, y = sim.agents.position.T
    away = np.hypot(15.2 - x, np.maximum(np.abs(y - 4.0) - 1.0, 0.0))
    assert np.allclose(time_to_exit(sim), away / sim.agents.desired_speed)


def test_a_picture_whose_cells_reach_beyond_walls_is_cut_off_there() -> None:
    server = start_server(host=HOST, port=0)
    try:
        # A triangle: of four squares of 1 m the one in the north-east is outside, and two are half outside.
        world = Scene(dim=2, bounds=[[0.0, 0.0], [2.0, 2.0]], walkable_wkt="POLYGON ((0 0, 2 0, 0 2, 0 0))", dt=0.1)
        canvas = Canvas(scene=server.scene, path="/overlays/some", world=world)
        picture = GroundPicture(
            values=np.ones((2, 2)), origin=np.zeros(2), cell=1.0, low=0.0, high=1.0, about="", beyond_walls=True
        )
        draw_picture(canvas, picture)
        shown = canvas.nodes["picture"].image[..., 3] > 0
        half = len(shown) // 2
        north, south = shown[:half], shown[half:]
        assert south[:, :half].all()
        assert not north[:, half:].any()
        assert 0.4 < south[:, half:].mean() < 0.6
        assert 0.4 < north[:, :half].mean() < 0.6
    finally:
        stop_server(server)
