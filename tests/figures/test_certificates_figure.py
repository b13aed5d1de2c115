"""Certificates over time: many are looked at while people walk, almost none once they stand."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from tropel.figures.certificates import SETTLED, STOP, certificates_of_a_crowd, draw_certificates


@pytest.mark.parametrize("seed", range(3))
def test_a_crowd_at_rest_looks_at_almost_no_certificates(seed: int) -> None:
    times, reports = certificates_of_a_crowd(seed=seed)
    exist, looked_at, failed = (
        np.array([getattr(report, name) for report in reports]) for name in ("certificates", "looked_at", "failed")
    )
    walking, resting = (times > 1.0) & (times <= STOP), times > SETTLED
    share = looked_at / exist
    assert share[walking].mean() > 0.05
    assert share[resting].mean() < 0.001 * share[walking].mean()
    assert (failed <= looked_at)[walking].all()
    assert failed[walking].sum() > 100
    assert failed[resting].sum() == 0


def test_it_is_drawn(tmp_path: Path) -> None:
    (path,) = draw_certificates(tmp_path / "figure.png")
    with Image.open(path) as picture:
        assert picture.size[0] > 900
