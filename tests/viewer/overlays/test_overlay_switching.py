"""Overlays on a page: one of a user's own, what is drawn when, and what happens when one fails."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from threading import Event
from time import perf_counter
from typing import Any

import numpy as np
import pytest
from overlay_scenes import on_cells, walkers

from tropel.errors import ParameterError
from tropel.viewer.live.page import Page
from tropel.viewer.live.run import LiveRun
from tropel.viewer.overlays.overlay import Canvas, Overlay, forget_overlay, overlays, register_overlay

#: Never set: waiting for it leaves the other threads the processor.
_PAUSE = Event()


def eventually(holds: Callable[[], Any]) -> None:
    end = perf_counter() + 240.0
    while not holds():
        assert perf_counter() < end, "it has not happened"
        _PAUSE.wait(0.02)


@pytest.fixture
def own() -> Iterator[list[Any]]:
    """An overlay of a user's own that marks where everybody is, and what it has drawn."""
    drawn: list[Any] = []

    def look(sim: Any, selected: int | None) -> Any:
        return None if selected == -1 else (sim.step_number, selected, sim.agents.position.copy())

    def draw(canvas: Canvas, seen: Any) -> None:
        drawn.append((canvas, seen))
        points = np.pad(seen[2], ((0, 0), (0, 1)))
        canvas.nodes["points"] = canvas.scene.add_point_cloud(
            f"{canvas.path}/points", points, colors=(0, 0, 0), point_size=0.1
        )

    def legend(seen: Any) -> str:
        return "nobody" if seen is None else f"{len(seen[2])} places"

    register_overlay(Overlay(name="places", title="Where they are", look=look, draw=draw, legend=legend, seconds=1e-3))
    yield drawn
    forget_overlay("places")


@pytest.fixture
def page() -> Iterator[Page]:
    """A page of a paused run that draws when it is told to."""
    live = LiveRun(walkers(8), playing=False, speed=1e9)
    made = Page(live, port=0)
    live.start()
    yield made
    live.stop()
    live.join()
    made.close()


def switch(page: Page, name: str, on: bool = True) -> Overlay:
    overlay = next(overlay for overlay in overlays() if overlay.name == name)
    page.switch(overlay, on)
    return overlay


def text(page: Page, name: str) -> str:
    return str(page.panel.show._texts[name].content)


def test_an_overlay_of_ones_own_is_offered_drawn_and_removed(own: list[Any], page: Page) -> None:
    assert page.panel.show._switches["places"].label == "Where they are"
    page.draw_now()
    assert not own, "nothing is drawn before it is switched on"
    switch(page, "places")
    page.selected = 3
    page.draw_now()
    canvas, (step, selected, positions) = own[-1]
    assert (step, selected) == (0, 3)
    assert len(positions) == 8
    assert canvas.path == "/overlays/places"
    assert text(page, "places") == "8 places"
    switch(page, "places", on=False)
    assert not canvas.nodes
    assert text(page, "places") == ""
    count = len(own)
    page.draw_now()
    assert len(own) == count


def test_an_overlay_with_nothing_to_show_is_removed_and_says_so(own: list[Any], page: Page) -> None:
    switch(page, "places")
    page.draw_now()
    canvas, _ = own[-1]
    page.selected = -1
    eventually(lambda: page.draw_now() and not canvas.nodes)
    assert text(page, "places") == "nobody"


def test_an_overlay_that_fails_is_switched_off_and_the_run_goes_on(page: Page) -> None:
    def fail(*what: Any) -> Any:
        raise ValueError("of course")

    def fine(sim: Any, selected: int | None) -> str:
        return "seen"

    for broken in (
        Overlay(name="looks", title="looks", look=fail, draw=lambda canvas, seen: None),
        Overlay(name="draws", title="draws", look=fine, draw=fail),
        Overlay(name="says", title="says", look=fine, draw=lambda canvas, seen: None, legend=fail),
        Overlay(name="steps", title="steps", look=fine, draw=lambda canvas, seen: None, after_step=fail),
    ):
        page.switch(broken, True)
        step = page.live.sim.step_number
        page.live.single_step()
        eventually(lambda step=step: page.live.ask(lambda sim: sim.step_number, seconds=240.0) > step)
        page.draw_now()
        assert broken.name not in page._switched_on
    assert not page.live.error


