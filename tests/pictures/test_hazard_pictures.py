"""Hazards and the dead in pictures: at their place, in their size, in the frames in which they were."""

from __future__ import annotations

import json

import numpy as np
import pytest
from matplotlib.patches import Circle
from PIL import Image, ImageColor, ImageDraw
from recorded_runs import MemoryTrajectory, at, scene

from tropel.pictures import style
from tropel.pictures.frames import RunFrames, _font
from tropel.pictures.hazards import HazardDisc, name_hazards
from tropel.pictures.paths import read_paths
from tropel.pictures.recorded_world import RecordedWorld
from tropel.pictures.run import run_figure
from tropel.pictures.viewport import fit_view
from tropel.recording import RecordedEvent
from tropel.recording.frames import deaths_note, hazards_note


def note(frame, text):
    return RecordedEvent(frame=frame, step=2 * frame, event=json.loads(text))


def burning_run(summary=None):
    """Three people; a fire that grows in frames 1 and 2, in which number 1 dies, and is out in frame 3."""
    people = at([(2.0, 3.0), (5.0, 3.0), (8.0, 1.0)], radius=0.3)
    left = at([(2.0, 3.0), (5.0, 3.0)], radius=0.3)

    def fire(inner):
        return {"fire": {"kind": "fire", "position": [5.0, 3.5], "inner": inner, "outer": 2.0 * inner}}

    entries = [
        note(1, hazards_note(fire(0.7))),
        note(2, hazards_note(fire(1.0))),
        note(2, deaths_note([1])),
        note(3, hazards_note({})),
    ]
    return MemoryTrajectory(scene(), [people, people, people, left], events=entries, summary=summary)


def pixel(image, film, x, y):
    view, corner = film._stage.views[0], film._stage.corners[0]
    right, down = view.pixels(np.array([[x, y]]))[0] + corner
    return image.getpixel((round(right), round(down)))


def near(colour, wanted):
    return np.abs(np.array(colour) - ImageColor.getrgb(wanted)).max() <= 12


def test_moments_know_the_hazards_of_their_frame():
    moments = RecordedWorld(burning_run())
    assert [[h.inner for h in moments.hazards(k).values()] for k in range(4)] == [[], [0.7], [1.0], []]
    assert moments.at(2).hazards["fire"].outer == 2.0


def test_an_animation_shows_hazards_in_the_size_of_the_frame():
    run = burning_run()
    film = RunFrames(run, run.frames, 800, 0.1)
    images = [film.draw(k) for k in range(4)]
    fill = style.hazard_fill(style.HAZARDS["fire"])
    # A place within the disc from frame 2 on, one within it from frame 1 on.
    assert [near(pixel(image, film, 5.0, 4.0), fill) for image in images] == [False, True, True, False]
    assert [near(pixel(image, film, 5.9, 3.5), fill) for image in images] == [False, False, True, False]


def test_an_animation_shows_the_dead_as_dark_crosses():
    run = burning_run()
    film = RunFrames(run, run.frames, 800, 0.1)
    images = [film.draw(k) for k in range(4)]
    assert [near(pixel(image, film, 5.0, 3.0), style.DEAD) for image in images] == [False, False, True, True]
    # Beside the arms of the cross there is no body.
    assert not near(pixel(images[3], film, 5.2, 3.0), style.DEAD)
    assert near(pixel(images[3], film, 5.2, 3.0), style.FLOOR)


def rows_of_name(draws):
    """The rows of the map in which the colour of a hazard's name is found."""
    ink = np.array(ImageColor.getrgb(style.label_colour(style.HAZARDS["fire"])))
    return np.flatnonzero((np.abs(np.asarray(draws.convert("RGB")).astype(int) - ink).max(axis=2) <= 12).any(axis=1))


@pytest.mark.parametrize(("targets", "below"), [([], False), ([(5.0, 3.0)], True), ([(9.0, 3.0)], False)])
def test_the_name_of_a_hazard_is_below_it_where_a_target_has_its_name_above(targets, below):
    view = fit_view(np.array([[0.0, 0.0], [10.0, 6.0]]), width=600, height=360, margin=0)
    sheet = Image.new("RGB", (2 * view.width, 2 * view.height), "white")
    fire = HazardDisc(name="fire", kind="fire", centre=(5.0, 3.0), inner=0.5, outer=1.0)
    name_hazards(ImageDraw.Draw(sheet), [fire], view, (0, 0), _font(24), targets=targets)
    middle = 2.0 * view.pixels(np.array([[5.0, 3.0]]))[0, 1]
    rows = rows_of_name(sheet)
    assert len(rows) > 5
    assert (rows > middle + view.scale).all() if below else (rows < middle - view.scale).all()


def test_paths_count_the_living_the_gone_and_the_dead():
    paths = read_paths(burning_run())
    assert paths.there.tolist() == [3, 3, 2, 1]
    assert paths.left.tolist() == [0, 0, 0, 1]
    assert paths.died.tolist() == [0, 0, 1, 1]
    assert paths.dead.tolist() == [[5.0, 3.0]]
    assert paths.ends.tolist() == [[2.0, 3.0]]


def texts(figure):
    found = [text.get_text() for text in figure.texts]
    found += [text.get_text() for axes in figure.axes for text in axes.texts]
    for legend in (*figure.legends, *(axes.get_legend() for axes in figure.axes)):
        found += [text.get_text() for text in legend.get_texts()] if legend is not None else []
    return found


def test_the_picture_of_a_run_shows_hazards_as_last_seen_and_who_died():
    summary = {"agents": 3, "remaining": 1, "deaths": 1, "simulated_time": 0.3}
    figure = run_figure(burning_run(summary))
    circles = [patch for axes in figure.axes for patch in axes.patches if isinstance(patch, Circle)]
    assert sorted(circle.radius for circle in circles) == [1.0, 2.0]
    assert all(tuple(circle.center) == (5.0, 3.5) for circle in circles)
    written = texts(figure)
    assert any(text.startswith("fire\n") for text in written)
    assert written.count("died") == 2, "in the key of the map and of the curves"
    assert any("1 left, 1 died, 1 still there" in text for text in written)


def test_a_run_without_deaths_does_not_speak_of_them():
    people = at([(2.0, 3.0), (5.0, 3.0)])
    assert "died" not in texts(run_figure(MemoryTrajectory(scene(), [people, people])))
