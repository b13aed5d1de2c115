"""What knowledge costs: the stage `decide` of a step, beside the whole step, of ten thousand people who see and tell.

They walk to and fro in a hall with 24 doors of which one opens or shuts twice a second, look around every half second
and tell each other every second. Every round makes some steps of the same crowd; the ratio of each round is of the same
steps. Planning for different beliefs is part of the stage `planning` and not of this figure.
"""

from __future__ import annotations

import statistics
from typing import Any

import shapely

from tropel.agents.distributions import Uniform
from tropel.agents.groups import Group
from tropel.bench.result import BenchResult, Progress
from tropel.knowing.parameters import Knowledge
from tropel.planning.direct import Direct
from tropel.simulation import Simulation
from tropel.world import Door, Target, World

_AGENTS = 10_000
_ROUNDS, _STEPS = 6, 20
_BEFORE = 40
_DOORS = 24


def measure(progress: Progress, agents: int = _AGENTS) -> BenchResult:
    """Run the benchmark."""
    sim = crowd(agents)
    for step in range(_BEFORE):
        if step % 10 == 0:
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
                "learnt": len(sim.knowledge.log["time"]),
            }
        )
    share = statistics.median(row["share"] for row in rows)
    return BenchResult(name="knowledge", rows=rows, ratios={"tenth_of_step_over_knowledge_10k": 0.1 / share})


def crowd(count: int) -> Simulation:
    """A hall with one person per two square metres, and doors in rows, which open and shut."""
    side = (2.0 * count) ** 0.5
    doors = {}
    for k in range(_DOORS):
        x, y = side * (k % 6 + 0.5) / 6.0, side * (k // 6 + 0.5) / 4.0
        doors[f"door {k}"] = Door([(x, y), (x + 1.5, y)], open=bool(k % 2))
    ends = {"west": Target(position=(1.0, 0.5 * side)), "east": Target(position=(side - 1.0, 0.5 * side))}
    world = World(shapely.box(0, 0, side, side), doors=doors, targets=ends)
    groups = [
        Group(name, count=count // 2, desired_speed=Uniform(1.0, 1.6), goal=name, then=[other], repeat=True)
        for name, other in (("west", "east"), ("east", "west"))
    ]
    sim = Simulation(
        world, groups, planning=Direct(), knowledge=Knowledge(sight=20.0, earshot=3.0), seed=1, watch_collisions=False
    )
    sim.every(0.5, _turn_a_door)
    return sim


def _turn_a_door(sim: Simulation) -> None:
    name = f"door {round(sim.time / 0.5) % _DOORS}"
    sim.world.set_door(name, open=not sim.world.doors[name].open)
