"""Write `rvo2.json`: what RVO2 does with the crowds of the tests. Needs RVO2's Python package, which no extra brings:

pip install --no-deps pyrvo && python tests/local/orca/record_rvo2.py
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

RECORDED = Path(__file__).with_name("rvo2.json")
SEEDS = (2, 3, 4)


def rvo2_crowd(seed: int) -> dict[str, NDArray[np.float64]]:
    """150 people; RVO2 calculates in single precision, so they are rounded to it."""
    from test_orca import crowd

    return {name: np.float64(np.float32(values)) for name, values in crowd(seed, count=150, side=20.0).items()}


def _velocities(people: dict[str, Any]) -> list[list[float]]:
    import pyrvo

    wanted = people["desired_speed"][:, None] * people["directions"]
    theirs = pyrvo.RVOSimulator()
    theirs.set_time_step(0.1)
    for i, place in enumerate(people["position"]):
        reach, size, fastest = (float(people[name][i]) for name in ("sense_radius", "radius", "desired_speed"))
        theirs.add_agent(tuple(place), reach, 10, 2.0, 0.5, size, 1.5 * fastest)
        theirs.set_agent_velocity(i, tuple(people["velocity"][i]))
        theirs.set_agent_pref_velocity(i, tuple(wanted[i]))
    theirs.do_step()
    return [list(theirs.get_agent_velocity(i).to_tuple()) for i in range(len(wanted))]


def _circle() -> list[list[float]]:
    from tropel.bench import orca

    theirs = orca.Rvo2Crowd(orca.circle(60))
    for _ in range(20):
        theirs.choose()
        theirs.step()
    return [list(map(float, place)) for place in theirs.position]


if __name__ == "__main__":
    recorded = {"velocities": {seed: _velocities(rvo2_crowd(seed)) for seed in SEEDS}, "circle": _circle()}
    RECORDED.write_text(json.dumps(recorded, indent=0).replace(",\n", ", ") + "\n", encoding="utf-8")
