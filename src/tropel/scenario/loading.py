"""Building a simulation from a scenario file. Errors name the file, the line, the key, the value and the remedy."""

from __future__ import annotations

import contextlib
import errno
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from tropel.agents.groups import Group, Source
from tropel.checks.stages import check_stages, never_empty
from tropel.errors import ParameterError, ScenarioError, TropelError, suggest
from tropel.events.queue import due_step, foreseen_problems
from tropel.foundation.arguments import PathLike, checked_arguments
from tropel.foundation.files import LARGEST_SCENARIO, read_text
from tropel.knowing.parameters import Knowledge, knowledge_of
from tropel.registry import DECISIONS, ENVIRONMENTS, HABITS, MODELS, PLANNERS, SHARINGS, Kind
from tropel.scenario import schema
from tropel.scenario.locate import dotted, line_of
from tropel.scenario.problems import all_problems, explain, one_line
from tropel.scenario.world_builder import WorldBuilder
from tropel.simulation import Simulation
from tropel.world import World


@dataclass(frozen=True)
class Scenario:
    """A scenario that has been read and checked."""

    spec: schema.ScenarioSpec
    source: str  #: the file, or "built-in NAME"
    text: str
    folder: Path
    allow_imports: tuple[str, ...] = ()  #: packages with classes that it may use as layers

    @property
    def name(self) -> str:
        return self.spec.name

    def build(self, *, seed: int | None = None, threads: int | None = None) -> Simulation:
        """A simulation, ready to run."""
        with self._located_errors():
            return _Builder(self).simulation(self.spec.seed if seed is None else seed, threads)

    def world(self) -> World:
        """Only the world, without a simulation."""
        with self._located_errors():
            return WorldBuilder(self).world()

    def files(self) -> list[str]:
        """Other files that it refers to: maps, shapes, pictures of fields."""
        return sorted(set(_named_files(tomllib.loads(self.text))))

    @contextlib.contextmanager
    def _located_errors(self) -> Iterator[None]:
        try:
            yield
        except ScenarioError:
            raise
        except TropelError as error:
            raise self.error(self._key_named_in(str(error)), str(error)) from error

    def _key_named_in(self, message: str) -> tuple[str | int, ...]:
        """The key of the object that an error of the engine names, such as: exit 'east' lies outside."""
        named = re.search(r"\b(exit|region|door|obstacle|target|hazard|group|task) '([^']+)'", message)
        if named is None:
            return ()
        kind, name = named.groups()
        if kind in ("hazard", "task"):
            return (f"{kind}s", name)
        if kind != "group":
            return ("world", f"{kind}s", name)
        return next((("groups", k) for k, group in enumerate(self.spec.groups) if group.name == name), ())

    def error(self, path: Sequence[str | int], message: str) -> ScenarioError:
        """An error about the key at `path`."""
        line = line_of(self.text, path)
        where = self.source if line is None else f"{self.source}, line {line}"
        return ScenarioError(one_line(f"{where}: {dotted(path)}: {message}" if path else f"{where}: {message}"))


def _named_files(part: Any) -> Iterator[str]:
    if isinstance(part, list):
        for each in part:
            yield from _named_files(each)
    elif isinstance(part, dict):
        for key, value in part.items():
            if key in ("file", "image", "map") and isinstance(value, str):
                yield value
            else:
                yield from _named_files(value)


#: The built-in scenes lie in this folder; those of `tropel verify` in one of their own inside it.
_BUILTIN = resources.files("tropel.scenario") / "builtin"
_VERIFICATION = _BUILTIN / "verification"


def builtin_names() -> list[str]:
    """Names of the built-in scenes, without those of `tropel verify`."""
    return _scenes_in(_BUILTIN)


def verification_names() -> list[str]:
    """Names of the built-in scenes that `tropel verify` measures."""
    return _scenes_in(_VERIFICATION)


def _scenes_in(folder: Traversable) -> list[str]:
    return sorted(entry.name[:-5] for entry in folder.iterdir() if entry.name.endswith(".toml"))


@checked_arguments
def load_builtin(name: str) -> Scenario:
    """A built-in scene."""
    names = [*builtin_names(), *verification_names()]
    if name not in names:
        raise ScenarioError(f"there is no built-in scenario '{name}'; {suggest(name, names)}")
    folder = _VERIFICATION if name in verification_names() else _BUILTIN
    text = (folder / f"{name}.toml").read_text(encoding="utf-8")
    return parse_scenario(text, source=f"built-in {name}", folder=Path(str(folder)))


@checked_arguments
def named_scenario(name: PathLike, *, allow_imports: Sequence[str] = ()) -> Scenario:
    """A scenario file, or the built-in scene of that name if there is no such file."""
    known = str(name) in [*builtin_names(), *verification_names()]
    return (
        load_builtin(str(name))
        if known and not Path(name).is_file()
        else load_scenario(name, allow_imports=allow_imports)
    )


