"""Drawing agents: instanced meshes for the living, one mesh for the dead. Positions are sent as one array per mesh."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tropel.pictures import style
from tropel.viewer.frame import Frame, in_space
from tropel.viewer.shapes3d import instance_colours, no_turns, rgb_array, unit_box, unit_prism

Colours = NDArray[np.uint8]

#: Spare rows are drawn with size 0, because a node that changes its number of instances is created again.
_ROOM = 1.25
_LEAST_ROOM = 16
#: Most instances in one mesh. Beyond 50 000 viser's page keeps a tree of them, which fails when many are in one place,
#: as the spare rows are.
_MOST_TOGETHER = 40_000
#: Larger crowds are drawn with few triangles, so that a page without a graphics card can keep up.
_MANY = 5_000
#: Bodies are drawn at least this large, as a share of the world's extent, so that they are visible at all.
_LEAST_SIZE = 0.0015


class AgentsDrawing:
    """Keeps the agents on a page up to date."""

    def __init__(self, server: Any, *, dim: int, extent: float) -> None:
        self._server = server
        self._fine, self._coarse = (_walker(), _wedge()) if dim == 2 else (_dart(), _splinter())
        self._mesh = self._fine
        self._least = _LEAST_SIZE * extent
        self._parts: list[_Part] = []
        self._dead: tuple[int, ...] = ()

    def draw(self, frame: Frame, colours: Colours) -> None:
        """Draw a frame, with a colour (red, green, blue) per agent."""
        living = ~frame.dead
        rows = slice(None) if living.all() else living
        self._draw_living(frame, rows, colours[rows])
        self._draw_dead(frame)

    def _draw_living(self, frame: Frame, rows: Any, colours: Colours) -> None:
        places, turns = in_space(frame.position[rows]), turned_to(frame.heading[rows])
        sizes = np.maximum(frame.radius[rows], self._least).astype(np.float32)
        shown = instance_colours(colours)
        if len(places) > _MANY or len(places) < _MANY // 2:
            self._mesh = self._coarse if len(places) > _MANY else self._fine
        needed = max(1, -(-len(places) // _MOST_TOGETHER))
        while len(self._parts) < needed:
            self._parts.append(_Part(self._server, f"/agents/living {len(self._parts)}"))
        # Sent together, otherwise a page might draw new positions with old colours.
        with self._server.atomic():
            for number, part in enumerate(self._parts):
                some = slice(number * _MOST_TOGETHER, (number + 1) * _MOST_TOGETHER)
                part.draw(self._mesh, places[some], turns[some], sizes[some], shown[some])

    def _draw_dead(self, frame: Frame) -> None:
        """Draw dark crosses on the ground: dead agents differ by shape, not only by colour."""
        dead = np.flatnonzero(frame.dead)
        if (who := tuple(frame.id[dead].tolist())) == self._dead:
            return
        self._dead = who
        if not len(dead):
            self._server.scene.remove_by_name("/agents/dead")
            return
        places = np.repeat(in_space(frame.position[dead]), 2, axis=0)
        reach = np.repeat(np.maximum(frame.radius[dead], self._least), 2)
        half = np.tile([np.pi / 8.0, -np.pi / 8.0], len(dead))
        zero = np.zeros(len(half))
        turns = np.column_stack([np.cos(half), zero, zero, np.sin(half)])
        self._server.scene.add_batched_meshes_simple(
            "/agents/dead",
            *unit_box(),
            batched_wxyzs=turns.astype(np.float32),
            batched_positions=places,
            batched_scales=(reach[:, None] * [2.4, 0.6, 0.5]).astype(np.float32),
            batched_colors=instance_colours(rgb_array([style.DEAD]))[0],
            lod="off",
            cast_shadow=False,
            receive_shadow=False,
        )


class _Part:
    """Some of the living agents, as one node."""

    def __init__(self, server: Any, name: str) -> None:
        self._server = server
        self._name = name
        self._mesh: Any = None
        self._node: Any = None
        self._room = 0
        self._sizes: NDArray[np.float32] | None = None
        self._colours: Colours | None = None

    def draw(self, mesh: Any, places: Any, turns: Any, sizes: Any, colours: Colours) -> None:
        count = len(places)
        fits = _LEAST_ROOM <= count <= self._room <= 3 * count + _LEAST_ROOM or count <= self._room == _LEAST_ROOM
        if mesh is not self._mesh or not fits:
            self._mesh = mesh
            self._make_room(min(max(_LEAST_ROOM, int(_ROOM * count)), _MOST_TOGETHER))
        self._node.batched_positions = self._filled(places, 0.0)
        self._node.batched_wxyzs = self._filled(turns, 1.0)
        # Send only what has changed.
        full_sizes = self._filled(sizes, 0.0)
        if self._sizes is None or not np.array_equal(full_sizes, self._sizes):
            self._node.batched_scales = self._sizes = full_sizes
        full = self._filled(colours, 0)
        if self._colours is None or not np.array_equal(full, self._colours):
            self._node.batched_colors = self._colours = full

    def _make_room(self, room: int) -> None:
        self._room = room
        self._sizes = self._colours = None
        self._node = self._server.scene.add_batched_meshes_simple(
            self._name,
            *self._mesh,
            batched_wxyzs=no_turns(room),
            batched_positions=np.zeros((room, 3), dtype=np.float32),
            batched_scales=np.zeros(room, dtype=np.float32),
            batched_colors=np.zeros((room, 3), dtype=np.uint8),
            lod="off",
            flat_shading=True,
            cast_shadow=False,
            receive_shadow=False,
        )

    def _filled(self, values: NDArray[Any], rest: float) -> NDArray[Any]:
        """Values, padded with spare rows."""
        full = np.full((self._room, *values.shape[1:]), rest, dtype=values.dtype)
        full[: len(values)] = values
        return full


def turned_to(heading: NDArray[np.float64]) -> NDArray[np.float32]:
    """The shortest rotations of the x axis to headings, as quaternions (w, x, y, z)."""
    ahead = in_space(heading)
    turns = np.column_stack([1.0 + ahead[:, 0], np.zeros(len(ahead)), -ahead[:, 2], ahead[:, 1]])
    backwards = turns[:, 0] < 1e-6
    turns[backwards] = [0.0, 0.0, 0.0, 1.0]
    return (turns / np.linalg.norm(turns, axis=1, keepdims=True)).astype(np.float32)


def _walker() -> tuple[NDArray[np.float32], NDArray[np.uint32]]:
    """A person seen from above: a low round body of radius 1 with a nose."""
    body, faces = unit_prism(10, top=0.75)
    body = body * np.array([1.0, 1.0, 2.2], dtype=np.float32)
    first = len(body)
    nose = np.array([(1.55, 0.0, 1.1), (0.55, 0.6, 1.1), (0.55, -0.6, 1.1), (0.6, 0.0, 2.3)], dtype=np.float32)
    beak = np.array([(0, 1, 3), (0, 3, 2), (0, 2, 1)], dtype=np.uint32) + np.uint32(first)
    return np.concatenate([body, nose]), np.concatenate([faces, beak])


def _dart() -> tuple[NDArray[np.float32], NDArray[np.uint32]]:
    """A flying body that points along x."""
    angle = np.linspace(0.0, 2.0 * np.pi, 6, endpoint=False)
    ring = np.column_stack([np.full(6, -0.9), np.cos(angle), np.sin(angle)])
    vertices = np.concatenate([ring, [[1.7, 0.0, 0.0], [-0.5, 0.0, 0.0]]]).astype(np.float32)
    k = np.arange(6)
    following = (k + 1) % 6
    front = np.stack([k, following, np.full(6, 6)], axis=1)
    back = np.stack([following, k, np.full(6, 7)], axis=1)
    return vertices, np.concatenate([front, back]).astype(np.uint32)


def _wedge() -> tuple[NDArray[np.float32], NDArray[np.uint32]]:
    """A person in a large crowd: three faces that rise from the ground and point along x."""
    corners = [(1.5, 0.0, 0.0), (-0.85, 0.95, 0.0), (-0.85, -0.95, 0.0), (-0.3, 0.0, 2.0)]
    return np.array(corners, dtype=np.float32), np.array([(0, 1, 3), (1, 2, 3), (2, 0, 3)], dtype=np.uint32)


def _splinter() -> tuple[NDArray[np.float32], NDArray[np.uint32]]:
    """A flying body in a large crowd: four faces."""
    corners = [(1.7, 0.0, 0.0), (-0.9, 0.0, 1.0), (-0.9, -0.87, -0.5), (-0.9, 0.87, -0.5)]
    faces = [(0, 1, 2), (0, 2, 3), (0, 3, 1), (1, 3, 2)]
    return np.array(corners, dtype=np.float32), np.array(faces, dtype=np.uint32)
