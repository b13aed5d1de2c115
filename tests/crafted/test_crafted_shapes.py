"""Shapes and pictures made to break their readers: one line that says why, and no crash, no memory, no time."""

from __future__ import annotations

import contextlib
import resource
import struct
import subprocess
import sys
import zlib
from pathlib import Path

import numpy as np
import pytest

import tropel
from tropel.errors import GeometryError, ScenarioError, TropelError
from tropel.scenario import load_scenario
from tropel.scenario.loading import parse_scenario
from tropel.world import shapes
from tropel.world.maps import outline, read_plan
from tropel.world.shapes import DEEPEST, LARGEST_LENGTH, read_shape_file

DEEP = {
    "deep.wkt": "GEOMETRYCOLLECTION (" * 300_000 + "POINT (0 0)" + ")" * 300_000,
    "open.wkt": "POLYGON " + "(" * 300_000,
    "deep.geojson": '{"type": "GeometryCollection", "geometries": [' * 100_000,
    "coordinates.geojson": '{"type": "Polygon", "coordinates": ' + "[" * 900 + "]" * 900 + "}",
    "features.geojson": '{"type": "Feature", "geometry": ' * 900 + "null" + "}" * 900,
    "array.geojson": "[" * 900 + "]" * 900,
}
_READ = """
import sys
from pathlib import Path
from tropel.errors import GeometryError
from tropel.world import shapes
from tropel.world.shapes import read_shape_file
try:
    shapes.polygon(read_shape_file(Path(sys.argv[1])), "hall")
except GeometryError as error:
    print(error)
"""


@pytest.mark.parametrize("name", DEEP)
def test_deep_nesting_does_not_crash_the_interpreter(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text(DEEP[name] if "geometries" not in DEEP[name] else DEEP[name] + "]}" * 100_000)
    limit = 4 << 30
    done = subprocess.run(
        [sys.executable, "-c", _READ, str(tmp_path / name)],
        capture_output=True,
        text=True,
        timeout=120,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (limit, limit)),
        check=False,
    )
    assert done.returncode == 0, done.stderr[-500:]
    assert done.stdout.count("\n") == 1
    assert "nested" in done.stdout or "object" in done.stdout


def test_nesting_that_shapes_need_is_read() -> None:
    collection = "GEOMETRYCOLLECTION (MULTIPOLYGON (((0 0, 4 0, 4 4, 0 0), (1 1, 2 1, 2 2, 1 1))))"
    with pytest.raises(GeometryError, match="expected a polygon, got a GeometryCollection"):
        shapes.polygon(collection, "hall")
    told = {"type": "MultiPolygon", "coordinates": [[[[0, 0], [4, 0], [4, 4], [0, 0]]]]}
    inner = {"type": "FeatureCollection", "features": [{"type": "Feature", "properties": {}, "geometry": told}]}
    assert shapes.polygon(inner, "hall").area == 8.0
    assert DEEPEST >= 8


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("CURVEPOLYGON (CIRCULARSTRING (0 0, 4 0, 4 4, 0 4, 0 0))", "known kind.*CURVEPOLYGON"),
        ("GEOMETRYCOLLECTION (CURVEPOLYGON (CIRCULARSTRING (0 0, 4 0, 4 4, 0 4, 0 0)))", "curves"),
        ("MULTISURFACE EMPTY", "known kind"),
        ("TIN EMPTY", "known kind"),
        ("", "empty"),
        ("POLYGON ((0 0, 9 0", "not a WKT text"),
        ("POLYGON ((0 0, 2e299 0, 2e299 2e299, 0 0))", r"point 1 .* between -1e\+09 and 1e\+09 m"),
    ],
)
def test_wkt_that_is_not_known_says_so_in_one_line(text: str, said: str) -> None:
    with pytest.raises(GeometryError, match=f"hall: .*{said}") as refused:
        shapes.polygon(text, "hall")
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    "told",
    [
        '{"type": "FeatureCollection", "features": 5}',
        '{"type": "FeatureCollection", "features": ["x"]}',
        '{"type": ["Polygon"], "coordinates": {}}',
        '{"type": "Polygon", "coordinates": [[[0, 0], [1e999, 0], [NaN, 1]]]}',
        '{"type": "Feature", "geometry": 7}',
        "[1, 2]",
        "7",
        '"POLYGON"',
    ],
)
def test_geojson_of_the_wrong_types_is_refused(tmp_path: Path, told: str) -> None:
    (tmp_path / "hall.geojson").write_text(told)
    with pytest.raises(GeometryError):
        shapes.polygon(read_shape_file(tmp_path / "hall.geojson"), "hall")