@checked_arguments
def load_scenario(path: PathLike, *, allow_imports: Sequence[str] = ()) -> Scenario:
    """Read and check a scenario file (TOML).

    A file names tropel's own layers. If it names a class of yours (`package.module:Class`), Python code of the file's
    choice is run, so `allow_imports` must list the package.
    """
    file = Path(path)
    try:
        text = read_text(file, largest=LARGEST_SCENARIO)
    except (OSError, UnicodeDecodeError) as error:
        if file.is_dir():
            raise ScenarioError(f"{file} is a directory; give a scenario file (.toml)") from error
        if isinstance(error, OSError) and error.errno == errno.EFBIG:
            raise ScenarioError(
                f"{file} is too large for a scenario: {error.strerror}; put big geometry into a WKT or GeoJSON file"
            ) from error
        reason = getattr(error, "strerror", None) or "it is not UTF-8 text"
        raise ScenarioError(
            f"cannot read {file}: {reason}; give a TOML file, or see `tropel list` for built-in scenarios"
        ) from error
    return parse_scenario(text, source=str(file), folder=file.resolve().parent, allow_imports=allow_imports)


def parse_scenario(text: str, *, source: str, folder: Path, allow_imports: Sequence[str] = ()) -> Scenario:
    """Check the text of a scenario; `allow_imports` as for `load_scenario`."""
    if isinstance(allow_imports, str) or not all(isinstance(package, str) for package in allow_imports):
        raise ParameterError(f"allow_imports must be a list of package names, not {allow_imports!r}")
    try:
        raw = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ScenarioError(f"{source}: not valid TOML: {error}") from error
    except RecursionError as error:
        raise ScenarioError(f"{source}: not valid TOML: tables or arrays are nested too deeply") from error
    if "format" in raw:
        _check_format(raw["format"], text, source)
    try:
        spec = schema.ScenarioSpec.model_validate(raw)
    except ValidationError as error:
        raise ScenarioError(explain(error, raw, text, source)) from error
    return Scenario(spec=spec, source=source, text=text, folder=folder, allow_imports=tuple(allow_imports))


def _check_format(format: Any, text: str, source: str) -> None:
    """Checked first: in a file of another format anything may be wrong."""
    if type(format) is not int or format != schema.FORMAT:
        newer = type(format) is int and format > schema.FORMAT
        remedy = "it was written for a newer tropel: upgrade" if newer else f"write  format = {schema.FORMAT}"
        raise ScenarioError(
            f"{source}, line {line_of(text, ('format',))}: format = {format!r}: this tropel reads scenario files of "
            f"format {schema.FORMAT}; {remedy}"
        )


# Building -------------------------------------------------------------------------------------------------------


