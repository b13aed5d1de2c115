"""What decisions cost: the stage `decide` of a step, beside the whole step, of ten thousand people with things to do.

They go to kiosks, wait for a time that each draws and for others, and begin again, and they tire with the distance.
Every round makes some steps of the same crowd; the ratio of each round is of the same steps.
"""

from __future__ import annotations

import statistics
from typing import Any

import shapely

from tropel.agents.distributions import Uniform
from tropel.agents.groups import Group
from tropel.agents.stages.conditions import Come
from tropel.agents.stages.verbs import Go, Wait, WaitFor
from tropel.bench.result import BenchResult, Progress
from tropel.deciding.tired import Tired
from tropel.simulation import Simulation
from tropel.world import Target, World

_AGENTS = 10_000
_ROUNDS, _STEPS = 8, 25
#: Steps before the first round, after which people are in all of the stages.
_BEFORE = 400


def measure(progress: Progress) -> BenchResult:
    """Run the benchmark."""
    sim = crowd(_AGENTS)
    for step in range(_BEFORE):
        if step % 50 == 0:
            progress("people get going", step, _BEFORE)
        sim.step()
    rows: list[dict[str, Any]] = []
    for number in range(_ROUNDS):
        progress("steps", number, _ROUNDS)
        before = dict(sim.timing.seconds)
        for _ in range(_STEPS):
            sim.step()
        spent = {stage: seconds - before[stage] for stage, seconds in sim.timing.seconds.items()}
        whole = sum(spent.values())
        rows.append(
            {
                "round": number + 1,
                "step_ms": 1e3 * whole / _STEPS,
                "decide_ms": 1e3 * spent["decide"] / _STEPS,
                "share": spent["decide"] / whole,
            }
        )
    share = statistics.median(row["share"] for row in rows)
    return BenchResult(name="stages", rows=rows, ratios={"tenth_of_step_over_decide_10k": 0.1 / share})


def crowd(count: int) -> Simulation:
    """A hall with one person per two square metres, kiosks and a lounge."""
    side = (2.0 * count) ** 0.5
    kiosks = {f"kiosk {k}": (side * (0.2 + 0.2 * (k % 4)), side * (0.25 + 0.5 * (k // 4))) for k in range(8)}
    world = World(
        shapely.box(0, 0, side, side),
        regions={"lounge": shapely.box(0.4 * side, 0.4 * side, 0.6 * side, 0.6 * side)},
        targets={name: Target(position=at, radius=2.0) for name, at in kiosks.items()},
    )
    groups = [
        Group(
            f"group {k}",
            count=count // 8,
            desired_speed=Uniform(1.0, 1.6),
            stages=[
                Go(name, within=3.0),
                Wait(Uniform(1.0, 20.0)),
                WaitFor(Come(5)),
                Go("lounge"),
                Wait(Uniform(1.0, 20.0)),
            ],
            repeat=True,
        )
        for k, name in enumerate(kiosks)
    ]
    return Simulation(world, groups, decisions=[Tired(distance=200.0, recovery=60.0)], seed=1, watch_collisions=False)
