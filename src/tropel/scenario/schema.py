"""The contents of a scenario file, as models. The JSON schema of `tropel schema` is made from them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal, Union

import shapely
from pydantic import BaseModel, ConfigDict, Field, create_model, model_validator

from tropel.agents.personal_fields import PersonalFields, Value
from tropel.agents.squads.squad import Squad
from tropel.agents.tasks.task import Task
from tropel.events.ground import HazardFields
from tropel.foundation.field_types import (
    EndTime,
    Finite,
    NotNegative,
    NotNegativeWhole,
    PositiveFinite,
    PositiveWhole,
    Time,
    WholeNumber,
)
from tropel.registry import DECISIONS, ENVIRONMENTS, EVENTS, HABITS, MODELS, PLANNERS, SHARINGS
from tropel.run.budget import Budget
from tropel.scenario.knowledge_table import KnowledgeSpec
from tropel.scenario.layer_tables import layer_tables
from tropel.world.maps import FloorPlan, read_plan
from tropel.world.motion import Motion, PointField
from tropel.world.shapes import Coordinate, Length, PositiveLength, read_shape_file

XY = tuple[Coordinate, Coordinate]
_Corners = tuple[Coordinate, Coordinate, Coordinate, Coordinate]

#: Version of the format of scenario files. A file in a later format may contain entries that would be misread here.
FORMAT = 1


class Model(BaseModel):
    """A part of a scenario file; unknown keys are errors."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Shape(Model):
    """A polygon, given in one of these ways: box, polygon (with holes), circle, WKT text, or a WKT or GeoJSON file."""

    box: Annotated[_Corners | None, Field(description="x_min, y_min, x_max, y_max")] = None
    polygon: Annotated[list[XY], Field(min_length=3)] | None = None
    holes: list[list[XY]] = []
    circle: Annotated[
        tuple[Coordinate, Coordinate, PositiveLength] | None,
        Field(description="centre x, centre y, radius; becomes a 32-gon"),
    ] = None
    wkt: str | None = None
    file: Annotated[str | None, Field(description="a .wkt or .geojson file, relative to the scenario file")] = None

    @model_validator(mode="after")
    def _said_once(self) -> Shape:
        given = [key for key in ("box", "polygon", "circle", "wkt", "file") if getattr(self, key) is not None]
        if len(given) != 1:
            raise ValueError("give exactly one of box, polygon, circle, wkt or file for a shape")
        if self.holes and self.polygon is None:
            raise ValueError("holes need a polygon; give them together with polygon")
        if self.box is not None and not (self.box[0] < self.box[2] and self.box[1] < self.box[3]):
            raise ValueError(f"box must be [x_min, y_min, x_max, y_max]; {list(self.box)} has no area")
        return self

    def geometry(self, folder: Path) -> Any:
        """The shape in a form that `World` takes."""
        if self.box is not None:
            return shapely.box(*self.box)
        if self.polygon is not None:
            return shapely.Polygon(self.polygon, self.holes)
        if self.circle is not None:
            x, y, radius = self.circle
            return shapely.Point(x, y).buffer(radius, quad_segs=8)
        if self.wkt is not None:
            return self.wkt
        return read_shape_file(folder / str(self.file))


class BoxSpec(Model):
    """A box between two corners, in 3D."""

    low: tuple[Coordinate, Coordinate, Coordinate]
    high: tuple[Coordinate, Coordinate, Coordinate]


Periodic = Annotated[
    bool | Annotated[str, Field(pattern="^[xyz]{1,3}$")],
    Field(description='join opposite sides: all of them, or those across the axes it names, such as "x"'),
]


class DoorSpec(Model):
    """A line that agents cannot cross while it is closed."""

    line: Annotated[list[XY], Field(min_length=2)]
    open: bool = False


class ObstacleSpec(Model):
    """A round obstacle, static or moving."""

    radius: PositiveLength
    position: PointField | None = None
    motion: Motion | None = None
    type: Annotated[str, Field(description="a type such as fire; models may treat types differently")] = "obstacle"


class HazardSpec(HazardFields):
    """Fire, rubble, an explosion: agents within its inner radius die, and up to the outer radius they avoid it."""


