"""A planner of one's own is a class with one method; `tropel.testing` checks that it keeps its promises."""

import numpy as np
import shapely

import tropel
from tropel.testing import check_planner


class Vortex(tropel.Planner):
    """Everybody walks round a centre, counter-clockwise."""

    def __init__(self, center):
        self.center = np.asarray(center, dtype=float)

    def direct(self, moment, out):
        offset = moment.state.position[moment.members, :2] - self.center
        turned = np.column_stack([-offset[:, 1], offset[:, 0]])
        out.directions[moment.members, :2] = turned / np.maximum(np.linalg.norm(turned, axis=1), 1e-9)[:, None]


check_planner(Vortex(center=(10, 10)))

world = tropel.World(shapely.Point(10, 10).buffer(9) - shapely.Point(10, 10).buffer(3))
sim = tropel.Simulation(world, tropel.Group("walkers", density=0.3), planning=Vortex((10, 10)), seed=4)
sim.run(until=20.0)
speed = np.linalg.norm(sim.agents.velocity, axis=1).mean()
print(f"{len(sim.agents)} people walk in a ring at {speed:.2f} m/s on average")
