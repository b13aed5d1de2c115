"""Phase plots and personalities on the command line."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from tropel import cli
from tropel.agents.personality import PRESETS
from tropel.figures.phase_portraits import PhasePortrait, competition_portraits, draw_phase_plot, gap_portraits

Tropel = Callable[..., tuple[int, str, str]]


@pytest.fixture
def tropel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Tropel:
    """Call the command line in an empty folder; returns exit code, standard output and standard error."""
    monkeypatch.chdir(tmp_path)

    def call(*arguments: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["tropel", *arguments])
        with pytest.raises(SystemExit) as stop:
            cli.main()
        shown = capsys.readouterr()
        return int(stop.value.code or 0), shown.out, shown.err

    return call


def below_the_title(path: Path) -> np.ndarray:
    return np.asarray(Image.open(path).convert("RGB"))[50:]


@pytest.mark.parametrize(("figure", "portraits"), [("game_fig2", gap_portraits), ("game_fig3", competition_portraits)])
def test_plot_draws_the_figure_of_the_paper(
    figure: str, portraits: Callable[[], list[PhasePortrait]], tropel: Tropel, tmp_path: Path
) -> None:
    code, shown, _ = tropel("plot", figure)
    assert code == 0
    assert shown.split() == ["wrote", f"out/{figure}.png"]
    expected = draw_phase_plot(portraits(), tmp_path / "expected.png")
    np.testing.assert_array_equal(below_the_title(tmp_path / "out" / f"{figure}.png"), below_the_title(expected))


def test_out_may_be_a_file_or_a_folder_for_phase_plots(tropel: Tropel, tmp_path: Path) -> None:
    tropel("plot", "game_fig3", "--out", "here/narrow.png")
    tropel("plot", "game_fig3", "--out", "there")
    np.testing.assert_array_equal(
        below_the_title(tmp_path / "here/narrow.png"), below_the_title(tmp_path / "there/game_fig3.png")
    )


def test_a_name_that_is_no_phase_plot_is_answered_with_the_nearest(tropel: Tropel, tmp_path: Path) -> None:
    code, _, said = tropel("plot", "game_fig22")
    assert code == 1
    assert "game_fig22 does not exist; give the folder of a run, a trajectory file or the name of a plot" in said
    assert "did you mean 'game_fig2'?" in said
    assert list(tmp_path.iterdir()) == []


def test_an_out_that_cannot_be_made_is_an_error_of_one_line(tropel: Tropel, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    code, _, said = tropel("plot", "game_fig2", "--out", "file/below")
    assert code == 1
    assert said.startswith("error: cannot create the folder file/below")
    assert said.count("\n") == 1


def test_a_folder_of_the_name_of_a_phase_plot_is_taken_for_a_run(tropel: Tropel, tmp_path: Path) -> None:
    (tmp_path / "game_fig2").mkdir()
    code, _, said = tropel("plot", "game_fig2")
    assert code == 1
    assert "contains no trajectory" in said


def test_list_names_phase_plots_and_every_personality(tropel: Tropel) -> None:
    _, scenes, _ = tropel("list")
    assert all(name in scenes for name in ("game_fig2", "game_fig3", "tropel plot NAME"))
    _, shown, _ = tropel("list", "--personalities")
    assert all(name in shown for name in PRESETS)