class ScatterSpec(Model):
    """Round obstacles at random places, named after their entry: stones_1, stones_2, …"""

    count: PositiveWhole
    radius: Value
    region: Annotated[
        str | Shape | BoxSpec | None, Field(description="where their centres lie; anywhere if left out")
    ] = None
    gap: Annotated[
        Length, Field(description="distance kept between them, and to walls, exits, targets and obstacles [m]")
    ] = 0.0
    seed: Annotated[WholeNumber, Field(description="for places and radii, independent of the seed of the run")] = 0
    type: Annotated[str, Field(description="their type, such as fire")] = "obstacle"
    arcs_of: Annotated[
        Annotated[int, Field(ge=3, le=100)] | None,
        Field(description="stand side by side in half circles of this many, which are dead ends"),
    ] = None
    facing: Annotated[
        Finite | None, Field(description="where arcs open to, within 40 degrees [degrees from x]; anywhere if left out")
    ] = None
    travel: Annotated[
        Length, Field(description="they move back and forth this far in a random direction, over others too [m]")
    ] = 0.0
    speed: Annotated[PositiveLength, Field(description="of those that move [m/s]")] = 1.0


class ColumnsSpec(Model):
    """Columns of a 3D box, from its floor to its ceiling, as stacks of balls named after their entry."""

    radius: PositiveLength
    places: Annotated[list[XY], Field(min_length=1, description="x and y of each")]


class TargetSpec(Model):
    """A place to go to. An agent within `radius` has arrived, and leaves if the target `absorbs`."""

    position: PointField | None = None
    motion: Motion | None = None
    radius: Length = 0.5
    absorbs: bool = False


class MapSpec(Model):
    """A Moving AI .map file or a PNG floor plan (dark pixels are walls)."""

    file: Annotated[str, Field(description="a .map or .png file, relative to the scenario file")]
    scale: Annotated[PositiveLength | None, Field(description="metres per cell or pixel; 1 m for a .map")] = None
    wall_below: Annotated[PositiveFinite | None, Field(lt=1.0, description="PNG: darker pixels are walls; 0.5")] = None
    exits: Annotated[dict[str, str], Field(description='PNG: names and colours, such as out = "#00ff00"')] = {}
    straighten: Annotated[
        NotNegative | None, Field(description="PNG: slanted walls may move by this many pixels to become straight")
    ] = None

    def plan(self, folder: Path) -> FloorPlan:
        """The part of the world that the file describes."""
        told = self.model_dump(exclude={"file"}, exclude_defaults=True)
        return read_plan(folder / self.file, **told)


class WorldSpec(Model):
    """2D: a walkable area, or a map, minus holes. 3D: a box."""

    walkable: Annotated[Shape | list[Shape] | None, Field(description="one shape, or several that are joined")] = None
    map: Annotated[str | MapSpec | None, Field(description="a .map file, or a map with its scale")] = None
    holes: Annotated[list[Shape], Field(description="cut out of the walkable area")] = []
    bounds: Annotated[_Corners | None, Field(description="open space: x_min, y_min, x_max, y_max")] = None
    box: Annotated[
        BoxSpec | None, Field(description="a 3D world; its sides are walls unless they are joined or open")
    ] = None
    periodic: Periodic = False
    open: Annotated[bool, Field(description="a box without walls in unbounded space; bounds are always open")] = False
    walls: Annotated[list[Annotated[list[XY], Field(min_length=2)]], Field(description="polylines")] = []
    exits: dict[str, Shape] = {}
    regions: dict[str, Shape | BoxSpec] = {}
    rooms: Annotated[dict[str, Shape], Field(description="named rooms of a building")] = {}
    doors: dict[str, DoorSpec] = {}
    obstacles: dict[str, ObstacleSpec] = {}
    scatter: Annotated[dict[str, ScatterSpec], Field(description="many obstacles at random places")] = {}
    columns: Annotated[dict[str, ColumnsSpec], Field(description="3D: obstacles from floor to ceiling")] = {}
    targets: dict[str, TargetSpec] = {}

    @model_validator(mode="after")
    def _one_kind_of_world(self) -> WorldSpec:
        given = [key for key in ("walkable", "map", "bounds", "box") if getattr(self, key) is not None]
        if len(given) != 1:
            raise ValueError("a world needs exactly one of walkable or map (2D), bounds (open 2D space) or box (3D)")
        if self.periodic and self.bounds is None and self.box is None:
            raise ValueError("periodic joins the sides of bounds (2D) or of a box (3D), not those of an area or a map")
        if self.open and self.box is None:
            raise ValueError("open is for a 3D box; give bounds instead of a walkable area for open 2D space")
        if self.box is not None and (self.walls or self.exits or self.doors or self.holes or self.rooms):
            raise ValueError(
                "a 3D box has no walls, exits, doors, rooms or holes; use obstacles and targets that absorb"
            )
        if self.columns and self.box is None:
            raise ValueError("columns stand in a 3D box; in 2D every obstacle is already a column")
        for name, region in self.regions.items():
            if isinstance(region, BoxSpec) != (self.box is not None):
                raise ValueError(f"region '{name}': a region is a shape in 2D, and low and high corners in 3D")
        wrong = BoxSpec if self.box is None else Shape
        for name, scatter in self.scatter.items():
            if isinstance(scatter.region, wrong):
                raise ValueError(f"scatter '{name}': its region is a shape in 2D, and low and high corners in 3D")
        return self


