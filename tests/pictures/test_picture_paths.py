from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from recorded_runs import MemoryTrajectory, at, scene

from tropel.errors import RecordingError
from tropel.pictures import paths as paths_module
from tropel.pictures.paths import read_paths, sampled_frames


@st.composite
def runs(draw: st.DrawFn) -> MemoryTrajectory:
    """Agents that come, stay for a while and go, at places drawn at random."""
    frames = draw(st.integers(1, 12))
    count = draw(st.integers(0, 6))
    stays = [sorted(draw(st.tuples(st.integers(0, frames), st.integers(0, frames)))) for _ in range(count)]
    random = np.random.default_rng(draw(st.integers(0, 1000)))
    seen = []
    for k in range(frames):
        here = [i for i, (first, end) in enumerate(stays) if first <= k < end]
        seen.append(at(random.uniform(0, 6, (len(here), 2)).tolist(), ids=here))
    return MemoryTrajectory(scene(), seen)


@given(runs())
@settings(deadline=None, max_examples=60)
def test_counts_starts_and_lengths_are_those_of_a_plain_loop(run: MemoryTrajectory) -> None:
    paths = read_paths(run)
    seen: dict[int, list[np.ndarray]] = {}
    length = 0.0
    for k in run.frames:
        frame = run.frame(int(k))
        for number, place in zip(frame.id.tolist(), frame.position, strict=True):
            if number in seen:
                length += float(np.linalg.norm(place - seen[number][-1]))
            seen.setdefault(number, []).append(place)
        assert paths.there[k] == len(frame.id)
        assert paths.left[k] == len(seen) - len(frame.id)
    assert paths.agents == paths.drawn == len(seen)
    walked = np.linalg.norm(paths.pieces[:, 1] - paths.pieces[:, 0], axis=1).sum()
    assert walked == pytest.approx(length)
    starts = [seen[number][0] for number in sorted(seen)]
    np.testing.assert_array_equal(paths.starts, np.array(starts).reshape(-1, 2))


def test_thinned_paths_keep_both_ends_and_never_join_two_agents(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paths_module, "_PIECES", 10)
    random = np.random.default_rng(3)
    run = MemoryTrajectory(scene(), [at([[0.1 * k, 1.0], [0.1 * k, 5.0 + 0.1 * random.random()]]) for k in range(43)])
    paths = read_paths(run)
    assert len(paths.pieces) <= 12
    lower = paths.pieces[paths.pieces[:, 0, 1] == 1.0]
    np.testing.assert_allclose(lower[0, 0], [0.0, 1.0])
    np.testing.assert_allclose(lower[-1, 1], [4.2, 1.0])
    assert (np.abs(paths.pieces[:, 0, 1] - paths.pieces[:, 1, 1]) < 1.0).all()


def test_somebody_who_is_away_for_a_while_has_two_separate_paths() -> None:
    here, gone = at([[1.0, 1.0]]), at([])
    back = [at([[8.0, 1.0]]), at([[8.5, 1.0]])]
    paths = read_paths(MemoryTrajectory(scene(), [here, at([[1.5, 1.0]]), gone, *back]))
    assert np.linalg.norm(paths.pieces[:, 1] - paths.pieces[:, 0], axis=1).tolist() == pytest.approx([0.5, 0.5])
    assert paths.left.tolist() == [0, 0, 1, 0, 0]


def test_of_very_many_agents_an_even_part_is_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paths_module, "_PATHS", 10)
    place = np.random.default_rng(0).uniform(0, 6, (35, 2))
    paths = read_paths(MemoryTrajectory(scene(), [at(place.tolist()), at((place + 0.1).tolist())]))
    assert paths.agents == 35
    assert paths.drawn == len(paths.pieces) == 9
    assert len(paths.starts) == 35


def test_long_runs_are_sampled_from_the_first_frame_to_the_last() -> None:
    run = MemoryTrajectory(scene(), [at([[1.0, 1.0]])] * 1000)
    frames = sampled_frames(run, 50)
    assert len(frames) == 50
    assert frames[0] == 0
    assert frames[-1] == 999
    assert np.ptp(np.diff(frames)) <= 1


def test_a_run_without_frames_is_an_error_that_names_the_file() -> None:
    with pytest.raises(RecordingError, match=r"a_run\.sqlite has no frames"):
        read_paths(MemoryTrajectory(scene(), []))


def test_a_path_over_the_seam_of_periodic_space_is_cut_there() -> None:
    torus = scene(walkable_wkt="", sides=["joined", "open"])
    paths = read_paths(MemoryTrajectory(torus, [at([[9.0, 2.0]]), at([[1.0, 3.0]]), at([[9.5, 3.0]])]))
    np.testing.assert_allclose(
        paths.pieces,
        [[[9.0, 2.0], [10.0, 2.5]], [[1.0, 3.0], [0.0, 3.0]], [[0.0, 2.5], [1.0, 3.0]], [[10.0, 3.0], [9.5, 3.0]]],
    )
    assert len(paths.piece_times) == 4


def test_a_path_through_a_corner_of_the_torus_is_left_out_there() -> None:
    torus = scene(walkable_wkt="", sides=["joined", "joined"])
    paths = read_paths(MemoryTrajectory(torus, [at([[9.5, 5.5]]), at([[0.5, 0.5]]), at([[0.5, 1.5]])]))
    np.testing.assert_allclose(paths.pieces, [[[0.5, 0.5], [0.5, 1.5]]])


def test_the_bounds_hold_those_who_left_the_world() -> None:
    paths = read_paths(MemoryTrajectory(scene(walkable_wkt=""), [at([[-4.0, 2.0]]), at([[3.0, 20.0]])]))
    np.testing.assert_array_equal(paths.bounds, [[-4.0, 0.0], [10.0, 20.0]])