class _Builder:
    def __init__(self, scenario: Scenario) -> None:
        self.scenario = scenario
        self.spec = scenario.spec
        self.worlds = WorldBuilder(scenario)
        self._made: list[tuple[schema.LayerSpec, Kind, Any]] = []

    def simulation(self, seed: int, threads: int | None) -> Simulation:
        spec = self.spec
        world = self.worlds.world()
        agents: list[Group | Source] = [self._group(number, each) for number, each in enumerate(spec.groups)]
        agents += [self._source(number, each) for number, each in enumerate(spec.sources)]
        groups = list(dict.fromkeys([g.name for g in spec.groups] + [s.group for s in spec.sources]))
        sim = Simulation(
            world,
            agents,
            planning=self._per_group("planning", PLANNERS, groups),
            environment=self._layer(spec.environment, ENVIRONMENTS, ("environment",)),
            local=self._per_group("local", MODELS, groups),
            habits=self._lists("habits", HABITS, groups),
            decisions=self._lists("decisions", DECISIONS, groups) or (),
            tasks=spec.tasks,
            sharing=None if spec.sharing is None else self._layer(spec.sharing, SHARINGS, ("sharing",)),
            knowledge=self._knowledge(groups),
            dt=spec.dt,
            seed=seed,
            threads=threads,
            title=spec.title or spec.name,
            watch_collisions=spec.watch_collisions,
        )
        if spec.recording.colours is not None:
            sim.scene = replace(sim.scene, extra={"colours": spec.recording.colours})
        if spec.watch_encounters is not None:
            try:
                sim.watch_encounters(spec.watch_encounters)
            except ParameterError as error:
                raise self.scenario.error(("watch_encounters",), str(error)) from error
        self._schedule(sim)
        self._check_stages(sim)
        return sim

    def _check_stages(self, sim: Simulation) -> None:
        """A file has all events of its run, so that whoever waits for another one waits in vain."""
        for finding in check_stages(sim):
            raise self.scenario.error(self._stages_of(finding.group), f"{finding.message}; {finding.remedy}")
        if self.spec.until == "empty" and (why := never_empty(sim)):
            named = next((name for name in sim.groups if f"group '{name}'" in why), None)
            raise self.scenario.error(
                self._stages_of(named),
                f'{why}, but the run lasts until = "empty"; end the list with a stage that goes to an exit, or let '
                f"until be a time in seconds",
            )

    def _stages_of(self, name: str | None) -> tuple[str | int, ...]:
        """The key of the stages, or goals, of a group."""
        told: list[tuple[tuple[str | int, ...], str, schema.GroupSpec | schema.SourceSpec]]
        told = [(("groups", number), group.name, group) for number, group in enumerate(self.spec.groups)]
        told += [(("sources", number), source.group, source) for number, source in enumerate(self.spec.sources)]
        for path, own, each in told:
            if own == name and (each.stages is not None or each.then):
                return (*path, "then" if each.stages is None else "stages")
        return ()

    def _schedule(self, sim: Simulation) -> None:
        """Schedule the events in the order in which they will happen, so that each check knows the earlier ones."""
        wrong: list[str] = []
        steps = [due_step(timed.at, sim) for timed in self.spec.events]
        for number in sorted(range(len(steps)), key=steps.__getitem__):
            for key, message in foreseen_problems(sim, steps[number], schema.plain_event(self.spec.events[number])):
                wrong.append(str(self.scenario.error(("events", number, *key), message)))
        if wrong:
            raise ScenarioError(all_problems(wrong, self.scenario.source))

    def _group(self, number: int, spec: schema.GroupSpec) -> Group:
        path = ("groups", number, "region")
        return Group(
            spec.name,
            count=spec.count,
            density=spec.density,
            positions=spec.positions,
            region=self.worlds.region(spec.region, path),
            squad=spec.squad,
            **spec.personal(),
        )

    def _source(self, number: int, spec: schema.SourceSpec) -> Source:
        path = ("sources", number, "region")
        return Source(
            spec.group,
            rate=spec.rate,
            region=self.worlds.region(spec.region, path),
            begin=spec.begin,
            end=spec.end,
            total=spec.total,
            arrivals=spec.arrivals,
            **spec.personal(),
        )

    def _per_group(self, which: str, known: Kind, groups: list[str]) -> Any:
        """One layer for all, or one per group if groups have their own; None for the default."""
        told = getattr(self.spec, which)
        shared = None if told is None else self._layer(told, known, (which,))
        own = {
            group.name: self._layer(getattr(group, which), known, ("groups", number, which))
            for number, group in enumerate(self.spec.groups)
            if getattr(group, which) is not None
        }
        return shared if not own else {name: own.get(name, shared) for name in groups}

    def _lists(self, which: str, known: Kind, groups: list[str]) -> dict[str, list[Any]] | None:
        """The habits, or decisions, of the groups that have any written down; None if there are none."""
        written: dict[str, tuple[list[schema.LayerSpec], tuple[str | int, ...]]] = {}
        if getattr(self.spec, which) is not None:
            written = dict.fromkeys(groups, (getattr(self.spec, which), (which,)))
        for number, group in enumerate(self.spec.groups):
            if getattr(group, which) is not None:
                written[group.name] = (getattr(group, which), ("groups", number, which))
        return {
            name: [self._layer(spec, known, (*path, place)) for place, spec in enumerate(specs)]
            for name, (specs, path) in written.items()
        } or None

    def _knowledge(self, groups: list[str]) -> dict[str, Knowledge] | None:
        """What limits the knowledge of the groups for which that is written down; None if there are none."""
        told: dict[str, tuple[Any, tuple[str | int, ...]]] = {}
        if self.spec.knowledge is not None:
            told = dict.fromkeys(groups, (self.spec.knowledge, ("knowledge",)))
        for number, group in enumerate(self.spec.groups):
            if group.knowledge is not None:
                told[group.name] = (group.knowledge, ("groups", number, "knowledge"))
        found = {}
        for name, (spec, path) in told.items():
            try:
                found[name] = spec.knowledge()
                knowledge_of(groups, {name: found[name]})
            except ParameterError as error:
                raise self.scenario.error(path, str(error)) from error
        return found or None

    def _layer(self, spec: schema.LayerSpec, known: Kind, path: Sequence[str | int]) -> Any:
        """The layer of a spec. Groups with equal specs share one, as a crowd on cells and its planner require."""
        for equal, kind, layer in self._made:
            if equal == spec and kind is known:
                return layer
        told = {"model": spec.model, **(spec.model_extra or {})}
        try:
            known.find(spec.model, allow_imports=self.scenario.allow_imports)
        except TropelError as error:
            raise self.scenario.error((*path, "model"), str(error)) from error
        try:
            layer = known.make(self._made_inside(told), allow_imports=self.scenario.allow_imports)
        except TropelError as error:
            raise self.scenario.error(path, str(error)) from error
        self._made.append((spec, known, layer))
        return layer

    def _made_inside(self, told: Mapping[str, Any]) -> dict[str, Any]:
        """The same table with the planners inside it built, as in a blend, and its image path relative to the file."""
        found = {key: self._made_planners(value) for key, value in told.items()}
        if PLANNERS.entry(told["model"]) is PLANNERS["vector_field"] and isinstance(told.get("image"), str):
            found["image"] = self.scenario.folder / told["image"]
        return found

    def _made_planners(self, value: Any) -> Any:
        if isinstance(value, list):
            return [self._made_planners(part) for part in value]
        if isinstance(value, Mapping) and "model" in value:
            return PLANNERS.make(self._made_inside(value), allow_imports=self.scenario.allow_imports)
        return value
