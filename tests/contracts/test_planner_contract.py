"""`check_planner` accepts planners that keep their promises and names the promise that a planner breaks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba
import numpy as np
import pytest
import shapely
from numpy.typing import NDArray

import tropel
from tropel._kernels.compile import parallel_kernel
from tropel.agents.state import AgentState, Column
from tropel.contracts import Declaration, Guidance, Moment
from tropel.errors import ParameterError
from tropel.testing import ContractViolation, check_planner

Floats = NDArray[np.float64]
Rows = NDArray[np.int64]


class ToTheMiddle(tropel.Planner):
    """What a user may write first: everybody to one point."""

    def prepare(self, moment: Moment) -> None:
        self.world = moment.world

    def aim(self, state: AgentState, members: Rows) -> Floats:
        there = self.world.bounds.mean(axis=0) - state.position[members]
        length = np.linalg.norm(there, axis=1, keepdims=True)
        return np.divide(there, length, out=np.zeros_like(there), where=length > 0.0)

    def direct(self, moment: Moment, out: Guidance) -> Any:
        out.directions[moment.members] = self.aim(moment.state, moment.members)


class WritesEverybody(ToTheMiddle):
    def direct(self, moment: Moment, out: Guidance) -> None:
        out.directions[:] = self.aim(moment.state, np.arange(len(moment.state)))


class TakesIdsForRows(ToTheMiddle):
    def direct(self, moment: Moment, out: Guidance) -> None:
        state = moment.state
        out.directions[state.id[moment.members] % max(len(state), 1)] = self.aim(state, moment.members)


class ReturnsItsResult(ToTheMiddle):
    def direct(self, moment: Moment, out: Guidance) -> Floats:
        return self.aim(moment.state, moment.members)


class ReplacesTheBuffer(ToTheMiddle):
    def direct(self, moment: Moment, out: Guidance) -> None:
        fresh = out.directions.copy()
        fresh[moment.members] = self.aim(moment.state, moment.members)
        out.directions = fresh


class CountsSteps(ToTheMiddle):
    """Has a memory column and a parameter column of its own, as it should."""

    declares = Declaration(
        columns=(Column(name="stamina", default=20.0),), memory=(Column(name="steps_asked", dtype="int32"),)
    )

    def direct(self, moment: Moment, out: Guidance) -> None:
        rows = moment.members
        asked = moment.state.columns["steps_asked"][rows]
        slower = 1.0 + asked / moment.state.columns["stamina"][rows]
        out.directions[rows] = self.aim(moment.state, rows) / slower[:, None]
        out.memory["steps_asked"][rows] = asked + 1


class CountsStrangers(CountsSteps):
    def direct(self, moment: Moment, out: Guidance) -> None:
        super().direct(moment, out)
        out.memory["steps_asked"][:] = moment.state.columns["steps_asked"] + 1


class ReplacesItsMemory(CountsSteps):
    def direct(self, moment: Moment, out: Guidance) -> None:
        super().direct(moment, out)
        out.memory["steps_asked"] = moment.state.columns["steps_asked"] + 1


class AddsToItsMemory(CountsSteps):
    """Writes a column that it has not declared."""

    def direct(self, moment: Moment, out: Guidance) -> None:
        super().direct(moment, out)
        out.memory["more"] = np.zeros(len(moment.state))


class CountsInTheState(CountsSteps):
    """Writes its memory where everybody reads it, instead of into `out`."""

    def direct(self, moment: Moment, out: Guidance) -> None:
        super().direct(moment, out)
        moment.state.columns["steps_asked"][moment.members] += 1


class LooksAround(ToTheMiddle):
    """Wants to know who is near, which no planner is told."""

    def direct(self, moment: Moment, out: Guidance) -> None:
        moment.near.csr()
        super().direct(moment, out)


class GoesOnAsBefore(ToTheMiddle):
    """Wants to know what was planned, while it is being planned."""

    def direct(self, moment: Moment, out: Guidance) -> None:
        out.directions[moment.members] = moment.directions[moment.members]


class DividesByZero(ToTheMiddle):
    def direct(self, moment: Moment, out: Guidance) -> None:
        super().direct(moment, out)
        out.directions[moment.members[5:6]] = np.nan


class Overlong(ToTheMiddle):
    def direct(self, moment: Moment, out: Guidance) -> None:
        out.directions[moment.members] = 1.5 * self.aim(moment.state, moment.members)


class MovesPeople(ToTheMiddle):
    def direct(self, moment: Moment, out: Guidance) -> None:
        super().direct(moment, out)
        moment.state.position[moment.members[3:4]] += 1e-12


class ChangesTheWorld(ToTheMiddle):
    def direct(self, moment: Moment, out: Guidance) -> None:
        super().direct(moment, out)
        self.world.goals().radius[:] += 0.1


class SortsMembersAway(ToTheMiddle):
    def direct(self, moment: Moment, out: Guidance) -> None:
        super().direct(moment, out)
        moment.members[:] = moment.members[::-1].copy()


class RollsDice(ToTheMiddle):
    def direct(self, moment: Moment, out: Guidance) -> None:
        members = moment.members
        out.directions[members] = self.aim(moment.state, members) * np.random.uniform(size=(len(members), 1))  # noqa: NPY002


class RemembersSecretly(ToTheMiddle):
    calls = 0

    def direct(self, moment: Moment, out: Guidance) -> None:
        self.calls += 1
        out.directions[moment.members] = self.aim(moment.state, moment.members) / self.calls


class RemembersSlowly(RemembersSecretly):
    """The same bits call after call for a while, so that only a resumed run tells."""

    def direct(self, moment: Moment, out: Guidance) -> None:
        self.calls += 1
        out.directions[moment.members] = self.aim(moment.state, moment.members) * (1.0 if self.calls < 10 else 0.5)


class RemembersOpenly(RemembersSecretly):
    def state(self) -> dict[str, NDArray[Any]]:
        return {"calls": np.array(self.calls)}

    def restore(self, stored: dict[str, NDArray[Any]]) -> None:
        self.calls = int(stored["calls"])


class ForgetsToRestore(RemembersOpenly):
    def restore(self, stored: dict[str, NDArray[Any]]) -> None:
        pass


class StoresAndCannotRestore(ToTheMiddle):
    def state(self) -> dict[str, NDArray[Any]]:
        return {"calls": np.array(1)}


class StoresObjects(RemembersOpenly):
    def state(self) -> dict[str, NDArray[Any]]:
        return {"calls": np.array([self.calls, None])}


class StoresNumbers(RemembersOpenly):
    def state(self) -> dict[str, Any]:
        return {"calls": self.calls}


class SharesItsMemory(ToTheMiddle):
    """Copies of this planner are not independent of each other."""

    calls: list[int] = []  # noqa: RUF012

    def direct(self, moment: Moment, out: Guidance) -> None:
        self.calls.append(1)
        out.directions[moment.members] = self.aim(moment.state, moment.members) / len(self.calls)


class CountsRows(ToTheMiddle):
    def direct(self, moment: Moment, out: Guidance) -> None:
        members = moment.members
        out.directions[members] = self.aim(moment.state, members) * (0.5 + 0.5 * (members[:, None] % 2))


class GivesWayToSmallerIds(ToTheMiddle):
    """Depends on ids, on purpose: stands while somebody with a smaller id is near."""

    def direct(self, moment: Moment, out: Guidance) -> None:
        state, members = moment.state, moment.members
        apart = np.linalg.norm(state.position[members][:, None] - state.position[None], axis=2)
        near = apart <= 0.5 * state.sense_radius[None, :]
        smaller = state.id[None, :] < state.id[members][:, None]
        out.directions[members] = self.aim(state, members) * ~(near & smaller).any(axis=1)[:, None]


class FollowsWhoWasDoneBefore(ToTheMiddle):
    def direct(self, moment: Moment, out: Guidance) -> None:
        members = moment.members
        aims = self.aim(moment.state, members)
        for k, row in enumerate(members):
            out.directions[row] = aims[k] if k == 0 else 0.5 * (aims[k] + out.directions[members[k - 1]])


class NeedsSomebody(ToTheMiddle):
    def direct(self, moment: Moment, out: Guidance) -> None:
        moment.state.position.max(axis=0)
        super().direct(moment, out)


class NeedsMembers(ToTheMiddle):
    def direct(self, moment: Moment, out: Guidance) -> None:
        moment.state.id[moment.members].max()
        super().direct(moment, out)


class AsksForThreads(ToTheMiddle):
    def direct(self, moment: Moment, out: Guidance) -> None:
        out.directions[moment.members] = self.aim(moment.state, moment.members) / numba.get_num_threads()


@parallel_kernel
def _sum_in_parts(values, parts):
    partial = np.zeros(parts)
    for part in numba.prange(parts):
        for k in range(part * values.size // parts, (part + 1) * values.size // parts):
            partial[part] += values[k]
    return partial.sum()


class SumsByThread(ToTheMiddle):
    """A float sum with a partial sum per thread: its rounding depends on how many there are."""

    def direct(self, moment: Moment, out: Guidance) -> None:
        total = _sum_in_parts(moment.state.position[:, 0].copy(), numba.get_num_threads())
        out.directions[moment.members] = self.aim(moment.state, moment.members) * (0.5 + 1e-3 * (total % 1.0))


class FlatOnly(ToTheMiddle):
    def prepare(self, moment: Moment) -> None:
        if moment.world.dim != 2:
            raise ParameterError("FlatOnly works in 2D; use another planner in a box")
        super().prepare(moment)


@pytest.mark.parametrize(
    "planner", [tropel.Direct(), ToTheMiddle(), RemembersOpenly(), CountsSteps(), ToTheMiddle, tropel.Direct]
)
def test_planners_that_keep_their_promises_pass(planner: Any) -> None:
    check_planner(planner)


@pytest.mark.parametrize(
    ("planner", "promise"),
    [
        (WritesEverybody, "writes only the rows of its members"),
        (TakesIdsForRows, "writes only the rows of its members"),
        (ReturnsItsResult, "results are written into out"),
        (ReplacesTheBuffer, "results are written into the arrays of out, but out.directions is a different array"),
        (CountsStrangers, r"writes only the rows of its members.*out\.memory\['steps_asked'\] of row \d+"),
        (ReplacesItsMemory, r"written into the arrays of out, but out\.memory\['steps_asked'\] is a different array"),
        (AddsToItsMemory, r"written into the arrays of out, but out\.memory\['more'\] is a different array"),
        (CountsInTheState, r"inputs are not changed, but state\.steps_asked of row 0"),
        (LooksAround, "nothing has been sensed here: `near` is for steer"),
        (GoesOnAsBefore, "there is no guidance before planning: read it in steer"),
        (DividesByZero, "finite"),
        (Overlong, "no longer than one"),
        (MovesPeople, "inputs are not changed"),
        (ChangesTheWorld, "inputs are not changed"),
        (SortsMembersAway, "inputs are not changed"),
        (RollsDice, "the same call gives the same bits"),
        (RemembersSecretly, "the same call gives the same bits"),
        (RemembersSlowly, "a resumed run equals the run that was never stopped"),
        (ForgetsToRestore, "the same call gives the same bits"),
        (StoresAndCannotRestore, "what state\\(\\) returns can be restored"),
        (StoresObjects, "dict of NumPy arrays"),
        (StoresNumbers, "dict of NumPy arrays"),
        (SharesItsMemory, "the same call gives the same bits"),
        (CountsRows, "does not depend on its row number"),
        (GivesWayToSmallerIds, "numbered in another order"),
        (FollowsWhoWasDoneBefore, "does not depend on the other members"),
        (NeedsSomebody, "no agents"),
        (NeedsMembers, "no members"),
        (AsksForThreads, "1 thread and 2 threads"),
        (SumsByThread, "1 thread and 2 threads"),
        (FlatOnly, r"FlatOnly works in 2D.*dims=\(2,\)"),
    ],
)
def test_a_broken_promise_is_named(planner: Callable[[], Any], promise: str) -> None:
    with pytest.raises(ContractViolation, match=promise):
        check_planner(planner())


def test_a_violation_tells_layer_scene_agent_and_remedy() -> None:
    with pytest.raises(AssertionError) as caught:
        check_planner(MovesPeople())
    message = str(caught.value)
    assert "MovesPeople.direct() in the 2D hall with 240 agents, step 0" in message
    # Members are rows 0, 2, 3, 5, …; every seventh agent has left, so row 5 is agent 6.
    assert "state.position of row 5 (agent 6) was" in message
    assert message.endswith("work on a copy; the state of all agents is frozen during the step")


def test_a_planner_for_2d_passes_when_that_is_said() -> None:
    check_planner(FlatOnly(), dims=(2,))


def test_dependence_on_ids_is_accepted_when_it_is_declared() -> None:
    check_planner(GivesWayToSmallerIds(), ids_matter=True, dims=(2,))


def test_dependence_on_rows_is_found_even_when_ids_matter() -> None:
    with pytest.raises(ContractViolation, match="its row number"):
        check_planner(CountsRows(), ids_matter=True)


def test_a_world_and_agents_of_the_users_own_are_used() -> None:
    world = tropel.World(shapely.box(0, 0, 8, 8), exits={"door": shapely.box(7, 3, 8, 5)})
    check_planner(tropel.Direct(), world=world, agents=[tropel.Group("people", count=12)])
    with pytest.raises(ContractViolation, match="in the given 2D world"):
        check_planner(Overlong(), world=world, agents=tropel.Group("people", count=12))


def test_agents_without_a_world_are_refused() -> None:
    with pytest.raises(ParameterError, match="without a world"):
        check_planner(tropel.Direct(), agents=[tropel.Group("people", count=3)])


def test_what_is_no_planner_is_refused() -> None:
    said = (
        "42 is not a tropel.Planner, nor a class or function that makes one; extend tropel.Planner and write its method"
    )
    with pytest.raises(ParameterError, match=f"{said} direct"):
        check_planner(42)


def test_a_class_with_the_right_method_is_no_planner_unless_it_says_so() -> None:
    class Lookalike:
        def direct(self, moment: Moment, out: Guidance) -> None:
            out.directions[moment.members] = 0.0

    with pytest.raises(ParameterError, match=r"Lookalike object at .* is not a tropel\.Planner"):
        check_planner(Lookalike())


def test_the_planner_given_is_left_as_it_was() -> None:
    planner = RemembersOpenly()
    check_planner(planner)
    assert planner.calls == 0
    assert not hasattr(planner, "world")