def test_a_failure_is_said_below_the_switch(own: list[Any], page: Page) -> None:
    box = page.panel.show._switches["places"]
    box.value = True
    eventually(lambda: "places" in page._switched_on)
    broken = next(overlay for overlay in overlays() if overlay.name == "places")
    page.switch(dataclasses.replace(broken, draw=lambda canvas, seen: seen.missing), True)
    page.draw_now()
    assert "Switched off: AttributeError" in text(page, "places")
    eventually(lambda: box.value is False)


def test_every_overlay_that_is_offered_can_be_drawn(page: Page) -> None:
    offered = [overlay for overlay in overlays() if overlay.fits(page.live.sim)]
    assert len(offered) >= 5
    page.selected = int(page.live.sim.agents.id[0])
    for overlay in offered:
        page.switch(overlay, True)
    for _ in range(4):
        page.live.single_step()
    eventually(lambda: page.live.ask(lambda sim: sim.step_number, seconds=240.0) == 4)
    for _ in range(2):
        for _, watch in page._switched_on.values():
            watch.due = 0.0
        page.draw_now()
    assert len(page._switched_on) == len(offered), "one of them has failed"
    for overlay in offered:
        page.switch(overlay, False)
    assert list(page.live.observers) == [page.panel.plots.history]


def test_every_overlay_of_a_crowd_on_cells_can_be_drawn() -> None:
    live = LiveRun(on_cells(60, congestion={"high": 2.0, "low": 1.0, "every": 1}), playing=False, speed=1e9)
    page = Page(live, port=0)
    live.start()
    try:
        offered = [overlay for overlay in overlays() if overlay.fits(live.sim)]
        assert {"occupancy", "congestion", "bottlenecks"} <= {overlay.name for overlay in offered}
        for overlay in offered:
            page.switch(overlay, True)
        for _ in range(30):
            live.single_step()
        eventually(lambda: live.ask(lambda sim: sim.step_number, seconds=240.0) == 30)
        page.draw_now()
        assert len(page._switched_on) == len(offered), "one of them has failed"
        assert "full" in text(page, "bottlenecks")
    finally:
        live.stop()
        live.join()
        page.close()


def test_what_paints_the_ground_is_one_choice(page: Page) -> None:
    ground = page.panel.show._switches["density"]
    assert ground is page.panel.show._switches["planning field"]
    ground.value = "density"
    eventually(lambda: set(page._switched_on) == {"density"})
    ground.value = "planning field"
    eventually(lambda: set(page._switched_on) == {"planning field"})
    ground.value = "nothing"
    eventually(lambda: not page._switched_on)


def test_names_are_unique_and_fit_into_a_path() -> None:
    density = next(overlay for overlay in overlays() if overlay.name == "density")
    with pytest.raises(ParameterError, match="already"):
        register_overlay(dataclasses.replace(density, title="another"))
    with pytest.raises(ParameterError, match="slash"):
        register_overlay(dataclasses.replace(density, name="a/b"))
    with pytest.raises(ParameterError, match="positive"):
        register_overlay(dataclasses.replace(density, name="fast", seconds=0.0))
    assert len({overlay.name for overlay in overlays()}) == len(overlays())


def test_plots_hold_what_the_run_has_done(page: Page) -> None:
    for _ in range(25):
        page.live.single_step()
    eventually(lambda: page.live.ask(lambda sim: sim.step_number, seconds=240.0) == 25)
    for watch in page.watches:
        watch.due = 0.0
    page.draw_now()
    plots = [plot.handle for plot, _ in page.panel.plots._plots]
    assert [plot.title for plot in plots] == [
        "Evacuated",
        "Flow through exits",
        "Mean speed",
        "Time of a step by stage",
    ]
    for plot in plots:
        assert len(plot.data) == len(plot.series)
        assert len({len(line) for line in plot.data}) == 1
    assert plots[0].data[0][-1] == pytest.approx(2.5)
    assert plots[2].data[0][-1] == pytest.approx(2.2)
    colours = [line["stroke"] for line in plots[3].series[1:]]
    assert len(set(colours)) == len(colours) == 5
