"""JuPedSim's collision-free speed model, walking through the same place with the same agents as one of our simulations.

JuPedSim is an optional extra: `pip install 'tropel[bench]'`.
"""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np
import shapely

from tropel.agents.state import AgentState, Floats
from tropel.errors import MissingExtraError


class JuPedSimCrowd:
    """The agents of a state with JuPedSim's default model parameters, all on the way to one place.

    JuPedSim finds the way round obstacles by itself, anew in every step.
    """

    def __init__(self, agents: AgentState, *, walkable: shapely.Polygon, goal: tuple[float, float], dt: float) -> None:
        jupedsim = _jupedsim()
        self._sim = jupedsim.Simulation(model=jupedsim.CollisionFreeSpeedModel(), geometry=walkable, dt=dt)
        stage = self._sim.add_direct_steering_stage()
        journey = self._sim.add_journey(jupedsim.JourneyDescription([stage]))
        self._ids = []
        for place, speed, radius in zip(agents.position, agents.desired_speed, agents.radius, strict=True):
            agent = jupedsim.CollisionFreeSpeedModelAgentParameters(
                position=(float(place[0]), float(place[1])),
                desired_speed=float(speed),
                radius=float(radius),
                journey_id=journey,
                stage_id=stage,
            )
            self._ids.append(self._sim.add_agent(agent))
            self._sim.agent(self._ids[-1]).target = goal

    def __len__(self) -> int:
        return len(self._ids)

    def step(self) -> None:
        """Move everybody forward by dt."""
        self._sim.iterate()

    @property
    def position(self) -> Floats:
        """(N, 2), in the order of the state that the agents came from [m]."""
        return np.array([self._sim.agent(number).position for number in self._ids])


def _jupedsim() -> Any:
    try:
        return importlib.import_module("jupedsim")
    except ImportError as error:
        raise MissingExtraError("the comparison with JuPedSim", "bench") from error
