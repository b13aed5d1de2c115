"""The evacuation report of a recorded run, which answers what planners of venues want to know.

In reading order: `exit_widths`, for flows per metre; `PeopleSeen`, which reconstructs the table of people from frames
where the run did not record it; and `evacuation_report` with the report itself.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import shapely
from numpy.typing import NDArray

from tropel.analysis.crowd_maps import CROWDED, CrowdMaps, CrowdMapsBuilder
from tropel.analysis.voronoi import VoronoiMaps, VoronoiMapsBuilder
from tropel.errors import RecordingError
from tropel.foundation.arguments import Length, checked_arguments
from tropel.recording import FrameData, People, Scene, Trajectory
from tropel.recording.people import DIED, LEFT, NOWHERE, REMOVED, THERE, flow_rate, time_by_share

if TYPE_CHECKING:
    from rich.table import Table


# An exit is an area, and people enter it over those of its sides that are not walls. Its width is the straight line
# across that opening, from one end to the other: for a strip along a wall its length, whatever its depth; for the end
# of a corridor the width of the corridor; for an exit in a corner the diagonal. A free-standing exit is entered from
# all around, and its width is its circumference.

#: Sides closer to a wall than this lie on it [m].
_ON_WALL = 1e-6


def exit_widths(scene: Scene) -> dict[str, float]:
    """The width of every exit of a scene [m]; NaN for an exit enclosed by walls on all sides."""
    walls = [shapely.from_wkt(scene.walls_wkt)] if scene.walls_wkt else []
    floor = shapely.from_wkt(scene.walkable_wkt) if scene.walkable_wkt else None
    if floor is not None:
        walls.append(floor.boundary)
    solid = shapely.union_all(walls).buffer(_ON_WALL) if walls else shapely.Polygon()
    shapely.prepare(solid)
    return {name: _width(shapely.from_wkt(wkt), floor, solid) for name, wkt in scene.exits.items()}


def _width(area: shapely.Geometry, floor: shapely.Geometry | None, solid: shapely.Geometry) -> float:
    sides = area.boundary if floor is None else area.boundary.intersection(floor)
    opening = shapely.line_merge(shapely.union_all(sides.difference(solid)))
    spans = [
        part.length if part.is_closed else math.dist(part.coords[0], part.coords[-1])
        for part in shapely.get_parts(opening)
        if part.geom_type == "LineString" and part.length > 4 * _ON_WALL
    ]
    # Rounded to a tenth of a millimetre, because the ends lack the part that lies on the wall.
    return round(float(sum(spans)), 4) if spans else math.nan


# Runs that were killed, and files of other programs, have no table of people, so frames have to tell. A person came in
# the first frame that shows them, and had left by the first frame that no longer does, through the exit nearest to
# where they were last seen. People removed by an event count as having left. Deaths are recorded when they happen.

Floats = NDArray[np.float64]


class PeopleSeen:
    """Takes one frame after another and keeps one row per person."""

    def __init__(self, dim: int) -> None:
        self._id = np.zeros(0, dtype=np.int64)
        self._group = np.zeros(0, dtype=np.int32)
        self._came = np.zeros(0)
        #: NaN while the person is in the newest frame.
        self._gone = np.zeros(0)
        self._place = np.zeros((0, dim))

    def add(self, time: float, frame: FrameData) -> None:
        self._make_room(np.setdiff1d(frame.id, self._id, assume_unique=True), time)
        row = np.searchsorted(self._id, frame.id)
        missing = np.ones(len(self._id), dtype=bool)
        missing[row] = False
        self._gone[missing & np.isnan(self._gone)] = time
        self._gone[row] = np.nan
        self._group[row] = frame.group
        self._place[row] = frame.position

    def people(self, scene: Scene, deaths: Mapping[str, NDArray[Any]]) -> People:
        """The rows; `deaths` are the recorded deaths, with `id` and `time` [s]."""
        left = ~np.isnan(self._gone)
        places, distance = _distances(scene, self._place[left])
        through = np.full(len(self._id), NOWHERE, dtype=np.int32)
        if places:
            through[left] = np.argmin(distance, axis=0)
        fate = np.where(left, LEFT, THERE).astype(np.int8)
        known = np.isin(deaths["id"], self._id)
        rows = np.searchsorted(self._id, deaths["id"][known])
        fate[rows], through[rows], self._gone[rows] = DIED, NOWHERE, deaths["time"][known]
        return People(
            id=self._id,
            group=self._group,
            came=self._came,
            gone=self._gone,
            fate=fate,
            through=through,
            places=places,
        )

    def _make_room(self, newcomers: NDArray[np.int64], time: float) -> None:
        count = len(newcomers)
        if count == 0:
            return
        # Merged in the order of ids; newcomers nearly always come after all others.
        ids = np.concatenate([self._id, newcomers])
        order = np.argsort(ids, kind="stable")
        self._id = ids[order]
        self._group = np.concatenate([self._group, np.zeros(count, dtype=np.int32)])[order]
        self._came = np.concatenate([self._came, np.full(count, time)])[order]
        self._gone = np.concatenate([self._gone, np.full(count, np.nan)])[order]
        self._place = np.concatenate([self._place, np.zeros((count, self._place.shape[1]))])[order]


def _distances(scene: Scene, place: Floats) -> tuple[tuple[str, ...], Floats]:
    """Names of the exits (of the targets if there are no exits) and their distances (names, N) from places [m]."""
    if scene.exits:
        points = shapely.points(place[:, :2])
        return tuple(scene.exits), np.array(
            [shapely.distance(shapely.from_wkt(e), points) for e in scene.exits.values()]
        )
    targets = {name: entry["position"] for name, entry in scene.targets.items() if "position" in entry}
    return tuple(targets), np.array([np.linalg.norm(place - np.array(p), axis=1) for p in targets.values()])


Ints = NDArray[np.int64]

#: Shares of people for which a report gives times [%].
PERCENTS = (50, 90, 95, 100)
#: The name of the place people left through if it is not known.
UNKNOWN_PLACE = "unknown"


@dataclass(frozen=True, kw_only=True)
class ExitUse:
    """How an exit, or a target that takes people out, was used. Missing numbers are NaN."""

    name: str
    count: int
    share: float  #: of everyone who left, 0 to 1
    first: float  #: time at which the first person left there [s]
    last: float
    mean: float
    flow: float  #: persons per second, between the first and the last
    width: float  #: of the opening [m]; NaN for targets
    specific_flow: float  #: persons per second and metre of width


@dataclass(frozen=True, eq=False, kw_only=True)
class EvacuatedCurve:
    """How many people had left or died at each time at which a number changed, from 0 s to the end of the run."""

    times: Floats
    by_exit: dict[str, Ints]
    total: Ints
    died: Ints


@dataclass(frozen=True, eq=False, kw_only=True)
class EvacuationReport:
    """Who left when and where, how long each person needed, and where the crowd was dense."""

    title: str
    groups: tuple[str, ...]
    end: float  #: of the run [s]
    people: People
    #: Whether the run itself recorded who left when; otherwise it is taken from the frames (`PeopleSeen`).
    exact: bool
    exits: tuple[ExitUse, ...]
    evacuated: EvacuatedCurve
    maps: CrowdMaps
    voronoi: VoronoiMaps | None = None  #: None in 3D and where space repeats

    @property
    def agents(self) -> int:
        return len(self.people)

    @property
    def left(self) -> int:
        return self._count(LEFT)

    @property
    def died(self) -> int:
        return self._count(DIED)

    @property
    def remaining(self) -> int:
        return self._count(THERE)

    @property
    def removed(self) -> int:
        return self._count(REMOVED)

    @property
    def needed(self) -> Floats:
        """Seconds from arriving to leaving, per person; NaN for people who did not leave."""
        return np.where(self.people.fate == LEFT, self.people.gone - self.people.came, np.nan)

    def needed_by(self, percent: float) -> float:
        """The time within which this percentage of the people who left got out [s]; NaN if none left."""
        needed = self.needed[~np.isnan(self.needed)]
        return time_by_share(needed, total=len(needed), share=percent / 100.0)

    def out_by(self, percent: float) -> float:
        """When this percentage of all people had left [s]; NaN if that many never did."""
        gone = self.people.gone[self.people.fate == LEFT]
        return time_by_share(gone, total=self.agents, share=percent / 100.0)

    def table(self) -> Table:
        """A table for the terminal."""
        from rich.table import Table

        table = Table(title=self.title or "run", show_header=False, title_justify="left")
        table.add_column(style="bold")
        table.add_column(justify="right")
        table.add_row("agents", f"{self.agents:,}")
        for name, count in (("left", self.left), ("died", self.died), ("removed", self.removed)):
            if count or name == "left":
                table.add_row(name, f"{count:,} ({_percent(count, self.agents)})")
        if self.remaining:
            table.add_row("still there", f"{self.remaining:,} at {self.end:.1f} s")
        for use in self.exits:
            table.add_row(f"  through {use.name}", _use_in_words(use))
        if self.left:
            head = " / ".join(f"{percent}" for percent in PERCENTS)
            table.add_row(f"{head} % out at", " / ".join(_seconds(self.out_by(p)) for p in PERCENTS) + " s")
            table.add_row(f"{head} % needed", " / ".join(_seconds(self.needed_by(p)) for p in PERCENTS) + " s")
        maps = self.maps
        table.add_row("densest cell", f"{maps.peak_density.max():.2g} / m² (cells of {maps.cell:g} m)")
        table.add_row(f"above {CROWDED:g} / m²", f"{maps.crowded_area.max():.3g} m² at most")
        table.add_row("strongest flow", f"{maps.flow_strength.max():.2g} / (m s), mean of the run")
        if self.voronoi is not None and self.voronoi.people.any():
            each = self.voronoi
            cut = "" if each.cut_off is None else f", cut off at {each.cut_off:g} m"
            table.add_row("Voronoi density", f"{each.mean:.2g} / m² per person on average, {each.highest:.2g} at most")
            table.add_row("", f"{each.frames_in_words}{cut}")
        if maps.outside:
            table.add_row("not on the map", f"{maps.outside:,} recorded positions")
        return table

    def _count(self, fate: int) -> int:
        return int(np.count_nonzero(self.people.fate == fate))


@checked_arguments
def evacuation_report(
    trajectory: Trajectory,
    *,
    cell: float = 1.0,
    cut_off: Length | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> EvacuationReport:
    """Read a recorded run, frame by frame, and report on it; `cell` is the side of the cells of the maps [m].

    `cut_off` [m] limits how far the Voronoi cell of a person reaches. `progress` is called with the number of frames
    done and the total.
    """
    if len(trajectory.frames) == 0:
        raise RecordingError(f"{trajectory.path} has no frames: its run never started, so there is nothing to report")
    scene = trajectory.scene
    people = trajectory.people()
    seen = PeopleSeen(scene.dim)
    builder = CrowdMapsBuilder(scene, cell=cell)
    voronoi, used = _voronoi(trajectory, cell, cut_off)
    for done, number in enumerate(trajectory.frames.tolist(), start=1):
        frame = trajectory.frame(number)
        builder.add(trajectory.time(number), frame)
        if voronoi is not None and number in used:
            voronoi.add(trajectory.time(number), frame.position)
        if people is None:
            seen.add(trajectory.time(number), frame)
        if progress is not None:
            progress(done, len(trajectory.frames))
    exact = people is not None
    people = people if people is not None else seen.people(scene, trajectory.deaths())
    if len(people) == 0:
        raise RecordingError(f"{trajectory.path} has no agents in any frame, so there is nothing to report")
    end = max(trajectory.time(int(trajectory.frames[-1])), float((trajectory.summary or {}).get("simulated_time", 0.0)))
    times = _times_by_exit(people, tuple(scene.exits))
    return EvacuationReport(
        title=scene.title or trajectory.path.stem,
        groups=tuple(scene.groups),
        end=end,
        people=people,
        exact=exact,
        exits=_uses(times, exit_widths(scene)),
        evacuated=_curve(times, people, end),
        maps=builder.result(),
        voronoi=None if voronoi is None else voronoi.result(frames=len(trajectory.frames)),
    )


def _voronoi(
    trajectory: Trajectory, cell: float, cut_off: float | None
) -> tuple[VoronoiMapsBuilder | None, frozenset[int]]:
    """What gathers Voronoi densities, and the frames to give it; None where they have no meaning."""
    scene, numbers = trajectory.scene, trajectory.frames
    if scene.dim == 3 or any(scene.period):
        return None, frozenset()
    builder = VoronoiMapsBuilder(scene, cell=cell, cut_off=cut_off)
    people = max(len(trajectory.frame(int(numbers[share])).id) for share in (0, len(numbers) // 2, len(numbers) - 1))
    return builder, frozenset(numbers[builder.frames_to_use(len(numbers), people)].tolist())


def _times_by_exit(people: People, exits: tuple[str, ...]) -> dict[str, Floats]:
    """Sorted departure times of every exit, and of every other place people left through."""
    names = (*people.places, UNKNOWN_PLACE)
    left = people.fate == LEFT
    times = {name: np.zeros(0) for name in exits}
    for number in np.unique(people.through[left]).tolist():
        times[names[number]] = np.sort(people.gone[left & (people.through == number)])
    return times


def _uses(times: dict[str, Floats], widths: dict[str, float]) -> tuple[ExitUse, ...]:
    total = sum(map(len, times.values()))
    uses = []
    for name, gone in times.items():
        flow, width = flow_rate(gone), widths.get(name, math.nan)
        use = ExitUse(
            name=name,
            count=len(gone),
            share=len(gone) / total if total else 0.0,
            first=float(gone[0]) if len(gone) else math.nan,
            last=float(gone[-1]) if len(gone) else math.nan,
            mean=float(gone.mean()) if len(gone) else math.nan,
            flow=flow,
            width=width,
            specific_flow=flow / width,
        )
        uses.append(use)
    return tuple(uses)


def _curve(by_exit: dict[str, Floats], people: People, end: float) -> EvacuatedCurve:
    died = np.sort(people.gone[people.fate == DIED])
    gone = np.sort(np.concatenate([np.zeros(0), *by_exit.values()]))
    times = np.unique(np.concatenate([[0.0], gone, died, [end]]))
    return EvacuatedCurve(
        times=times,
        by_exit={name: np.searchsorted(each, times, side="right") for name, each in by_exit.items()},
        total=np.searchsorted(gone, times, side="right"),
        died=np.searchsorted(died, times, side="right"),
    )


def _percent(count: int, total: int) -> str:
    return f"{100 * count / total:.0f} %"


def _seconds(time: float) -> str:
    return "–" if math.isnan(time) else f"{time:.1f}"


def _use_in_words(use: ExitUse) -> str:
    words = f"{use.count:,} ({100 * use.share:.0f} %)"
    if not math.isnan(use.flow):
        words += f", {use.flow:.2f} / s"
    if not math.isnan(use.specific_flow):
        words += f", {use.specific_flow:.2f} / (m s) over {use.width:.2f} m"
    return words
