"""Replays and exported files in a real browser."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import replay_runs as run
from replay_browser import place_of_guide, wait_until

from tropel.recording import read_trajectory
from tropel.viewer.replay.export import export_html
from tropel.viewer.replay.page import ReplayPage, open_replay

#: Large enough that the note on software rendering, in a corner, hides nobody.
SIZE = {"width": 1000, "height": 640}


@pytest.fixture(scope="module")
def replay(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ReplayPage]:
    path = run.write_run(tmp_path_factory.mktemp("replay") / "run.sqlite")
    with open_replay(path, port=0, playing=False) as opened:
        yield opened


@pytest.fixture(scope="module")
def page(window: Any, replay: ReplayPage) -> Any:
    """One page for all tests of a replay: opening it takes seconds."""
    window.set_viewport_size(SIZE)
    window.goto(replay.address)
    window.wait_for_selector("canvas")
    wait_until(window, lambda: replay.pulse.pages > 0)
    return window


def guide_is_seen_as_in_frame(k: int, page: Any, *, fitted: bool) -> bool:
    found = place_of_guide(page, run.scene(), fitted=fitted)
    return found is not None and bool(np.linalg.norm(np.subtract(found, run.place(run.LONE, k))) < 0.35)


def test_the_slider_goes_to_the_frame_of_its_time(page: Any, replay: ReplayPage) -> None:
    field = page.locator("input[type=text][inputmode=decimal]").first
    with read_trajectory(replay.frames.trajectory.path) as file:
        for time, k in ((4.2, 42), (1.0, 10)):
            field.fill(str(time))
            field.press("Enter")
            wait_until(page, lambda k=k: replay.index == k)
            assert replay.frame is not None
            np.testing.assert_array_equal(replay.frame.id, file.frame(k).id)
            np.testing.assert_array_equal(replay.frame.position, file.frame(k).position)
            wait_until(page, lambda k=k: guide_is_seen_as_in_frame(k, page, fitted=True))


def test_it_plays_pauses_and_steps(page: Any, replay: ReplayPage) -> None:
    replay.seek(0.0)
    wait_until(page, lambda: replay.index == 0)
    page.get_by_role("button", name="Play").click()
    wait_until(page, lambda: replay.index > 3)
    page.get_by_role("button", name="Pause").click()
    wait_until(page, lambda: not replay.player.playing)
    wait_until(page, lambda: replay.index == replay.frames.index_at(replay.player.time))
    before = replay.index
    page.get_by_role("button", name="next").click()
    wait_until(page, lambda: replay.index == before + 1)
    page.get_by_role("button", name="previous").click()
    wait_until(page, lambda: replay.index == before)


def open_file(page: Any, address: str) -> Any:
    """Open an exported file, and stop it: pictures of what plays take long without a graphics card."""
    page.goto(address)
    page.wait_for_selector("canvas")
    clock = page.locator("input[inputmode=decimal]").first
    clock.wait_for()
    play_or_pause(page)
    wait_until(page, lambda: stands_still(page, clock))
    return clock


def play_or_pause(page: Any) -> None:
    page.evaluate("document.activeElement.blur()")  # or a space would be typed into the clock
    page.keyboard.press("Space")


def stands_still(page: Any, clock: Any) -> bool:
    before = clock.input_value()
    page.wait_for_timeout(300)
    return bool(clock.input_value() == before)


def hide_legend(page: Any) -> None:
    """It has the guide's colour too."""
    page.locator("#legend").evaluate("box => box.style.display = 'none'")


def guide_is_seen_elsewhere(k: int, page: Any) -> bool:
    """Whether the guide is not where a plan would show it."""
    found = place_of_guide(page, run.scene(), fitted=False)
    return found is not None and bool(np.linalg.norm(np.subtract(found, run.place(run.LONE, k))) > 1.0)


def test_an_exported_file_plays_without_a_server_and_without_a_network(browser: Any, tmp_path: Path) -> None:
    page = browser.new_context(viewport=SIZE, offline=True).new_page()
    page.set_default_timeout(120_000)
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    with read_trajectory(run.write_run(tmp_path / "run.sqlite")) as trajectory:
        exported = export_html(trajectory, tmp_path / "run.html")
    clock = open_file(page, exported.path.as_uri())
    assert page.title() == "<two> rooms & a door"
    assert "<two> rooms & a door" in page.locator("#legend").inner_text()
    hide_legend(page)
    # Back to the start, and a while of it is seen.
    clock.fill("0")
    wait_until(page, lambda: guide_is_seen_as_in_frame(0, page, fitted=False))
    play_or_pause(page)
    wait_until(page, lambda: 1.0 < float(clock.input_value()) < 5.0)
    play_or_pause(page)
    wait_until(page, lambda: stands_still(page, clock))
    k = round(float(clock.input_value()) * run.FPS)
    wait_until(page, lambda: guide_is_seen_as_in_frame(k, page, fitted=False))
    clock.fill("4.2")
    wait_until(page, lambda: guide_is_seen_as_in_frame(42, page, fitted=False))
    # A link to the same file looks at it from elsewhere.
    clock = open_file(page, exported.path.as_uri() + page.get_by_text("in space").get_attribute("href"))
    hide_legend(page)
    clock.fill("4.2")
    wait_until(page, lambda: guide_is_seen_elsewhere(42, page))
    page.context.close()
    assert [url for url in asked if not url.startswith(("file:", "data:", "blob:"))] == []