class LayerSpec(BaseModel):
    """A layer by name (or "package.module:Class", if that is allowed) and its parameters; or the name alone."""

    model_config = ConfigDict(extra="allow", frozen=True)
    model: str

    @model_validator(mode="before")
    @classmethod
    def _name_alone(cls, given: Any) -> Any:
        return {"model": given} if isinstance(given, str) else given


class PlannerSpec(LayerSpec):
    __get_pydantic_json_schema__ = layer_tables(PLANNERS)


class EnvironmentSpec(LayerSpec):
    __get_pydantic_json_schema__ = layer_tables(ENVIRONMENTS)


class ModelSpec(LayerSpec):
    __get_pydantic_json_schema__ = layer_tables(MODELS)


class HabitSpec(LayerSpec):
    __get_pydantic_json_schema__ = layer_tables(HABITS)


class DecisionSpec(LayerSpec):
    __get_pydantic_json_schema__ = layer_tables(DECISIONS)


class SharingSpec(LayerSpec):
    __get_pydantic_json_schema__ = layer_tables(SHARINGS)


class GroupSpec(PersonalFields):
    """Agents that exist from the start."""

    name: str
    count: NotNegativeWhole | None = None
    density: PositiveFinite | None = None
    positions: list[PointField] | None = None
    region: str | Shape | BoxSpec | None = None
    planning: PlannerSpec | None = None
    local: ModelSpec | None = None
    habits: list[HabitSpec] | None = None
    decisions: list[DecisionSpec] | None = None
    knowledge: KnowledgeSpec | None = None
    squad: Annotated[Squad | None, Field(description="makes it a squad, with a commander and a mission")] = None

    @model_validator(mode="after")
    def _how_many(self) -> GroupSpec:
        if sum(part is not None for part in (self.count, self.density, self.positions)) != 1:
            raise ValueError("give exactly one of count, density or positions")
        return self


class SourceSpec(PersonalFields):
    """Agents that enter during the simulation."""

    group: str
    rate: Annotated[PositiveFinite, Field(description="agents per second")]
    region: str | Shape | BoxSpec
    begin: NotNegative = 0.0
    end: EndTime = float("inf")
    total: NotNegativeWhole | None = None
    arrivals: Literal["even", "random"] = "even"


class RecordingSpec(Model):
    """What is recorded of a run."""

    fps: Annotated[PositiveFinite, Field(description="frames per simulated second")] = 10.0
    format: Annotated[Literal["sqlite", "parquet"] | None, Field(description="sqlite in 2D, parquet in 3D")] = None
    checkpoint_every: Annotated[PositiveFinite, Field(description="simulated seconds")] = 60.0
    colours: Annotated[
        Literal["group", "speed", "heading"] | None,
        Field(description="of agents in animations; if left out, by group, or by speed if there is only one group"),
    ] = None


