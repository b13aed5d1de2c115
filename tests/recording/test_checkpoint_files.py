import os
import random
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from tropel.errors import CheckpointError
from tropel.recording import environment_differences, load_checkpoint, save_checkpoint
from tropel.recording.checkpoint import this_environment

ARRAYS = {
    "agents/position": np.linspace(0, 1, 60).reshape(30, 2),
    "agents/id": np.arange(30),
    "planning.field": np.asfortranarray(np.arange(12, dtype=np.float32).reshape(3, 4)),
    "random/key": np.array([2**64 - 1], dtype=np.uint64),
    "names": np.array(["Zürich", "東京"]),
    "nothing": np.zeros((0, 3)),
    "step": np.array(7),
}
META = {"step": 7, "seed": 2**64 - 1, "events": [{"at": 1.5, "what": None}], "limit": float("inf"), "name": "Zoë"}


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    path = tmp_path_factory.mktemp("saved") / "run.checkpoint"
    save_checkpoint(path, arrays=ARRAYS, meta=META)
    return path.read_bytes()


def assert_same(found: dict[str, np.ndarray], expected: dict[str, np.ndarray]) -> None:
    assert list(found) == list(expected)
    for name, array in expected.items():
        assert found[name].dtype == array.dtype
        assert found[name].shape == array.shape
        assert found[name].tobytes() == array.tobytes()


def test_arrays_and_meta_come_back(tmp_path: Path) -> None:
    path = tmp_path / "run.checkpoint"
    save_checkpoint(path, arrays=ARRAYS, meta=META)
    arrays, meta = load_checkpoint(path)
    assert_same(arrays, ARRAYS)
    assert meta.pop("recorded_with") == this_environment()
    assert meta == META
    assert [entry.name for entry in tmp_path.iterdir()] == ["run.checkpoint"]


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    name=st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=20),
    array=hnp.arrays(
        st.one_of(
            hnp.floating_dtypes(sizes=(32, 64)), hnp.integer_dtypes(), hnp.boolean_dtypes(), hnp.unicode_string_dtypes()
        ),
        hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4),
    ),
)
def test_any_array_comes_back_bit_for_bit(tmp_path: Path, name: str, array: np.ndarray) -> None:
    save_checkpoint(tmp_path / "c", arrays={name: array}, meta={})
    assert_same(load_checkpoint(tmp_path / "c")[0], {name: array})


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(place=st.floats(0, 1, exclude_max=True), bit=st.integers(0, 7))
def test_a_flipped_bit_is_always_found(saved: bytes, tmp_path: Path, place: float, bit: int) -> None:
    content = bytearray(saved)
    content[int(place * len(content))] ^= 1 << bit
    (tmp_path / "flipped").write_bytes(content)
    with pytest.raises(CheckpointError, match="flipped"):
        load_checkpoint(tmp_path / "flipped")


def test_a_bit_flipped_in_any_of_the_last_bytes_is_found(saved: bytes, tmp_path: Path) -> None:
    for offset in range(len(saved) - 200, len(saved)):
        content = bytearray(saved)
        content[offset] ^= 1 << random.Random(offset).randrange(8)
        (tmp_path / "flipped").write_bytes(content)
        with pytest.raises(CheckpointError, match="flipped"):
            load_checkpoint(tmp_path / "flipped")


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(share=st.floats(0, 1, exclude_max=True))
def test_a_missing_end_is_always_found(saved: bytes, tmp_path: Path, share: float) -> None:
    (tmp_path / "short").write_bytes(saved[: int(share * len(saved))])
    with pytest.raises(CheckpointError, match="short"):
        load_checkpoint(tmp_path / "short")


def test_something_added_is_found(saved: bytes, tmp_path: Path) -> None:
    (tmp_path / "longer").write_bytes(saved + b"\n")
    with pytest.raises(CheckpointError, match="longer"):
        load_checkpoint(tmp_path / "longer")


def test_numpy_and_zip_read_the_file_too(saved: bytes, tmp_path: Path) -> None:
    (tmp_path / "run.npz").write_bytes(saved)
    with np.load(tmp_path / "run.npz", allow_pickle=False) as archive:
        np.testing.assert_array_equal(archive["arrays/agents/position"], ARRAYS["agents/position"])
    assert zipfile.ZipFile(tmp_path / "run.npz").testzip() is None


