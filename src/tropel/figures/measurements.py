"""Figures that need measurements: CROWD's figures 4 (plan time) and 11 (frame rate), gamma, and density."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from time import perf_counter

import numpy as np
import shapely
from numpy.typing import NDArray

from tropel.agents.groups import Group
from tropel.figures.crowd import corner_goals, six_door_hall, value_iteration
from tropel.figures.curves import Band, Curve, CurvesPanel, draw_curves
from tropel.local.lattice.model import Lattice
from tropel.planning.flow.path_plan import solve_path_plans
from tropel.planning.path_plans.model import PathPlans
from tropel.scenario.loading import load_builtin
from tropel.scenario.schema import LayerSpec
from tropel.simulation import Simulation
from tropel.world import Target, World

#: Called with what is being measured, how much is done, and the total.
Told = Callable[[str, int, int], None]
Floats = NDArray[np.float64]

#: The paper's own measurement: seconds for four path plans on 600 × 600 cells on a machine of 2009.
THEIR_PLAN = (600, 210.0)
_CELL, _SPEED = 0.4, 1.34
_SIDE = 724  # cells


def plan_times(sizes: Sequence[int], told: Told) -> tuple[Floats, Floats]:
    """Figure 4: seconds for four path plans by map size, with ours and by value iteration."""
    ours, theirs = np.empty(len(sizes)), np.empty(len(sizes))
    _four_layers(min(sizes))
    for k, size in enumerate(sizes):
        told(f"{size} × {size} cells", k, len(sizes))
        ours[k] = min(_four_layers(size) for _ in range(3))
        free, goals = six_door_hall(size, wall=max(size // 36, 1)), corner_goals(size)
        begun = perf_counter()
        for goal in goals:
            value_iteration(free, goal, gamma=0.95)
        theirs[k] = perf_counter() - begun
    return ours, theirs


def _four_layers(size: int) -> float:
    free, goals = six_door_hall(size, wall=max(size // 36, 1)), corner_goals(size)
    begun = perf_counter()
    solve_path_plans(free, goals)
    return perf_counter() - begun


def frame_rates(
    crowds: Sequence[int], told: Told, *, runs: int = 10, frames: int = 40, side: int = _SIDE, density: float = 1.0
) -> Floats:
    """Figure 11: frames per second (crowds, runs) on a map with `side` cells along its side, at constant density.

    A frame is a step in which every agent decides.
    """
    rates = np.empty((len(crowds), runs))
    for k, agents in enumerate(crowds):
        for run in range(runs):
            told(f"{agents:,} agents, run {run + 1}", k * runs + run, len(crowds) * runs)
            sim = crowd_in_the_middle(agents, side=side * _CELL, density=density, seed=run)
            sim.step()
            seconds = np.empty(frames)
            for frame in range(frames):
                begun = perf_counter()
                sim.step()
                seconds[frame] = perf_counter() - begun
            rates[k, run] = 1.0 / float(np.median(seconds))
    return rates


def crowd_in_the_middle(agents: int, *, side: float, density: float, seed: int) -> Simulation:
    """People in a square of a given density in the middle of a map [m], a quarter of them heading for each corner."""
    half, middle = 0.5 * math.sqrt(agents / density), 0.5 * side
    region = shapely.box(middle - half, middle - half, middle + half, middle + half)
    places = {"south west": (1, 1), "south east": (side - 1, 1), "north west": (1, side - 1)}
    places["north east"] = (side - 1, side - 1)
    targets = {name: Target(position=place, radius=1.0, absorbs=True) for name, place in places.items()}
    world = World(shapely.box(0.0, 0.0, side, side), targets=targets)
    groups = [Group(name, count=agents // 4, region=region, goal=name, desired_speed=_SPEED) for name in targets]
    dt = _CELL / _SPEED
    return Simulation(
        world, groups, planning=PathPlans(cell=_CELL), local=Lattice(cell=_CELL, headway=0.0), dt=dt, seed=seed
    )


def gamma_effect(gammas: Sequence[float], told: Told, *, runs: int = 5) -> tuple[Floats, Floats]:
    """By gamma and run in crowd_fig2: the time until nine tenths have arrived [s], and the neighbours per agent."""
    times, neighbours = np.empty((len(gammas), runs)), np.empty((len(gammas), runs))
    scenario = load_builtin("crowd_fig2")
    for k, gamma in enumerate(gammas):
        layer = LayerSpec.model_validate({"model": "path_plans", "gamma": gamma})
        changed = replace(scenario, spec=scenario.spec.model_copy(update={"planning": layer}))
        for run in range(runs):
            told(f"gamma = {gamma:g}, run {run + 1}", k * runs + run, len(gammas) * runs)
            sim = changed.build(seed=run)
            count, around, seen = len(sim.agents), 0.0, 0
            while len(sim.agents) > count // 10 and sim.time < scenario.spec.limit:
                sim.step()
                if 5.0 < sim.time < 25.0:
                    around += neighbours_around(sim)
                    seen += 1
            times[k, run], neighbours[k, run] = sim.time, around / max(seen, 1)
    return times, neighbours


def neighbours_around(sim: Simulation) -> float:
    """Mean number of agents in the eight cells around an agent."""
    assert sim.ground is not None
    raster = sim.ground.raster
    index = raster.index_of(sim.agents.position) + 1
    taken = np.zeros(np.array(raster.shape) + 2, dtype=np.int64)
    taken[index[:, 0], index[:, 1]] = 1
    around = sum(taken[index[:, 0] + dy, index[:, 1] + dx] for dy in (-1, 0, 1) for dx in (-1, 0, 1)) - 1
    return float(np.mean(around)) if len(index) else 0.0


def speed_by_density(densities: Sequence[float], told: Told, *, runs: int = 3) -> Floats:
    """Mean speed along a corridor [m/s] (densities, runs) of people walking in one direction, in its middle half."""
    speeds, length, width, seconds = np.empty((len(densities), runs)), 80.0, 4.0, 6.0
    for k, density in enumerate(densities):
        for run in range(runs):
            told(f"{density:g} people per m², run {run + 1}", k * runs + run, len(densities) * runs)
            world = World(
                shapely.box(0.0, 0.0, length, width), exits={"end": shapely.box(length - 0.4, 0.0, length, width)}
            )
            count = round(density * (length - 0.4) * width)
            people = Group("people", count=count, region=shapely.box(0.0, 0.0, length - 0.4, width))
            dt = _CELL / _SPEED
            sim = Simulation(world, people, planning=PathPlans(), local=Lattice(), dt=dt, seed=run)
            x = sim.agents.position[:, 0].copy()
            middle = sim.agents.id[(x > length / 8) & (x < 5 * length / 8)]
            before = dict(zip(sim.agents.id.tolist(), x.tolist(), strict=True))
            sim.run(until=seconds)
            now = dict(zip(sim.agents.id.tolist(), sim.agents.position[:, 0].tolist(), strict=True))
            speeds[k, run] = float(np.mean([(now[i] - before[i]) / sim.time for i in middle.tolist()]))
    return speeds


# Drawing --------------------------------------------------------------------------------------------------------


def draw_plan_times(path: Path, told: Told) -> list[Path]:
    sizes = (75, 150, 300, 600)
    ours, theirs = plan_times(sizes, told)
    x = np.array(sizes, dtype=np.float64)
    curves = [
        Curve(name="one best-first pass (tropel)", x=x, y=ours),
        Curve(name="value iteration (NumPy)", x=x, y=theirs),
        Curve(name="theirs, 2009", x=np.array([THEIR_PLAN[0]]), y=np.array([THEIR_PLAN[1]]), joined=False),
    ]
    panel = CurvesPanel(
        x="cells along a side of the map", y="time for four path plans [s]", curves=curves, logarithmic=True
    )
    about = f"on {sizes[-1]} × {sizes[-1]} cells {theirs[-1] / ours[-1]:.0f} times as fast as value iteration here"
    return [draw_curves([panel], path, title="Planning paths to four corners", about=about)]


def draw_frame_rates(path: Path, told: Told) -> list[Path]:
    crowds = (1_000, 2_000, 5_000, 10_000, 20_000, 50_000, 80_000)
    rates = frame_rates(crowds, told)
    curve = Curve(
        name="tropel, 10 runs",
        x=np.array(crowds, dtype=np.float64),
        y=rates.mean(axis=1),
        error=_standard_errors(rates),
    )
    band = Band(name="theirs, 2009", x=(10_000.0, 20_000.0), y=(30.0, 60.0))
    panel = CurvesPanel(x="agents", y="frames per second", curves=[curve], logarithmic=True, band=band)
    about = "724 × 724 cells, one person per m², four goals; bars: standard errors"
    return [draw_curves([panel], path, title="Frame rate by size of the crowd", about=about)]


def draw_gamma_effect(path: Path, told: Told) -> list[Path]:
    gammas = (0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95)
    times, around = gamma_effect(gammas, told)
    x = np.array(gammas)
    panels = [
        CurvesPanel(
            x="gamma", y=said, curves=[Curve(name="", x=x, y=values.mean(axis=1), error=_standard_errors(values))]
        )
        for said, values in (
            ("time until nine tenths have arrived [s]", times),
            ("agents in neighbouring cells", around),
        )
    ]
    about = "crowd_fig2, 5 runs each; discount per cell of path against ½ per neighbour; bars: standard errors"
    return [draw_curves(panels, path, title="The effect of gamma", about=about)]


def draw_speed_by_density(path: Path, told: Told) -> list[Path]:
    densities = (0.1, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 3.5, 4.0, 4.5, 5.0, 5.5, 6.0)
    speeds = speed_by_density(densities, told)
    x = np.array(densities)
    walked, error = speeds.mean(axis=1), _standard_errors(speeds)
    panels = [
        CurvesPanel(x="people per m²", y=said, curves=[Curve(name="", x=x, y=factor * walked, error=factor * error)])
        for said, factor in (("speed along the corridor [m/s]", np.ones_like(x)), ("flow [1/(m s)]", x))
    ]
    about = "80 m × 4 m, all in one direction over 6 s, 3 runs; free speed 1.34 m/s"
    return [draw_curves(panels, path, title="Speed and flow of a lattice crowd by density", about=about)]


def _standard_errors(values: Floats) -> Floats:
    return np.asarray(values.std(axis=1, ddof=1) / math.sqrt(values.shape[1]))