class BudgetSpec(Model):
    """Leave out behaviours when a run would otherwise be slower than wanted; sweeps leave nothing out."""

    steps_per_second: Annotated[PositiveFinite, Field(description="steps per second of wall time")] = 60.0
    window: Annotated[PositiveWhole, Field(description="steps over which the rate is measured")] = 30
    settle: Annotated[NotNegativeWhole, Field(description="steps after a switch that do not count")] = 3
    room: Annotated[
        NotNegative, Field(lt=1.0, description="a behaviour returns when this share of the time is to spare")
    ] = 0.1
    patience: Annotated[
        PositiveWhole, Field(description="quiet windows before trying a behaviour that is not known to fit")
    ] = 4
    order: Annotated[
        tuple[str, ...] | None, Field(description="behaviours that may be left out, least important first")
    ] = None

    def budget(self) -> Budget:
        return Budget(**self.model_dump())


def _timed(kind: type[Any]) -> Any:
    return create_model(f"{kind.__name__}At", __base__=kind, __doc__=kind.__doc__, at=(Time, ...))


_TIMED = tuple(_timed(entry.load()) for entry in EVENTS.values())
# Built at run time, which type checkers do not follow.
TimedEvent: Any = Annotated[Union[_TIMED], Field(discriminator="kind")]  # noqa: UP007


class ScenarioSpec(Model):
    """A whole scenario file."""

    format: Annotated[
        Literal[FORMAT],  # type: ignore[valid-type]
        Field(description="version of this format; that of the installed tropel if left out"),
    ] = FORMAT
    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9_.-]+$", description="short; names the output folder")]
    title: str = ""
    about: Annotated[str, Field(description="one or two sentences for `tropel list`")] = ""
    source: Annotated[str, Field(description="where the scene comes from: a guideline, a paper")] = ""
    seed: WholeNumber = 0
    dt: Annotated[PositiveFinite, Field(description="time step [s]")] = 0.05
    until: Annotated[Time | Literal["empty"], Field(description='seconds, or "empty"')] = "empty"
    limit: Annotated[EndTime, Field(gt=0.0, description="the run ends at this time in any case [s]")] = 600.0
    world: WorldSpec
    hazards: Annotated[dict[str, HazardSpec], Field(description="hazards that exist from the start")] = {}
    groups: list[GroupSpec] = []
    sources: list[SourceSpec] = []
    events: list[TimedEvent] = []
    planning: Annotated[PlannerSpec | None, Field(description="flow_field with walls, else direct")] = None
    habits: Annotated[
        list[HabitSpec] | None, Field(description="what agents do with planned directions before their model steers")
    ] = None
    decisions: Annotated[
        list[DecisionSpec] | None, Field(description="rules that change what agents are like while they run")
    ] = None
    tasks: Annotated[
        dict[str, Task] | None, Field(description="work for those in a stage  work = … ; none at first if it is empty")
    ] = None
    sharing: Annotated[SharingSpec | None, Field(description="how tasks are shared out: optimal if left out")] = None
    knowledge: Annotated[
        KnowledgeSpec | None, Field(description="limits what agents know of changes to what they see and are told")
    ] = None
    environment: EnvironmentSpec = EnvironmentSpec(model="grid")
    local: Annotated[ModelSpec | None, Field(description="walk with walls, else seek")] = None
    recording: RecordingSpec = RecordingSpec()
    budget: BudgetSpec | None = None
    watch_collisions: Annotated[
        bool | None,
        Field(description="report which bodies overlap, when and how deeply; if left out, on unless all are flocks"),
    ] = None
    watch_encounters: Annotated[
        PositiveLength | None,
        Field(description="write down which agents come within this distance of each other, and when [m]"),
    ] = None

    @model_validator(mode="after")
    def _somebody(self) -> ScenarioSpec:
        if not self.groups and not self.sources:
            raise ValueError("a scenario needs at least one [[groups]] or [[sources]] entry")
        return self


def plain_event(timed: Any) -> Any:
    """Convert a timed event of the file to the plain event."""
    return EVENTS[timed.kind].load().model_validate(timed.model_dump(exclude={"at"}))
