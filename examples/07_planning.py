"""Planning: out of a U with a flow field, and the picture of a harmonic field."""

from pathlib import Path

import shapely

import tropel
from tropel import FlowField
from tropel.scenario.plan import draw_plan, make_plan


def new_world():
    return tropel.World(
        shapely.box(0, 0, 24, 20),
        walls=[[(5, 15), (15, 15), (15, 5), (5, 5)]],
        exits={"east": shapely.box(22.8, 8.5, 24, 11.5)},
    )


people = tropel.Group("people", count=20, region=shapely.box(7, 6, 14, 14))
for name, planner in (("straight to the exit", tropel.Direct()), ("with a flow field", FlowField(clearance=0.3))):
    sim = tropel.Simulation(new_world(), people, planning=planner, local=tropel.CollisionFreeSpeed(), seed=7)
    summary = sim.run(until="empty", limit=60)
    print(f"{name}: {summary.evacuated} of 20 people out after {sim.time:.0f} s")

plan = make_plan(new_world(), planner="harmonic", title="Out of a U")
print(f"{plan.reachable_share:.0%} of the floor has a way out; planned in {plan.seconds:.2f} s")
print(f"wrote {draw_plan(plan, Path('field.png'))}")
