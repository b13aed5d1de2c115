"""Checkpoints with the right checksum and the wrong contents: refused before anything of them is used."""

from __future__ import annotations

import hashlib
import io
import json
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import shapely

import tropel
from tropel.contracts import Guidance, Moment
from tropel.errors import CheckpointError
from tropel.recording import load_checkpoint, save_checkpoint

Arrays = dict[str, np.ndarray]


def build() -> tropel.Simulation:
    world = tropel.World(
        shapely.box(0, 0, 20, 10),
        exits={"out": shapely.box(19, 4, 20, 6)},
        doors={"side": [(10, 0), (10, 2)]},
        targets={"stage": tropel.Target(position=(5, 5))},
        obstacles={
            "pillar": tropel.Obstacle(radius=0.5, position=(12, 5)),
            "cart": tropel.Obstacle(radius=0.3, motion=tropel.Orbit(center=(5, 5), radius=1, period=5)),
        },
        hazards={"fire": tropel.Hazard(inner=0.2, position=(3, 8))},
    )
    people = tropel.Group("people", count=20, region=shapely.box(1, 1, 8, 9))
    late = tropel.Source("late", rate=1.0, region=shapely.box(1, 1, 3, 3), total=5)
    sim = tropel.Simulation(world, [people, late], seed=3, threads=1)
    sim.at(2.0, tropel.events.OpenDoor(door="side"))
    return sim


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> tuple[Arrays, dict[str, Any]]:
    path = tmp_path_factory.mktemp("saved") / "checkpoint.npz"
    sim = build()
    for _ in range(5):
        sim.step()
    sim.save(path)
    arrays, meta = load_checkpoint(path)
    meta.pop("recorded_with")
    return arrays, meta


@pytest.fixture(scope="module")
def target() -> tropel.Simulation:
    return build()


def assert_refused(target: tropel.Simulation, path: Path, what: str) -> None:
    before = target.state_hash()
    with pytest.raises(CheckpointError) as refused:
        target.restore(path)
    assert str(path) in str(refused.value), what
    assert "\n" not in str(refused.value), what
    assert target.state_hash() == before, what


def wrong_arrays(array: np.ndarray) -> Iterator[tuple[str, np.ndarray]]:
    """Arrays that no run has in the place of this one."""
    if array.dtype.kind == "f" and array.size:
        for value in (np.nan, -np.inf):
            wrong = array.copy()
            wrong.flat[-1] = value
            yield f"{value}", wrong
    if array.dtype.kind == "i" and array.size:
        # Short numbers have no room for one that is too large everywhere.
        for value in (-(2**30), 2**30) if array.itemsize > 2 else (-(2**15),):
            wrong = array.copy()
            wrong.flat[-1] = value
            yield f"{value}", wrong
    yield "single precision", np.zeros(array.shape, dtype=np.float32)
    yield "one more dimension", np.zeros((*array.shape, 1), dtype=array.dtype)
    if array.ndim and len(array):
        yield "a row less", array[:-1]
    yield "text", np.array(["x", "y"])


def test_arrays_of_wrong_types_shapes_and_values_are_refused(
    saved: tuple[Arrays, dict[str, Any]], target: tropel.Simulation, tmp_path: Path
) -> None:
    arrays, meta = saved
    tried = 0
    for name, array in arrays.items():
        for what, wrong in wrong_arrays(array):
            if name == "collisions/obstacles" and what == "text":
                continue
            save_checkpoint(tmp_path / "c", arrays={**arrays, name: wrong}, meta=meta)
            assert_refused(target, tmp_path / "c", f"{name}: {what}")
            tried += 1
        save_checkpoint(tmp_path / "c", arrays={n: a for n, a in arrays.items() if n != name}, meta=meta)
        assert_refused(target, tmp_path / "c", f"{name} is missing")
    assert tried > 100


@pytest.mark.parametrize(
    ("name", "row", "value"),
    [
        ("agents/goal", 0, 1_000_000),
        ("agents/group", 0, 2),
        ("agents/id", 0, 5),
        ("agents/position", 0, 1e6),
        ("agents/radius", 0, 2e299),
        ("agents/dead", 0, 7),
        ("sources/waiting", 0, 6),
        ("came/count", 0, 21),
        ("cells/cell", (), 1e-300),
        ("cells/box", 1, 1e300),
        ("cells/period", 0, 1.0),
    ],
)
def test_numbers_that_kernels_would_trust_are_refused(
    saved: tuple[Arrays, dict[str, Any]], target: tropel.Simulation, tmp_path: Path, name: str, row: Any, value: float
) -> None:
    arrays, meta = saved
    wrong = arrays[name].copy()
    wrong[row] = value
    save_checkpoint(tmp_path / "c", arrays={**arrays, name: wrong}, meta=meta)
    assert_refused(target, tmp_path / "c", name)


