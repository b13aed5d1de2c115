"""Tasks in the stage `decide`: who has come, what is done, and who does what from now on.

The board (`agents/tasks/board.py`) remembers, a layer (`contracts/sharing.py`) shares out, and this module tells both
what is going on. Tasks are shared out anew when somebody that works drops out or joins in, and when a task is added,
dropped or done. Agents that are at work with a complete team are left alone, and so are those on their way, if the
layer does not recall them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from tropel.agents.arriving import at_goal
from tropel.agents.stages.stage import Now
from tropel.agents.stages.verbs import stand_aside
from tropel.agents.stages.work import Work
from tropel.agents.state import POINT
from tropel.agents.tasks.board import DONE, DROPPED, ELSEWHERE, NOT_YET, OUT, Posted, TaskBoard
from tropel.agents.tasks.distance import straight_distance
from tropel.agents.tasks.task import NO_TASK, TASK
from tropel.agents.whole_crowd import ids_of, own_rows
from tropel.contracts.distances import OfferedDistance
from tropel.contracts.offers import offered
from tropel.contracts.sharing import Market, Sharing
from tropel.world.periodic import nearest_images

if TYPE_CHECKING:
    from tropel.simulation import Simulation

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
#: Slower agents count as this fast, or no task would be near enough for somebody that stands [m/s].
_SLOWEST = 0.01


class _Doing:
    """One call of `attend`: the simulation, its board, and who works on which types of tasks now."""

    def __init__(self, sim: Simulation, now: Now, board: TaskBoard, sharing: Sharing) -> None:
        self.sim, self.now, self.board, self.sharing = sim, now, board, sharing
        state = sim.agents
        kinds: dict[str, Ints] = {}
        for stage, rows in sim.population.agendas.in_stages_of(Work, state, now.living):
            kinds[stage.work] = np.concatenate([kinds.get(stage.work, rows[:0]), rows])
        every = sorted({"any", *(posted.task.type for posted in board.posted if posted.is_open)})
        self.by_kind = {kind: ids_of(kinds.get(kind, now.living[:0]), state, now.reduce) for kind in every}
        rows = np.concatenate([now.living[:0], *kinds.values()])
        self.available = ids_of(rows, state, now.reduce)

    def able(self, posted: Posted, agents: Ints) -> NDArray[np.bool_]:
        """Which agents are in a stage in which they work on tasks of this type."""
        return np.isin(agents, self.by_kind["any"]) | np.isin(agents, self.by_kind[posted.task.type])

    # Who has come, and what is done -----------------------------------------------------------------------------

    def let_go(self) -> None:
        """Whoever is gone, dead or does something else has no task any more."""
        board, step = self.board, self.now.step
        agents, tasks, _ = board.at_present()
        if len(agents):
            out = ~np.isin(agents, self.available)
            for number in np.unique(tasks).tolist():
                own = tasks == number
                out[own] |= ~self.able(board.posted[number], agents[own])
            if out.any():
                board.leave(agents[out].tolist(), OUT, step=step)
                board.news = True
        if not np.array_equal(self.available, board.available):
            board.available, board.news = self.available, True

    def work(self) -> list[int]:
        """Note who is there, and let complete teams work; returns the numbers of tasks that are done."""
        board, step = self.board, self.now.step
        agents, tasks, _ = board.at_present()
        there = self._there(agents, tasks)
        board.arrive(there, step=step)
        busy = np.flatnonzero((board.per_task(there) >= board.wanted()) & (board.per_task() > 0))
        done = []
        for number in busy.tolist():
            posted = board.posted[number]
            if posted.begun == NOT_YET:
                board.begin(number, step=step)
            if posted.is_done_after(self.now.dt):
                done.append(number)
            posted.worked += 1
        return done

    def _there(self, agents: Ints, tasks: Ints) -> NDArray[np.bool_]:
        """Which agents are where their task is."""
        state, world = self.sim.agents, self.sim.world
        rows, own = own_rows(agents, state)
        there = np.zeros(len(agents), dtype=np.bool_)
        for number in np.unique(tasks[own]).tolist():
            posted = self.board.posted[number]
            mine = np.flatnonzero(own & (tasks == number))
            seen = self.now.seen_within[state.group[rows[mine]]]
            there[mine] = at_goal(state, world, rows[mine], seen_within=seen, within=posted.task.within)
            hazard = posted.task.hazard
            if hazard is not None and hazard in world.hazards:
                at = world.hazards.names.index(hazard)
                offset = nearest_images(state.position[rows[mine]] - world.hazards.position[at], world.period)
                reach = world.hazards.inner[at] + posted.task.within + state.radius[rows[mine]]
                there[mine] |= np.linalg.norm(offset, axis=1) <= reach
        return np.asarray(self.now.reduce.counts(there.astype(np.int64)) > 0)

    def finish(self, done: list[int]) -> None:
        """End tasks that are done, and those whose hazard has gone out by itself."""
        board, sim, step = self.board, self.sim, self.now.step
        over = dict.fromkeys(done, DONE)
        for number, posted in enumerate(board.posted):
            hazard = posted.task.hazard
            if posted.is_open and hazard is not None and hazard not in sim.world.hazards:
                over.setdefault(number, DROPPED)
        for number, status in over.items():
            posted = board.posted[number]
            board.end(number, status, step=step)
            if status == DONE and posted.task.hazard is not None:
                sim.world.hazards.remove(posted.task.hazard)
                sim.population.happened.note("remove_hazard", {"name": posted.task.hazard}, step=step)

    # Who does what ----------------------------------------------------------------------------------------------

    def share(self) -> None:
        """Share out tasks, or go on with that."""
        board, sharing = self.board, self.sharing
        if board.news:
            board.news = False
            market = self._market()
            rows = sharing.admitted(market)
            places = market.slots(rows)
            board.market = market.tasks[places], market.agents
            chosen = sharing.match(market.cost[places], market) if len(places) else places
        elif board.market is not None:
            chosen = sharing.go_on()
        else:
            return
        if chosen is not None:
            places, agents = board.market
            board.market = None
            self._send(dict(zip(agents[chosen].tolist(), places.tolist(), strict=True)), agents)

    def _market(self) -> Market:
        """The tasks and agents that are to be shared out, and what each would cost."""
        board = self.board
        agents, tasks, there = board.at_present()
        wanted, teams = board.wanted(), board.per_task()
        settled = (teams >= wanted) & (teams > 0)
        if self.sharing.recalls:
            settled &= board.per_task(there) >= wanted
        is_open = np.array([posted.is_open for posted in board.posted], dtype=np.bool_)
        numbers = np.flatnonzero(is_open & ~settled).astype(np.int64)
        free = np.setdiff1d(self.available, agents[settled[tasks]] if len(agents) else agents)
        return Market(
            tasks=numbers,
            wanted=wanted[numbers],
            priority=np.array([board.posted[number].task.priority for number in numbers.tolist()]),
            agents=free,
            cost=self._cost(numbers, free),
            step=self.now.step,
            seed=self.now.seed,
        )

    def _cost(self, numbers: Ints, agents: Ints) -> Floats:
        """What it costs each agent to do each task [s]; infinite if it cannot."""
        state, sim = self.sim.agents, self.sim
        rows, own = own_rows(agents, state)
        mine = np.flatnonzero(own)
        cost = np.zeros((len(numbers), len(agents)))
        for k, number in enumerate(numbers.tolist()):
            posted, at = self.board.posted[number], rows[mine]
            task = posted.task
            seconds = self._lengths(posted, at) / np.maximum(state.desired_speed[at], _SLOWEST)
            for attribute, worth in task.suits.items():
                seconds -= worth * state.columns[attribute][at]
            fit = self.able(posted, agents[mine])
            for attribute, least in task.needs.items():
                fit &= state.columns[attribute][at] >= least
            if task.groups is not None:
                fit &= np.isin(state.group[at], [sim.groups.index(name) for name in task.groups])
            if posted.aim.number == POINT:
                fit &= ~self.now.on_cells[state.group[at]]
            cost[k, mine] = np.where(fit & ~np.isnan(seconds), seconds, np.inf)
        # Each agent is moved by one process; the others add zeros to its bits.
        return self.now.reduce.counts(cost.view(np.int64)).view(np.float64)

    def _lengths(self, posted: Posted, rows: Ints) -> Floats:
        """How far agents have to go to a task [m]: along their planner's path if it knows it, else straight."""
        sim, state = self.sim, self.sim.agents
        away = np.empty(len(rows))
        for group in np.unique(state.group[rows]).tolist():
            of_group = state.group[rows] == group
            offers = offered([sim.layers.planners[group]], OfferedDistance)
            for radius in np.unique(state.radius[rows[of_group]]).tolist():
                own = of_group & (state.radius[rows] == radius)
                position = state.position[rows[own]]
                length = offers[0].length(posted.aim, position, radius) if offers else None
                away[own] = straight_distance(sim.world, posted.aim, position) if length is None else length
        return away

    def _send(self, to: dict[int, int], agents: Ints) -> None:
        """Send agents to tasks; the others of `agents` are free."""
        board, step = self.board, self.now.step
        elsewhere = [agent for agent in agents.tolist() if board.task_of(agent) not in (NO_TASK, to.get(agent))]
        board.leave(elsewhere, ELSEWHERE, step=step)
        state = self.sim.agents
        for agent in sorted(to):
            if board.task_of(agent) == to[agent]:
                continue
            board.assign(agent, to[agent], step=step)
            row = int(state.row_of(np.array([agent]))[0])
            if 0 <= row < state.owned:
                state.goal[row], state.goal_point[row] = board.posted[to[agent]].aim

    def write_column(self) -> None:
        """Repeat in the column `task` who has which; agents that are without one now stand."""
        state = self.sim.agents
        agents, tasks, _ = self.board.at_present()
        rows, own = own_rows(agents, state)
        column = np.full(len(state), NO_TASK, dtype=np.int32)
        column[rows[own]] = tasks[own]
        free = self.now.living
        free = free[(state.columns[TASK.name][free] != NO_TASK) & (column[free] == NO_TASK)]
        # Agents that dropped out because of another stage have the goal of that stage.
        free = free[np.isin(state.id[free], self.available)]
        if len(free):
            stand_aside(self.now.of(free))
        state.columns[TASK.name] = column


def attend(sim: Simulation, now: Now, board: TaskBoard, sharing: Sharing) -> None:
    """Let agents work, and share out what is to be done."""
    doing = _Doing(sim, now, board, sharing)
    doing.let_go()
    doing.finish(doing.work())
    doing.share()
    doing.write_column()
