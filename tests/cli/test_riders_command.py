"""`tropel riders`: build, show and their errors."""

from __future__ import annotations

from pathlib import Path

from tropel_command import tropel

from tropel.riders.maps import MobilityMap


def test_show_draws_what_a_bicyclist_can_do_and_reports_it(tmp_path: Path) -> None:
    told = tropel("riders", "show", "human", "--out", tmp_path, cwd=tmp_path)
    assert "100 states × 10 actions" in told.stdout
    assert "counter-steer" in told.stdout
    for name in ("human_fan.png", "human_slalom.png"):
        assert (tmp_path / name).stat().st_size > 10_000


def test_build_writes_a_map_that_show_reads(tmp_path: Path) -> None:
    (tmp_path / "van.toml").write_text('kind = "car"\nname = "van"\nwheelbase = 3.2\n')
    told = tropel("riders", "build", "van.toml", "--states", 20, "--out", "van.npz", "-q", cwd=tmp_path)
    assert "wrote van.npz" in told.stdout
    assert MobilityMap.load(tmp_path / "van.npz").lasts.shape == (20, 10)
    shown = tropel("riders", "show", "van.toml", "--map", "van.npz", "--out", tmp_path, cwd=tmp_path)
    assert "van_fan.png" in shown.stdout.replace("\n", "")
    other = tropel("riders", "show", "car", "--map", "van.npz", cwd=tmp_path, ok=False)
    assert other.returncode == 1
    assert "built for another character" in other.stderr


def test_a_character_that_cannot_ride_is_refused_before_any_trial(tmp_path: Path) -> None:
    (tmp_path / "weak.toml").write_text('kind = "human"\nname = "weak"\n[control]\nsteer_torque = 0.001\n')
    told = tropel("riders", "build", "weak.toml", "--out", "weak.npz", "-q", cwd=tmp_path, ok=False)
    assert told.returncode == 1
    assert "'weak' cannot ride straight" in told.stderr
    assert "steer_torque" in told.stderr
    assert not (tmp_path / "weak.npz").exists()
    assert not list(tmp_path.glob("weak.npz*"))


def test_wrong_names_are_refused(tmp_path: Path) -> None:
    for arguments, message in (
        (("build", "humn"), "did you mean 'human'"),
        (("build", "missing.toml"), "cannot read the character"),
        (("build", "car", "--out", "car.txt"), "an .npz file"),
        (("reduce", "car"), "no bicyclist"),
        (("tune", "human", "--task", "race"), "--task must be"),
    ):
        told = tropel("riders", *arguments, cwd=tmp_path, ok=False)
        assert told.returncode == 1
        assert message in told.stderr