_HALL = "walkable = {box = [0, 0, 9, 9]}\n"
_MOVING = _HALL + "[world.obstacles.o]\nradius = 1\nmotion = "
_GROUP = 'name = "x"\n[[groups]]\nname = "a"\ncount = 1\n'


@pytest.mark.parametrize(
    ("world", "key"),
    [
        ("walkable = {circle = [0, 0, 2e299]}", "circle"),
        ("walkable = {box = [0, 0, 2e299, 1]}", "box"),
        ("bounds = [0, 0, 1e300, 1]", "bounds"),
        ("box = {low = [0, 0, 0], high = [2e299, 9, 9]}", "high"),
        (_HALL + "holes = [{circle = [1, 1, 2e299]}]", "holes"),
        (_HALL + "[world.obstacles.o]\nradius = 2e299\nposition = [1, 1]", "radius"),
        (_HALL + "[world.obstacles.o]\nradius = 1\nposition = [2e299, 1]", "position"),
        (_MOVING + "{kind = 'orbit', center = [1, 1], radius = 2e299, period = 1}", "motion"),
        (_MOVING + "{kind = 'orbit', center = [1, 1], radius = 1, period = 1e-320}", "motion"),
        (_MOVING + "{kind = 'waypoints', points = [[1, 1], [2, 2]], speed = 1e308}", "speed"),
        (_HALL + "[world.targets.t]\nradius = 2e299\nposition = [1, 1]", "radius"),
        (_HALL + "[world.doors.d]\nline = [[0, 0], [2e299, 1]]", "line"),
        ("box = {low = [0, 0, 0], high = [9, 9, 9]}\n[world.columns.c]\nradius = 1e-300\nplaces = [[1, 1]]", "columns"),
        (_HALL + "[hazards.h]\ninner = 2e299\nposition = [1, 1]", "hazards"),
        (_HALL + "[hazards.h]\ninner = 1\ngrowth = 1e308\nposition = [1, 1]", "hazards"),
    ],
)
def test_huge_numbers_are_refused_with_line_and_key(tmp_path: Path, world: str, key: str) -> None:
    text = f"{_GROUP}[world]\n{world}\n"
    with pytest.raises(ScenarioError, match=f"s.toml, line .*{key}"):
        parse_scenario(text, source="s.toml", folder=tmp_path).build(threads=1)


def test_bodies_of_huge_radius_are_refused(tmp_path: Path) -> None:
    text = f"{_GROUP}radius = 2e299\n[world]\n{_HALL}"
    with pytest.raises(ScenarioError, match=r"groups\[0\]\.radius = 2e\+299: must be .*at most 1e\+09 m"):
        parse_scenario(text, source="s.toml", folder=tmp_path).build(threads=1)


def test_the_largest_world_can_be_built() -> None:
    world = tropel.World(bounds=[-LARGEST_LENGTH, -LARGEST_LENGTH, LARGEST_LENGTH, LARGEST_LENGTH])
    assert np.isfinite(world.bounds).all()
    with pytest.raises(GeometryError, match="bounds"):
        tropel.World(bounds=[0, 0, 1.01 * LARGEST_LENGTH, 1])


def test_layers_that_are_no_table_name_the_key(tmp_path: Path) -> None:
    text = f'{_GROUP}[planning]\nmodel = "path_plans"\nlayers = "x"\n[world]\n{_HALL}'
    with pytest.raises(ScenarioError, match=r"line 5: planning: PathPlans: layers must be a table by name.*'x'"):
        parse_scenario(text, source="s.toml", folder=tmp_path).build(threads=1)


