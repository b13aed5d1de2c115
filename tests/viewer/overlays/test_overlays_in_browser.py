"""Overlays and plots in a real browser: switched on the page, seen in the world, and gone again."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from live_page import differing, eventually, picture, settled, show
from live_scenes import two_rooms, wait_for_step

from tropel.viewer.live.view import View, open_view
from tropel.viewer.overlays.overlay import Overlay, forget_overlay, register_overlay


@pytest.fixture(scope="module")
def view(window: Any) -> Iterator[View]:
    """Two rooms, paused after a step, on one page for all tests: opening it takes seconds."""
    register_overlay(Overlay(name="own", title="Of one's own", look=look, draw=draw, legend=lambda seen: "a large dot"))
    try:
        with open_view(two_rooms(), port=0, playing=False) as opened:
            opened.live.single_step()
            wait_for_step(opened.live, 1)
            show(opened, window)
            yield opened
    finally:
        forget_overlay("own")


def look(sim: Any, selected: int | None) -> np.ndarray:
    return np.array([[*sim.agents.position.mean(axis=0), 0.5]])


def draw(canvas: Any, places: np.ndarray) -> None:
    canvas.scene.add_point_cloud(f"{canvas.path}/dot", places, colors=(0, 0, 0), point_size=2.0)


def choose_ground(window: Any, what: str) -> None:
    window.get_by_role("combobox", name="Ground").click()
    window.get_by_role("option", name=what, exact=True).click()


def changed(window: Any, before: np.ndarray, least: int) -> np.ndarray:
    """Wait until the world looks different."""
    eventually(lambda: differing(before, picture(window)) > least)
    return settled(window)


def looks_like(window: Any, before: np.ndarray) -> None:
    """Wait until the world looks as it did."""
    eventually(lambda: differing(before, picture(window)) < 50)


def test_the_ground_shows_what_is_chosen_and_says_what_colours_mean(view: View, window: Any) -> None:
    window.get_by_role("tab", name="Show").click()
    plain = settled(window)
    choose_ground(window, "planning field")
    window.get_by_text("Path length to nearest exit").wait_for()
    field = changed(window, plain, 5000)
    # The left room is farther from the exit than the right one: darker.
    light = field.mean(axis=-1)
    rows, columns = light.shape
    band = light[rows // 2 - 40 : rows // 2 + 40]
    assert band[:, columns // 5].mean() < band[:, -columns // 6].mean() - 10.0
    choose_ground(window, "density")
    window.get_by_text("People per m²").wait_for()
    density = changed(window, field, 5000)
    choose_ground(window, "nothing")
    eventually(lambda: window.get_by_text("People per m²").count() == 0)
    assert differing(plain, density) > 100
    looks_like(window, plain)


def test_arrows_links_and_trails_can_be_switched(view: View, window: Any) -> None:
    window.get_by_role("tab", name="Show").click()
    before = settled(window)
    window.get_by_role("checkbox", name="Arrows to goal").check()
    window.get_by_text("Arrows: direction to nearest exit").wait_for()
    changed(window, before, 200)
    window.get_by_role("checkbox", name="Arrows to goal").uncheck()
    looks_like(window, before)
    window.get_by_role("checkbox", name="Neighbours").check()
    window.get_by_text("Select an agent that senses others.").wait_for()
    view.page.panel.selection.choose(int(view.live.sim.agents.id[0]))
    window.get_by_text("within").wait_for()
    window.get_by_role("checkbox", name="Trails").check()
    window.get_by_text("No agent has moved").wait_for()
    for _ in range(6):
        view.live.single_step()
    wait_for_step(view.live, 7)
    view.page.redraw()
    window.get_by_text("simulated seconds of all agents").wait_for()
    trails = settled(window)
    # Two at a time, and one that somebody else has made.
    window.get_by_role("checkbox", name="Of one's own").check()
    window.get_by_text("a large dot").wait_for()
    changed(window, trails, 100)
    window.get_by_role("checkbox", name="Of one's own").uncheck()
    looks_like(window, trails)
    window.get_by_role("checkbox", name="Trails").uncheck()
    links = changed(window, trails, 20)
    window.get_by_role("checkbox", name="Neighbours").uncheck()
    changed(window, links, 20)


def test_plots_grow_while_the_run_goes_on(view: View, window: Any) -> None:
    window.get_by_role("tab", name="Plots").click()
    for title in ("Evacuated", "Flow through exits", "Mean speed", "Time of a step by stage"):
        window.get_by_text(title, exact=True).wait_for(state="attached")

    def last_times() -> list[float]:
        return list(
            window.evaluate(
                "() => Object.values(window.__viserTestpoints?.uplots ?? {}).map(p => p.chart.data[0].at(-1))"
            )
        )

    eventually(lambda: len(last_times()) == 4)
    view.live.play()
    eventually(lambda: max(last_times()) > 1.5)
    view.live.pause()
    wide = window.locator(".uplot canvas").first.bounding_box()["width"]
    assert wide > 150, "a plot has no room"
