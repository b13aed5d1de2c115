"""`check_steering` accepts models that keep their promises and names the promise that a model breaks."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numba
import numpy as np
import pytest
import shapely
from numpy.typing import NDArray

import tropel
from tropel._kernels.compile import parallel_kernel
from tropel._kernels.philox import random_key, uniforms
from tropel.agents.state import Column, Steered
from tropel.contracts import Guidance, ModelDeclaration, Moment, Moves
from tropel.errors import ParameterError
from tropel.testing import ContractViolation, check_steering

Floats = NDArray[np.float64]
Rows = NDArray[np.int64]


class Stroll(tropel.Model):
    """What a user may write first: walk as planned."""

    def wish(self, moment: Moment) -> Floats:
        return moment.directions[moment.members] * moment.state.desired_speed[moment.members, None]

    def steer(self, moment: Moment, out: Steered) -> Any:
        out.velocity[moment.members] = self.change(self.wish(moment), moment)

    def change(self, wish: Floats, moment: Moment) -> Floats:
        """What the variants below do differently."""
        return wish


class KeepsApart(Stroll):
    """Steps away from the mean of the neighbours: reads `near.csr()`."""

    def change(self, wish: Floats, moment: Moment) -> Floats:
        indptr, indices = moment.near.csr()
        for k, row in enumerate(moment.members):
            others = moment.state.position[indices[indptr[row] : indptr[row + 1]]]
            if len(others):
                wish[k] += 0.1 * (moment.state.position[row] - others.mean(axis=0))
        return wish


class Tires(Stroll):
    """Has a memory column and a parameter column of its own."""

    declares = ModelDeclaration(
        columns=(Column(name="stamina", default=20.0, unit="s"),),
        memory=(Column(name="tiredness"), Column(name="steps_taken", dtype="int32")),
    )

    def steer(self, moment: Moment, out: Steered) -> None:
        state, members = moment.state, moment.members
        tiredness = state.columns["tiredness"][members]
        wish = self.wish(moment)
        out.velocity[members] = wish / (1.0 + tiredness / state.columns["stamina"][members])[:, None]
        out.memory["tiredness"][members] = tiredness + moment.dt * np.linalg.norm(wish, axis=1)
        out.memory["steps_taken"][members] = state.columns["steps_taken"][members] + 1


class Hops(Stroll):
    """Says where people are, instead of how fast they go."""

    declares = ModelDeclaration(moves=Moves.ITSELF)

    def steer(self, moment: Moment, out: Steered) -> None:
        members = moment.members
        out.position[members] = moment.state.position[members] + 0.1 * moment.directions[members]


class WandersById(Stroll):
    """Random numbers as they should be drawn."""

    def prepare(self, moment: Moment) -> None:
        self.key = random_key(moment.seed, "wandering")

    def change(self, wish: Floats, moment: Moment) -> Floats:
        return wish * uniforms(self.key, moment.state.id[moment.members], step=moment.step)[:, :1]


class WandersByRow(WandersById):
    def change(self, wish: Floats, moment: Moment) -> Floats:
        return wish * uniforms(self.key, moment.members, step=moment.step)[:, :1]


class RollsDice(Stroll):
    def change(self, wish: Floats, moment: Moment) -> Floats:
        return wish * np.random.uniform(size=(len(moment.members), 1))  # noqa: NPY002


class SteersEverybody(Stroll):
    def steer(self, moment: Moment, out: Steered) -> None:
        out.velocity[:] = moment.directions * moment.state.desired_speed[:, None]


class TurnsEverybody(Stroll):
    def change(self, wish: Floats, moment: Moment) -> Floats:
        return wish

    def steer(self, moment: Moment, out: Steered) -> None:
        super().steer(moment, out)
        out.heading[:] = moment.state.heading


class TiresEverybody(Tires):
    def steer(self, moment: Moment, out: Steered) -> None:
        super().steer(moment, out)
        out.memory["steps_taken"] += 1


class ReplacesTheBuffer(Stroll):
    def steer(self, moment: Moment, out: Steered) -> None:
        fresh = out.velocity.copy()
        fresh[moment.members] = self.wish(moment)
        out.velocity = fresh


class ReturnsItsResult(Stroll):
    def steer(self, moment: Moment, out: Steered) -> Floats:
        return self.wish(moment)


class DividesByDistance(KeepsApart):
    """Fine in a crowd, and undefined where two stand at one point."""

    def change(self, wish: Floats, moment: Moment) -> Floats:
        indptr, indices = moment.near.csr()
        for k, row in enumerate(moment.members):
            away = moment.state.position[row] - moment.state.position[indices[indptr[row] : indptr[row + 1]]]
            with np.errstate(divide="ignore", invalid="ignore"):
                wish[k] += 1e-3 * (away / (away**2).sum(axis=1, keepdims=True)).sum(axis=0)
        return wish


class DividesByDirection(Stroll):
    """Fine for those who go somewhere, and NaN for those who stand."""

    def wish(self, moment: Moment) -> Floats:
        with np.errstate(divide="ignore", invalid="ignore"):
            return moment.directions[moment.members] / np.linalg.norm(
                moment.directions[moment.members], axis=1, keepdims=True
            )


class Explodes(Stroll):
    """Loses its head when alone."""

    def change(self, wish: Floats, moment: Moment) -> Floats:
        return wish + (1e4 if len(moment.state) == 1 else 0.0)


class LongHeadings(Stroll):
    def steer(self, moment: Moment, out: Steered) -> None:
        super().steer(moment, out)
        out.heading[moment.members] = out.velocity[moment.members]


class ChangesDirections(Stroll):
    def steer(self, moment: Moment, out: Steered) -> None:
        directions = moment.directions
        directions *= moment.state.desired_speed[:, None]
        out.velocity[moment.members] = directions[moment.members]


class ChangesState(Stroll):
    def change(self, wish: Floats, moment: Moment) -> Floats:
        moment.state.velocity[moment.members] = wish
        return wish


class ChangesNear(Stroll):
    def change(self, wish: Floats, moment: Moment) -> Floats:
        moment.near.neighbours().radius[:1] += 1.0
        return wish


class ChangesLists(Stroll):
    def change(self, wish: Floats, moment: Moment) -> Floats:
        moment.near.csr().indices[:1] += 1
        return wish


class SmoothsSecretly(Stroll):
    """Keeps last step's velocities to itself, by row."""

    last: Floats | None = None

    def change(self, wish: Floats, moment: Moment) -> Floats:
        if self.last is not None and self.last.shape == wish.shape:
            wish = 0.5 * (wish + self.last)
        self.last = wish.copy()
        return wish