# Pictures and maps ----------------------------------------------------------------------------------------------


def png(path: Path, width: int, height: int, pixels: bytes) -> None:
    def chunk(kind: bytes, content: bytes) -> bytes:
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    path.write_bytes(
        b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(pixels)) + chunk(b"IEND", b"")
    )


@pytest.mark.parametrize("side", [8192, 100_000, 2**31 - 1])
def test_a_picture_that_claims_gigabytes_is_refused_before_it_is_decoded(tmp_path: Path, side: int) -> None:
    png(tmp_path / "bomb.png", side, side, b"\0" * 1000)
    with pytest.raises(GeometryError, match=r"bomb\.png: .*(too many|pixels)"):
        read_plan(tmp_path / "bomb.png", scale=0.1)


def test_a_picture_that_ends_early_is_refused(tmp_path: Path) -> None:
    png(tmp_path / "short.png", 100, 100, b"\0" * 1000)
    with pytest.raises(GeometryError, match=r"short\.png"):
        read_plan(tmp_path / "short.png", scale=0.1)


def test_a_picture_flipped_anywhere_is_read_or_refused(tmp_path: Path) -> None:
    png(tmp_path / "plan.png", 8, 8, (b"\0" + b"\xff" * 24) * 8)
    good = (tmp_path / "plan.png").read_bytes()
    for place in range(8 * len(good)):
        content = bytearray(good)
        content[place // 8] ^= 1 << place % 8
        (tmp_path / "plan.png").write_bytes(content)
        with contextlib.suppress(TropelError):
            read_plan(tmp_path / "plan.png", scale=0.1)


def test_pictures_are_seen_alike_whatever_part_of_them_is_looked_at_together(monkeypatch: pytest.MonkeyPatch) -> None:
    from tropel.world import maps

    pixels = np.random.default_rng(3).integers(0, 256, (37, 11, 4), dtype=np.uint8)
    whole = maps._where(pixels, lambda seen: seen.sum(axis=2) > 1.5)
    monkeypatch.setattr(maps, "_PIXELS_AT_ONCE", 30)
    assert (maps._where(pixels, lambda seen: seen.sum(axis=2) > 1.5) == whole).all()


def test_a_map_of_noise_is_refused_before_its_rings_are_followed(monkeypatch: pytest.MonkeyPatch) -> None:
    from tropel.world import maps

    board = np.indices((20, 20)).sum(axis=0) % 2 == 0
    monkeypatch.setattr(maps, "MOST_EDGES", 799)
    with pytest.raises(GeometryError, match="800 edges"):
        outline(board)


# Versions -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "said"), [("format = 2", "newer tropel: upgrade"), ("format = 0", "write"), ('format = "1"', "write")]
)
def test_a_scenario_of_another_format_is_refused_with_a_remedy(tmp_path: Path, line: str, said: str) -> None:
    (tmp_path / "s.toml").write_text(f"\n{line}\nsomething_new = 3\n")
    with pytest.raises(ScenarioError, match=rf"s\.toml, line 2: format = .*reads scenario files of format 1; .*{said}"):
        load_scenario(tmp_path / "s.toml")


def test_a_scenario_may_say_its_format() -> None:
    text = f"format = 1\n{_GROUP}[world]\n{_HALL}"
    assert parse_scenario(text, source="s.toml", folder=Path()).spec.format == 1


@pytest.mark.parametrize("value", ['"x"', "{a = 1}", '[["x"]]', "[[1.0], [1.0, 2.0]]"])
def test_terrain_that_is_no_numbers_names_the_key(tmp_path: Path, value: str) -> None:
    text = f'{_GROUP}[planning]\nmodel = "flow_field"\nterrain = {value}\n[world]\n{_HALL}'
    with pytest.raises(ScenarioError, match="line 5: planning: FlowField: terrain must be a factor per cell"):
        parse_scenario(text, source="s.toml", folder=tmp_path).build(threads=1)