@pytest.mark.parametrize(
    ("arrays", "meta", "says"),
    [
        ({"models": np.array([object()])}, {}, "'models' holds Python objects"),
        ({"s": np.zeros(2, dtype=[("a", "f8"), ("b", "O")])}, {}, "'s' holds Python objects"),
        ({"": np.zeros(2)}, {}, "array name ''"),
        ({"a\0b": np.zeros(2)}, {}, "array name"),
        ({"\ud800": np.zeros(2)}, {}, "array name"),
        ({}, {"model": {"rule": print}}, r"meta\.model\.rule is a builtin"),
        ({}, {"goals": {3: "exit"}}, r"meta\.goals has the key 3"),
    ],
)
def test_what_cannot_be_stored_without_pickle_is_refused(tmp_path: Path, arrays: dict, meta: dict, says: str) -> None:
    with pytest.raises(CheckpointError, match=says):
        save_checkpoint(tmp_path / "c", arrays=arrays, meta=meta)
    assert list(tmp_path.iterdir()) == []


def test_a_file_with_pickled_objects_is_never_opened(tmp_path: Path) -> None:
    np.savez(tmp_path / "c.npz", models=np.array([{"a": 1}], dtype=object))
    with pytest.raises(CheckpointError, match="another kind of file"):
        load_checkpoint(tmp_path / "c.npz")


def test_a_missing_file_or_directory_is_named(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match=r"nowhere.*No such file"):
        load_checkpoint(tmp_path / "nowhere")
    with pytest.raises(CheckpointError, match=r"cannot save .*nowhere"):
        save_checkpoint(tmp_path / "nowhere" / "c", arrays={}, meta={})


def test_a_full_disk_leaves_the_previous_checkpoint_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "run.checkpoint"
    save_checkpoint(path, arrays=ARRAYS, meta=META)
    before = path.read_bytes()
    code = f"""
import resource, sys
import numpy as np
from tropel.errors import CheckpointError
from tropel.recording import save_checkpoint
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
try:
    save_checkpoint({str(path)!r}, arrays={{"big": np.zeros(50_000)}}, meta={{}})
except CheckpointError as error:
    print(error)
    sys.exit(3)
"""
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert result.returncode == 3, result.stderr
    assert "an earlier one there is unchanged" in result.stdout
    assert path.read_bytes() == before
    assert [entry.name for entry in tmp_path.iterdir()] == ["run.checkpoint"]


def test_a_checkpoint_that_is_killed_while_saving_leaves_a_whole_one(tmp_path: Path) -> None:
    path = tmp_path / "run.checkpoint"
    code = f"""
import itertools
import numpy as np
from tropel.recording import save_checkpoint
for n in itertools.count():
    save_checkpoint({str(path)!r}, arrays={{"big": np.full(100_000, n)}}, meta={{"n": n}})
    print(n, flush=True)
"""
    chance = random.Random(5)
    for _ in range(3):
        with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            saved_number = -1
            for _ in range(chance.randint(1, 20)):
                saved_number = int(process.stdout.readline())
            process.kill()
            process.communicate()
        arrays, meta = load_checkpoint(path)
        assert meta["n"] >= saved_number
        np.testing.assert_array_equal(arrays["big"], np.full(100_000, meta["n"]))


def test_differences_of_the_machine_are_told(tmp_path: Path) -> None:
    save_checkpoint(tmp_path / "c", arrays={}, meta={"step": 1})
    _, meta = load_checkpoint(tmp_path / "c")
    assert environment_differences(meta) == []
    assert set(meta["recorded_with"]) == {"python", "numpy", "numba", "tropel", "cpu"}
    meta["recorded_with"]["numpy"] = "1.26.4"
    del meta["recorded_with"]["cpu"]
    first, second = environment_differences(meta)
    assert first == f"numpy: 1.26.4 when it was saved, {np.__version__} here"
    assert second.startswith("cpu: not recorded when it was saved, ")
    assert environment_differences({}) == ["the checkpoint does not say what it was saved with"]


def test_the_users_umask_decides_who_may_read(tmp_path: Path) -> None:
    previous = os.umask(0o027)
    try:
        save_checkpoint(tmp_path / "c", arrays={}, meta={})
    finally:
        os.umask(previous)
    assert (tmp_path / "c").stat().st_mode & 0o777 == 0o640