class ChangesItsMind(Stroll):
    """The same again and again for a while, so that only a resumed run tells."""

    calls = 0

    def change(self, wish: Floats, moment: Moment) -> Floats:
        self.calls += 1
        return wish * (1.0 if self.calls < 10 else 0.5)


class StoresObjects(Stroll):
    def state(self) -> dict[str, Any]:
        return {"names": np.array(["a", None], dtype=object)}

    def restore(self, stored: dict[str, Any]) -> None:
        pass


class FollowsWhoWasDoneBefore(Stroll):
    def change(self, wish: Floats, moment: Moment) -> Floats:
        for k in range(1, len(wish)):
            wish[k] = 0.5 * (wish[k] + wish[k - 1])
        return wish


class LooksAtSmallerIds(Stroll):
    def change(self, wish: Floats, moment: Moment) -> Floats:
        indptr, indices = moment.near.csr()
        first = [bool((indices[indptr[row] : indptr[row + 1]] < row).any()) for row in moment.members]
        return wish * ~np.array(first, dtype=bool)[:, None]


@parallel_kernel
def _mean_in_parts(values, parts):
    partial = np.zeros(parts)
    for part in numba.prange(parts):
        for k in range(part * values.size // parts, (part + 1) * values.size // parts):
            partial[part] += values[k]
    return partial.sum() / values.size


class DriftsWithTheMean(Stroll):
    """A float sum with a partial sum per thread: its rounding depends on how many there are."""

    def change(self, wish: Floats, moment: Moment) -> Floats:
        if len(moment.state) == 0:
            return wish
        return wish + _mean_in_parts(moment.state.velocity[:, 0].copy(), numba.get_num_threads())


class NeedsSomebody(Stroll):
    def change(self, wish: Floats, moment: Moment) -> Floats:
        return wish * (moment.state.desired_speed.max() > 0.0)


class FlatOnly(Stroll):
    def prepare(self, moment: Moment) -> None:
        if moment.world.dim != 2:
            raise ParameterError("FlatOnly works in 2D; use another model in a box")


@pytest.mark.parametrize("model", [tropel.Seek(), Stroll(), KeepsApart(), Tires(), Hops(), tropel.Seek, Tires])
def test_models_that_keep_their_promises_pass(model: Any) -> None:
    check_steering(model)


@pytest.mark.parametrize(
    ("model", "promise"),
    [
        (SteersEverybody, r"writes only the rows of its members.*velocity of row 1 \(agent 2\)"),
        (TurnsEverybody, "writes only the rows of its members.*heading of row 1"),
        (TiresEverybody, r"writes only the rows of its members.*memory\['steps_taken'\] of row 1"),
        (ReplacesTheBuffer, "results are written into the arrays of out"),
        (ReturnsItsResult, "results are written into out"),
        (DividesByDistance, "groups of five at one point each: results are finite"),
        (DividesByDirection, "results are finite"),
        (Explodes, "stays calm"),
        (LongHeadings, "a heading is a unit vector"),
        (ChangesDirections, "inputs are not changed, but directions of row"),
        (ChangesState, "inputs are not changed, but state.velocity of row"),
        (ChangesNear, r"inputs are not changed, but near.neighbours\(\).(met_)?radius"),
        (ChangesLists, r"inputs are not changed, but near.csr\(\).indices"),
        (RollsDice, "the same call gives the same bits"),
        (SmoothsSecretly, "the same call gives the same bits"),
        (ChangesItsMind, "a resumed run equals the run that was never stopped"),
        (StoresObjects, "dict of NumPy arrays"),
        (FollowsWhoWasDoneBefore, "does not depend on the other members"),
        (LooksAtSmallerIds, "numbered in another order"),
        (WandersById, "numbered in another order.*ids_matter=True"),
        (WandersByRow, "does not depend on its row number|does not depend on the other members"),
        (DriftsWithTheMean, "1 thread and 2 threads"),
        (NeedsSomebody, "no agents: it must work there"),
        (FlatOnly, r"FlatOnly works in 2D.*dims=\(2,\)"),
    ],
)
def test_a_broken_promise_is_named(model: Callable[[], Any], promise: str) -> None:
    with pytest.raises(ContractViolation, match=promise):
        check_steering(model())


def test_random_numbers_by_id_pass_when_that_is_said() -> None:
    check_steering(WandersById(), ids_matter=True)


def test_random_numbers_by_row_are_found_even_then() -> None:
    with pytest.raises(ContractViolation, match="its row number"):
        check_steering(WandersByRow(), ids_matter=True)


def test_a_model_for_2d_passes_when_that_is_said() -> None:
    check_steering(FlatOnly(), dims=(2,))


def test_a_crowd_on_cells_keeps_its_promises() -> None:
    check_steering(tropel.Lattice, planner=tropel.PathPlans, dims=(2,), ids_matter=True)


def test_a_crowd_on_cells_that_draws_by_row_is_found() -> None:
    class DrawsByRow(tropel.Lattice):
        def steer(self, moment: Moment, out: Steered) -> None:
            renumbered = copy.copy(moment.state)
            renumbered.columns = moment.state.columns | {"id": np.arange(len(moment.state))}
            super().steer(replace(moment, state=renumbered), out)

    with pytest.raises(ContractViolation, match="its row number"):
        check_steering(DrawsByRow, planner=tropel.PathPlans, dims=(2,), ids_matter=True, dt=0.2)


def test_the_users_own_planner_environment_world_and_agents_are_used() -> None:
    asked = []

    class Ahead(tropel.Planner):
        def direct(self, moment: Moment, out: Guidance) -> None:
            asked.append(len(moment.members))
            out.directions[moment.members, 0] = 1.0

    class Coarse(tropel.Grid):
        def sense(self, moment: Moment) -> Any:
            asked.append(-1)
            return super().sense(moment)

    check_steering(
        Stroll(),
        planner=Ahead,
        environment=Coarse(cell=4.0),
        world=tropel.World(shapely.box(0, 0, 9, 9)),
        agents=[tropel.Group("a", count=10), tropel.Group("b", count=5)],
    )
    assert 15 in asked
    assert -1 in asked
