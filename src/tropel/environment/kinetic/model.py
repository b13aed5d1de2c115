"""The kinetic environment: near sets that are maintained from step to step instead of being found anew."""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import NDArray

from tropel._kernels.arrays import Csr
from tropel._kernels.neighbours import Neighbours
from tropel.agents.state import Floats
from tropel.contracts import Environment, EnvironmentDeclaration, Moment, Near
from tropel.contracts.near import table_of_lists
from tropel.environment.grid import NeighbourLists
from tropel.environment.kinetic.lists import NearLists
from tropel.environment.kinetic.moving_mesh import MovingMesh
from tropel.errors import ModelError
from tropel.foundation.arguments import checked_arguments

Visibility = Literal["near", "approachable", "visible"]


class Kinetic(Environment):
    """A Delaunay triangulation of all agents that moves with them, and near sets that hold for many steps."""

    @checked_arguments
    def __init__(self, *, visibility: Visibility = "near") -> None:
        self.declares = EnvironmentDeclaration()
        self.parameters = {"visibility": visibility}
        self.visibility = visibility
        self.moving = MovingMesh()
        self._near = NearLists()
        self._grid_lists = NeighbourLists()
        self._built = 0

    def prepare(self, moment: Moment) -> None:
        """Begin anew."""
        if moment.world.is_periodic:
            raise ModelError("Kinetic is for space with an end; use the grid in periodic space")
        self.moving = MovingMesh()
        self._near.forget(0)
        self._built = 0

    def sense(self, moment: Moment) -> Near:
        state = moment.state
        known = self.moving.ids
        self.moving.update(state.id, state.position)
        mesh = self.moving.mesh
        if self.moving.total.rebuilds != self._built:
            self._built = self.moving.total.rebuilds
            self._near.forget(len(mesh.x))
        elif known is not self.moving.ids:
            fresh = np.setdiff1d(self.moving.ids, known, assume_unique=True)
            self._near.announce(mesh, self.moving.vertices_of(fresh), self.moving.first_point)
        return KineticNear(moment, self)


class KineticNear(Near):
    """Lists of who is near, from the lists that the environment maintains."""

    def __init__(self, moment: Moment, environment: Kinetic) -> None:
        super().__init__(moment)
        self._environment = environment

    def lists(self, radius: Floats) -> Csr:
        environment, state = self._environment, self.state
        moving = environment.moving
        if radius is not state.sense_radius:
            cells = self.cells.sorting.sorted
            return environment._grid_lists.build(cells._replace(sense_radius=np.ascontiguousarray(radius[cells.order])))
        vertices = moving.vertices_of(state.id)
        place = np.zeros(len(moving.mesh.x), dtype=np.int64)
        order = self.cells.cell_list.order
        place[vertices[order]] = np.arange(len(order))
        environment._near.update(moving, vertices, place, radius)
        return environment._near.near(vertices, *moving.true_positions, radius)
