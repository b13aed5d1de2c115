"""The trajectory file of a resumed run is that of the run that was never stopped."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from busy_scenes import DT, SCENES

import tropel


def content(path: Path) -> dict[str, Any]:
    """All that a trajectory holds of what was simulated."""
    with tropel.read_trajectory(path) as recorded:
        return {
            "frames": recorded.frames.tolist(),
            "fps": recorded.fps,
            "scene": recorded.scene,
            "table": {name: np.asarray(column) for name, column in recorded.table().items()},
            "events": [(e.frame, e.step, json.dumps(e.event, sort_keys=True)) for e in recorded.events],
            "obstacles": [recorded.obstacles(k) for k in recorded.frames.tolist()],
            "geometry": [recorded.geometry(k) for k in recorded.frames.tolist()],
            "end": {
                key: recorded.summary[key]
                for key in ("state_hash", "agents", "evacuated", "remaining", "exits", "simulated_time")
            }
            if recorded.summary
            else None,
        }


def assert_same(ours: dict[str, Any], theirs: dict[str, Any]) -> None:
    for key in ours.keys() - {"table"}:
        assert ours[key] == theirs[key], key
    assert ours["table"].keys() == theirs["table"].keys()
    for name, column in ours["table"].items():
        np.testing.assert_array_equal(column, theirs["table"][name], err_msg=name, strict=True)


RUNS = [("hall", "sqlite"), ("hall", "parquet"), ("box", "parquet")]


@pytest.mark.parametrize(("scene", "suffix"), RUNS)
@pytest.mark.parametrize("stop", [50, 51], ids=["on a frame", "between frames"])
def test_a_stopped_and_resumed_record_equals_the_uninterrupted_one(
    scene: str, suffix: str, stop: int, tmp_path: Path
) -> None:
    whole, parts, checkpoint = tmp_path / f"whole.{suffix}", tmp_path / f"parts.{suffix}", tmp_path / "checkpoint"
    SCENES[scene]().run(until=5.0, record=whole)
    SCENES[scene]().run(until=stop * DT, record=parts, checkpoint=checkpoint)
    resumed = SCENES[scene]()
    resumed.restore(checkpoint)
    resumed.run(until=5.0, record=parts)
    expected = content(whole)
    assert len(expected["frames"]) == 51
    assert len(expected["events"]) >= 6
    assert_same(content(parts), expected)


@pytest.mark.parametrize(("scene", "suffix"), RUNS)
def test_what_was_recorded_after_the_checkpoint_is_recorded_anew(scene: str, suffix: str, tmp_path: Path) -> None:
    whole, parts, checkpoint = tmp_path / f"whole.{suffix}", tmp_path / f"parts.{suffix}", tmp_path / "checkpoint"
    SCENES[scene]().run(until=5.0, record=whole)

    def save_on_the_way(step: int) -> Callable[[tropel.Simulation], None]:
        return lambda sim: sim.save(checkpoint) if sim.step_number == step else None

    SCENES[scene]().run(until=3.8, record=parts, progress=save_on_the_way(47))
    resumed = SCENES[scene]()
    resumed.restore(checkpoint)
    assert resumed.step_number == 47
    resumed.run(until=5.0, record=parts)
    assert_same(content(parts), content(whole))
