"""Replays and exported files in a real browser."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import replay_runs as run
from replay_browser import picture, place_of_guide, wait_until

from tropel.recording import read_trajectory
from tropel.viewer.export import export_html
from tropel.viewer.replay import Replay, open_replay

#: Large enough that the note on software rendering, in a corner, hides nobody.
SIZE = {"width": 1000, "height": 640}


@pytest.fixture(params=["run.sqlite", "run.parquet"])
def replay(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Replay]:
    with open_replay(run.write_run(tmp_path / request.param), port=0, playing=False) as opened:
        yield opened


def open_page(window: Any, replay: Replay) -> Any:
    window.set_viewport_size(SIZE)
    window.goto(replay.address)
    window.wait_for_selector("canvas")
    wait_until(window, lambda: replay.pulse.pages > 0)
    return window


def guide_is_seen_as_in_frame(k: int, page: Any, *, fitted: bool) -> bool:
    found = place_of_guide(page, run.scene(), fitted=fitted)
    return found is not None and bool(np.linalg.norm(np.subtract(found, run.place(run.LONE, k))) < 0.35)


def stands_still(page: Any) -> bool:
    before = picture(page)
    page.wait_for_timeout(300)
    return bool(np.abs(picture(page) - before).max() < 10)


def test_the_slider_goes_to_the_frame_of_its_time(window: Any, replay: Replay) -> None:
    page = open_page(window, replay)
    with read_trajectory(replay.frames.trajectory.path) as file:
        for time, k in ((4.2, 42), (1.0, 10)):
            field = page.locator("input[type=text][inputmode=decimal]").first
            field.fill(str(time))
            field.press("Enter")
            wait_until(page, lambda k=k: replay.index == k)
            assert replay.frame is not None
            np.testing.assert_array_equal(replay.frame.id, file.frame(k).id)
            np.testing.assert_array_equal(replay.frame.position, file.frame(k).position)
            wait_until(page, lambda k=k: guide_is_seen_as_in_frame(k, page, fitted=True))


def test_it_plays_pauses_and_steps(window: Any, replay: Replay) -> None:
    page = open_page(window, replay)
    assert replay.index == 0
    page.get_by_role("button", name="Play").click()
    wait_until(page, lambda: replay.index > 3)
    page.get_by_role("button", name="Pause").click()
    wait_until(page, lambda: not replay.player.playing)
    wait_until(page, lambda: replay.index == replay.frames.index_at(replay.player.time))
    before = replay.index
    page.get_by_role("button", name="next").click()
    wait_until(page, lambda: replay.index == before + 1)
    page.get_by_role("button", name="before").click()
    wait_until(page, lambda: replay.index == before)


def test_an_exported_file_plays_without_a_server_and_without_a_network(browser: Any, tmp_path: Path) -> None:
    page = browser.new_context(viewport=SIZE, offline=True).new_page()
    page.set_default_timeout(120_000)
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    with read_trajectory(run.write_run(tmp_path / "run.sqlite")) as trajectory:
        exported = export_html(trajectory, tmp_path / "run.html")
    page.goto(exported.path.as_uri())
    page.wait_for_selector("canvas")
    legend = page.locator("#legend")
    assert "<two> rooms & a door" in legend.inner_text()
    legend.evaluate("box => box.remove()")  # it has the guide's colour too
    wait_until(page, lambda: place_of_guide(page, run.scene(), fitted=False) is not None)
    first = picture(page)
    wait_until(page, lambda: np.abs(picture(page) - first).max() > 100)
    # Paused, because a bar that goes on would write its own time over what is filled in.
    page.keyboard.press("Space")
    field = page.locator("input[inputmode=decimal]").first
    wait_until(page, lambda: stands_still(page))
    field.fill("4.2")
    wait_until(page, lambda: guide_is_seen_as_in_frame(42, page, fitted=False))
    assert page.title() == "<two> rooms & a door"
    page.context.close()
    assert [url for url in asked if not url.startswith(("file:", "data:", "blob:"))] == []
