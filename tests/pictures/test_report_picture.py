"""Pictures of reports: they show what the report says, also when there is little to show."""

from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from recorded_runs import EAST, ROOM, MemoryTrajectory, at, pixel, scene, walk

from tropel.analysis import evacuation_report
from tropel.errors import RecordingError
from tropel.pictures import draw_crowd_maps, draw_report
from tropel.pictures.report import crowd_maps_figure, report_figure
from tropel.recording import People, Trajectory


class ToldTrajectory(MemoryTrajectory):
    """A trajectory that also says what became of people."""

    told: People | None = None

    def people(self) -> People | None:
        return self.told


def walked(exits: int = 1) -> Trajectory:
    names = {f"exit {number}": EAST.wkt for number in range(exits)}
    return MemoryTrajectory(scene(exits=names), walk())


def texts(figure) -> str:
    said = [text.get_text() for text in figure.texts]
    for axes in figure.axes:
        said += [text.get_text() for text in axes.texts]
        said += [text.get_text() for text in axes.get_yticklabels()]
        said += [axes.get_title(loc="left"), axes.get_xlabel(), axes.get_ylabel()]
        if axes.get_legend():
            said += [text.get_text() for text in axes.get_legend().get_texts()]
    return "\n".join(said)


def test_the_pictures_are_files(tmp_path: Path) -> None:
    run = walked()
    report = evacuation_report(run)
    for path in (draw_report(report, tmp_path / "r.png"), draw_crowd_maps(report, run, tmp_path / "m.png")):
        with Image.open(path) as picture:
            assert min(picture.size) > 300
    with pytest.raises(RecordingError, match=r"must end in \.png"):
        draw_report(report, tmp_path / "r.jpg")


def test_the_numbers_of_the_report_are_written() -> None:
    report = evacuation_report(walked())
    assert report.left == 4
    said = texts(report_figure(report))
    assert "4 left" in said
    assert "1 still there" in said
    assert "times and exits estimated from frames" in said
    assert "exit 0" in said
    assert f"50 % in {report.needed_by(50):.1f} s" in said


def test_the_curve_of_the_picture_is_that_of_the_report() -> None:
    report = evacuation_report(walked())
    curve = report_figure(report).axes[0].lines[1]
    np.testing.assert_array_equal(curve.get_xdata(), report.evacuated.times)
    np.testing.assert_array_equal(curve.get_ydata(), report.evacuated.total)


def test_deaths_have_a_curve_only_where_somebody_died() -> None:
    run = ToldTrajectory(scene(exits={"east": EAST.wkt}), walk(2))
    names = {"id": [0, 1], "group": [0, 0], "came": [0.0, 0.0], "gone": [1.0, 2.0]}
    run.told = People.from_names(**names, fate=["left", "died"], through=["east", ""])
    assert "died" in texts(report_figure(evacuation_report(run)))
    run.told = People.from_names(**names, fate=["left", "left"], through=["east", "east"])
    assert "died" not in texts(report_figure(evacuation_report(run)))


def test_many_exits_are_taken_together() -> None:
    said = texts(report_figure(evacuation_report(walked(exits=30))))
    assert "23 others" in said
    assert "exit 29" not in said


def test_nobody_leaving_is_said() -> None:
    run = MemoryTrajectory(scene(), [at([(3.0, 3.0)])] * 3)
    report = evacuation_report(run)
    assert "nobody has left" in texts(report_figure(report))
    assert crowd_maps_figure(report, run).axes


def test_crowded_cells_are_darker_than_empty_ones_and_walls_cut_them_off() -> None:
    places = [(2.1 + 0.1 * k, 3.5) for k in range(8)] + [(7.5, 1.5)]
    run = MemoryTrajectory(scene(ROOM, bounds=[[-0.5, 0.0], [10.0, 6.0]]), [at([*places, (0.2, 1.2)])] * 4)
    figure = crowd_maps_figure(evacuation_report(run), run)
    mean = figure.axes[0]
    crowded, single, empty = (pixel(figure, mean, *place).sum() for place in ((2.2, 3.5), (7.9, 1.5), (5.0, 5.0)))
    assert crowded < single < empty
    # The cell from -0.5 to 0.5 reaches beyond the wall at 0.
    assert pixel(figure, mean, 0.3, 1.3).sum() < pixel(figure, mean, -0.3, 1.3).sum()


def test_arrows_point_the_way_of_the_flow() -> None:
    from matplotlib.quiver import Quiver

    run = walked()
    figure = crowd_maps_figure(evacuation_report(run), run)
    arrows = [artist for axes in figure.axes for artist in axes.collections if isinstance(artist, Quiver)]
    assert arrows
    for each in arrows:
        assert np.all(np.asarray(each.U) >= 0.0)
        np.testing.assert_allclose(np.asarray(each.V), 0.0, atol=1e-9)


@pytest.mark.parametrize("cell", [0.05, 1.0, 50.0])
def test_any_size_of_cells_can_be_drawn(cell: float) -> None:
    run = walked()
    assert crowd_maps_figure(evacuation_report(run, cell=cell), run).axes


def test_a_world_in_three_dimensions_is_drawn_from_above() -> None:
    world = scene(dim=3, bounds=[[0.0] * 3, [10.0, 6.0, 5.0]], walkable_wkt="")
    run = MemoryTrajectory(world, walk(dim=3))
    report = evacuation_report(run)
    assert "peak density" in texts(crowd_maps_figure(report, run))
    assert report_figure(report).axes
