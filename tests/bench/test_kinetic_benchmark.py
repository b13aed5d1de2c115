"""The benchmark of kinetic neighbourhoods: on small crowds, with all ratios."""

from __future__ import annotations

from tropel.bench.kinetic import Case, WholeSteps, measure
from tropel.local.seek import Seek


def test_small_crowds_have_all_rows_and_ratios() -> None:
    cases = [
        Case(label="small", agents=60, dt=0.1, radius=2.0, steps=3),
        Case(label="idle", agents=60, dt=0.1, radius=2.0, moving=0.05, steps=3, peers=False),
        Case(label="3d", agents=60, dt=0.05, radius=1.5, dim=3, steps=3),
    ]
    told: list[tuple[int, int]] = []
    steps = WholeSteps(label="seek", model=Seek, agents=40, radius=2.0, moving=0.5, steps=3)
    result = measure(lambda what, done, total: told.append((done, total)), cases, [steps])
    assert [row["dim"] for row in result.rows] == [2, 2, 3]
    compared = {"grid_over_ours_small", "grid_over_ours_idle", "grid_over_ours_3d"}
    compared |= {"scipy_over_ours_small", "scipy_over_ours_3d", "grid_over_ours_step_seek", "auto_is_right"}
    assert set(result.ratios) == compared
    assert 0.0 <= result.ratios.pop("auto_is_right") <= 1.0
    assert all(value > 0.0 for value in result.ratios.values())
    assert told[-1] == (28, 28)