def places(part: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Where something is in plain data."""
    if path:
        yield path
    for key in part if isinstance(part, dict) else range(len(part)) if isinstance(part, list) else ():
        yield from places(part[key], (*path, key))


def changed(meta: dict[str, Any], path: tuple[Any, ...], value: Any) -> dict[str, Any]:
    copied = json.loads(json.dumps(meta))
    inner = copied
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = value
    return copied


def test_plain_data_of_wrong_kinds_is_refused_or_harmless(
    saved: tuple[Arrays, dict[str, Any]], target: tropel.Simulation, tmp_path: Path
) -> None:
    arrays, meta = saved
    before, refused = target.state_hash(), 0
    target.save(tmp_path / "before")
    for path in places({key: value for key, value in meta.items() if key not in ("setup", "title")}):
        for value in (None, [], "x", -1, 1e308, float("nan"), 10**30, [[1]]):
            save_checkpoint(tmp_path / "c", arrays=arrays, meta=changed(meta, path, value))
            try:
                target.restore(tmp_path / "c")
            except CheckpointError:
                refused += 1
            else:
                target.step()
                target.restore(tmp_path / "before")
            assert target.state_hash() == before, (path, value)
    assert refused > 300


def test_what_a_layer_does_not_take_leaves_the_simulation_as_it_was(tmp_path: Path) -> None:
    class Forgetful(tropel.Planner):
        """A planner of somebody's own that fails when it is restored."""

        fails = False

        def direct(self, moment: Moment, out: Guidance) -> None:
            out.directions[moment.members] = 0.0

        def state(self) -> dict[str, np.ndarray]:
            return {"number": np.array(1)}

        def restore(self, stored: dict[str, np.ndarray]) -> None:
            if self.fails and stored["number"] != 1:
                raise IndexError("no such number")

    def simulation() -> tuple[tropel.Simulation, Forgetful]:
        planner = Forgetful()
        world = tropel.World(shapely.box(0, 0, 9, 9), exits={"out": shapely.box(8, 4, 9, 6)})
        return tropel.Simulation(world, tropel.Group("people", count=3), planning=planner, threads=1), planner

    sim, _ = simulation()
    sim.step()
    sim.save(tmp_path / "good")
    arrays, meta = load_checkpoint(tmp_path / "good")
    name = next(name for name in arrays if name.endswith("/number"))
    save_checkpoint(tmp_path / "c", arrays={**arrays, name: np.array(2)}, meta=meta)
    other, planner = simulation()
    planner.fails = True
    assert_refused(other, tmp_path / "c", "a layer of one's own")
    assert other.step_number == 0
    other.restore(tmp_path / "good")
    assert other.state_hash() == sim.state_hash()


# The file itself ------------------------------------------------------------------------------------------------


def sealed(path: Path, members: dict[str, bytes], *, compression: int = zipfile.ZIP_STORED) -> Path:
    """An archive with any members and the checksum that belongs to them, as every version so far has written it."""
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", compression) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
        archive.comment = b"tropel-checkpoint sha256=" + b"0" * 64
    whole = content.getvalue()[:-64]
    path.write_bytes(whole + hashlib.sha256(whole).hexdigest().encode())
    return path


def header(shape: tuple[int, ...], dtype: str = "<f8") -> bytes:
    content = io.BytesIO()
    np.lib.format.write_array_header_1_0(content, {"descr": dtype, "fortran_order": False, "shape": shape})
    return content.getvalue()


META = {"meta.json": b'{"version": 1, "meta": {}}'}


@pytest.mark.parametrize(
    ("members", "compression"),
    [
        (META | {"arrays/x.npy": header((1 << 32,))}, zipfile.ZIP_STORED),
        (META | {"arrays/x.npy": header((1 << 40, 0))}, zipfile.ZIP_STORED),
        (META | {"arrays/x.npy": header((1 << 40,), "<U0")}, zipfile.ZIP_STORED),
        (META | {"arrays/x.npy": header((-1,))}, zipfile.ZIP_STORED),
        (META | {"arrays/x.npy": header((2,), "|O") + b"\0" * 16}, zipfile.ZIP_STORED),
        (META | {"arrays/x.npy": header((1 << 20,)) + b"\0" * (8 << 20)}, zipfile.ZIP_DEFLATED),
        (META | {"arrays/x.npy": b"no array"}, zipfile.ZIP_STORED),
        ({"meta.json": b"[" * 100_000}, zipfile.ZIP_STORED),
        ({"meta.json": b"[1, 2]"}, zipfile.ZIP_STORED),
        ({"meta.json": b'{"version": 1, "meta": null}'}, zipfile.ZIP_STORED),
        ({"meta.json": b'{"version": 1}'}, zipfile.ZIP_STORED),
        ({"other.json": b"{}"}, zipfile.ZIP_STORED),
    ],
)
def test_an_archive_that_promises_more_than_it_holds_is_refused(
    tmp_path: Path, members: dict[str, bytes], compression: int
) -> None:
    path = sealed(tmp_path / "c.npz", members, compression=compression)
    with pytest.raises(CheckpointError, match=r"c\.npz is not a readable checkpoint"):
        load_checkpoint(path)


def test_a_checkpoint_of_another_version_says_what_to_do(tmp_path: Path) -> None:
    path = sealed(tmp_path / "c.npz", {"meta.json": b'{"version": 2, "meta": {}}'})
    with pytest.raises(CheckpointError, match=r"version 2, this tropel reads 1: resume with the tropel that saved it"):
        load_checkpoint(path)


def test_a_sealed_archive_of_good_members_is_read(tmp_path: Path) -> None:
    members = META | {"arrays/x.npy": header((2,)) + np.array([1.0, 2.0]).tobytes()}
    arrays, meta = load_checkpoint(sealed(tmp_path / "c.npz", members))
    assert arrays["x"].tolist() == [1.0, 2.0]
    assert meta == {}
