"""The tab "Agent": the selected agent, its state, its neighbours and its planned direction."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from tropel.agents.goals import goal_name
from tropel.agents.squads.columns import ATTACK, MEMBER, NO_ROLE, ORDERS, ROLES
from tropel.agents.state import CORE_COLUMNS, NO_GOAL
from tropel.contracts.in_view import rows_in_view
from tropel.contracts.offers import OfferedField, offered
from tropel.pictures import style
from tropel.viewer.colours import plain
from tropel.viewer.frame import in_space
from tropel.viewer.shapes3d import rgb
from tropel.world.periodic import nearest_images

if TYPE_CHECKING:
    from tropel.simulation import Simulation
    from tropel.viewer.live.page import Page

Floats = NDArray[np.float64]

#: Beyond this number, neighbours are counted but not listed.
_MOST_LISTED = 12
_NOT_SHOWN = frozenset(
    {"id", "group", "position", "velocity", "heading", "goal", "leader", "dead", "agenda", "stage"}
) | {
    "stage_since",
    "stage_until",
}
NOBODY = "Click on an agent in the world to see its state. In *Disturb*, a click must be set to the tool that selects."


@dataclass(frozen=True, eq=False, kw_only=True)
class Portrait:
    """What is known about one agent."""

    id: int
    group: str
    position: Floats
    radius: float
    speed: float
    goal: str
    dead: bool
    columns: dict[str, tuple[float, str]]  #: name → value and unit
    neighbours: NDArray[np.int64]  #: ids of those that it knows of, the nearest first
    direction: Floats | None  #: planned, of length 1 or shorter
    leads: int = 0  #: how many agents follow it
    follows: int | None = None  #: the id of its leader
    doing: tuple[tuple[str, str], ...] = ()  #: its stage, for how long, and the next one
    knows: tuple[tuple[str, str], ...] = ()  #: what it knows of doors, hazards and so on, if its knowledge is limited


def portrait(sim: Simulation, agent: int) -> Portrait | None:
    """The portrait of an agent; None if it is no longer there."""
    agents = sim.agents
    rows = agents.rows_of([agent])
    if not len(rows):
        return None
    row = int(rows[0])
    near = rows_in_view(row, sim.environment.known_to(row, agents, sim.world), agents, sim.world)
    away = np.linalg.norm(nearest_images(agents.position[near] - agents.position[row], sim.world.period), axis=1)
    return Portrait(
        id=agent,
        group=sim.groups[int(agents.group[row])],
        position=agents.position[row].copy(),
        radius=float(agents.radius[row]),
        speed=float(np.linalg.norm(agents.velocity[row])),
        goal=_goal_of(sim, row),
        dead=bool(agents.dead[row]),
        columns=_columns(sim, row),
        neighbours=agents.id[near[np.argsort(away, kind="stable")]],
        direction=planned_direction(sim, row),
        leads=_followers(sim, row),
        follows=_leader_of(sim, row),
        doing=(*_in_squad(sim, row), *_doing(sim, row), *_named_states(sim, row)),
        knows=tuple(_knows(sim, row)),
    )


def _leader_of(sim: Simulation, row: int) -> int | None:
    leader = sim.agents.columns.get("leader")
    return None if leader is None or leader[row] < 0 else int(leader[row])


def _followers(sim: Simulation, row: int) -> int:
    leader = sim.agents.columns.get("leader")
    return 0 if leader is None else int(((leader == sim.agents.id[row]) & (sim.agents.dead == 0)).sum())


def _goal_of(sim: Simulation, row: int) -> str:
    """Where an agent goes to."""
    return goal_name(sim.world, int(sim.agents.goal[row]), sim.agents.goal_point[row])


def _doing(sim: Simulation, row: int) -> list[tuple[str, str]]:
    """What an agent does, since when and how much longer, and what it does next; nothing without stages."""
    agents, agendas = sim.agents, sim.population.agendas
    present = agendas.present(agents, row)
    if present is None:
        return []
    number, place = int(agents.agenda[row]), int(agents.stage[row])
    left = float(agents.stage_until[row]) - sim.time
    text = f"{present}" + (f" (stage {place + 1} of {len(agendas[number].stages)})" if place >= 0 else "")
    if left > 0.0:
        text += f", {left:.1f} s left"
    found = [("stage", text), ("in it for", f"{sim.time - float(agents.stage_since[row]):.1f} s")]
    if number >= 0:
        stages, repeat = agendas[number].stages, agendas[number].repeat
        is_last = place + 1 == len(stages) and not repeat
        found.append(("next", "nothing" if is_last else str(stages[(place + 1) % len(stages)])))
    return found + _task_of(sim, row)


def _task_of(sim: Simulation, row: int) -> list[tuple[str, str]]:
    """The task of an agent, and how far it is; nothing if it has none."""
    board = sim.population.tasks
    part = None if board is None else board.present.get(int(sim.agents.id[row]))
    if board is None or part is None:
        return []
    posted = board.posted[part.task]
    there = "on the way" if part.arrived < 0 else f"there since {part.arrived * sim.dt:.1f} s"
    done = f"{posted.worked * sim.dt:.1f} of {posted.task.work:g} s"
    team = [other for other in board.present.values() if other.task == part.task]
    arrived = sum(other.arrived >= 0 for other in team)
    return [
        ("task", f"{posted.name}, {there}"),
        ("work done", done),
        ("team", f"{arrived} of {posted.task.agents} there, {len(team) - arrived} on the way"),
    ]


def _named_states(sim: Simulation, row: int) -> list[tuple[str, str]]:
    """States of an agent that have names, such as its mood."""
    return [(column, names[int(sim.agents.columns[column][row])]) for column, names in sim.layers.named_states.items()]


def _in_squad(sim: Simulation, row: int) -> list[tuple[str, str]]:
    """The role of an agent in its squad, its order, and the mission; nothing for agents in no squad."""
    agents = sim.agents
    role = int(agents.columns["role"][row]) if "role" in agents.columns else NO_ROLE
    if role == NO_ROLE:
        return []
    squad = sim.squads[sim.groups[int(agents.group[row])]]
    mission = squad.mission + (" (by order; the mission goes on afterwards)" if squad.interrupted else "")
    order = int(agents.columns["order"][row])
    found = [("role", ROLES[role]), ("mission", mission), ("stance", squad.stance)]
    if role == MEMBER or order == ATTACK:
        found.append(("order", ORDERS[order]))
    return [*found, ("searches", squad.room)] if squad.room else found


def _knows(sim: Simulation, row: int) -> list[tuple[str, str]]:
    """What an agent knows of things that change, since when and from whom; what it does not know is left out."""
    if sim.layers.knowledge is None:
        return []
    found = []
    for fact in sim.layers.knowledge.facts_of_row(row) or ():
        if fact.state == "unknown":
            continue
        own = fact.source == int(sim.agents.id[row])
        told = "seen" if own else f"from agent {fact.source}" if isinstance(fact.source, int) else f"from {fact.source}"
        when = "" if fact.time is None else f" {max(sim.time - fact.time, 0.0):.1f} s ago"
        found.append((f"knows {fact.thing}", f"{fact.state}, {told}{when}"))
    if len(found) > _MOST_LISTED:
        found = [*found[:_MOST_LISTED], ("knows", f"{len(found) - _MOST_LISTED} more things")]
    return found


def _columns(sim: Simulation, row: int) -> dict[str, tuple[float, str]]:
    """The values in force for an agent: its own, or those of its model where it has none; not those of other models."""
    agents, number = sim.agents, int(sim.agents.group[row])
    deciding = [decision for decision, groups in sim.layers.decisions if number in groups]
    own = (sim.environment, sim.layers.planners[number], *deciding, sim.layers.models[number])
    shown: dict[str, tuple[float, str]] = {}
    for column in (*CORE_COLUMNS, *(column for layer in own for column in layer.all_columns)):
        if column.name in _NOT_SHOWN or column.name in sim.layers.named_states or column.vector or column.width:
            continue
        value = float(agents.columns[column.name][row])
        if np.isnan(value) and column.name in {each.name for each in own[-1].declares.columns}:
            value = float(own[-1].in_force(agents, column.name)[row])
        shown[column.name] = value, column.unit
    return shown


def planned_direction(sim: Simulation, row: int) -> Floats | None:
    """The direction planned in the last step for the agent now in a row; on cells, the direction of its field."""
    agents = sim.agents
    left = sim.population.departures()
    # Agents that left at the end of that step were still there when it was planned.
    gone_since = left["id"][left["time"] == sim.time]
    row_then = row + int((gone_since < agents.id[row]).sum())
    wanted = sim.directions
    if 0 < len(wanted) == len(agents) + len(gone_since):
        return np.array(wanted[row_then])
    fields = offered([sim.planners[sim.groups[int(agents.group[row])]]], OfferedField)
    if not fields or not fields[0].alone or agents.goal[row] <= NO_GOAL:
        return None
    field = fields[0].field(goal_name(sim.world, int(agents.goal[row])))
    return np.array(field.vectors[tuple(field.raster.index_of(agents.position[row]))])


class Selection:
    """Shows the selected agent, and follows it if wanted."""

    def __init__(self, page: Page) -> None:
        from tropel.viewer.live.page import Watch

        self._page = page
        gui = page.server.gui
        self._text = gui.add_markdown(NOBODY)
        self._follow = gui.add_checkbox("Follow", False, hint="The camera follows the agent.")
        self._none = gui.add_button("Clear selection")
        self._none.on_click(lambda event: self.choose(None))
        page.watch(Watch(look=self._look, show=self._show, seconds=0.0))

    def choose(self, agent: int | None) -> None:
        """Select an agent by id; None clears the selection."""
        self._page.selected = agent
        self._page.redraw()

    def _look(self, sim: Simulation) -> Portrait | int | None:
        agent = self._page.selected
        if agent is None:
            return None
        return portrait(sim, agent) or agent

    def _show(self, seen: Portrait | int | None) -> None:
        scene = self._page.server.scene
        if not isinstance(seen, Portrait):
            scene.remove_by_name("/selected")
            self._set(NOBODY if seen is None else f"Agent {seen} is no longer there.")
            return
        self._set(described(seen))
        self._draw(seen)
        if self._follow.value:
            self._go_along(seen.position)

    def _set(self, text: str) -> None:
        if self._text.content != text:
            self._text.content = text

    def _draw(self, seen: Portrait) -> None:
        scene = self._page.server.scene
        x, y, z = in_space(seen.position[None])[0].tolist()
        flat = len(seen.position) == 2
        reach = 1.8 * seen.radius
        if flat:
            angle = np.linspace(0.0, 2.0 * np.pi, 33)
            ring = np.stack([x + reach * np.cos(angle), y + reach * np.sin(angle), np.full(33, 0.12)], axis=1)
        else:
            ring = np.array([[x - reach, y, z], [x + reach, y, z], [x, y - reach, z], [x, y + reach, z]])
        pairs = np.stack([ring[:-1], ring[1:]], axis=1) if flat else ring.reshape(2, 2, 3)
        scene.add_line_segments("/selected/ring", pairs, colors=rgb(style.INK), thickness=3.0, thickness_units="screen")
        if seen.direction is None or not np.linalg.norm(seen.direction) > 1e-6:
            scene.remove_by_name("/selected/wanted")
            return
        ahead = in_space(seen.direction[None])[0]
        begin = np.array([x, y, z + (3.0 * seen.radius if flat else 0.0)])
        size = 8.0 * seen.radius
        scene.add_arrows(
            "/selected/wanted",
            np.stack([begin, begin + size * ahead])[None].astype(np.float32),
            colors=rgb(style.TARGET),
            shaft_radius=0.03 * size,
            head_radius=0.1 * size,
            head_length=0.25 * size,
        )

    def _go_along(self, position: Floats) -> None:
        """Move the camera of every page so that it looks at the agent.

        Relative to what the camera looks at now, not to the agent's last step, because pages report their camera late.
        """
        for client in self._page.server.get_clients().values():
            away = position - client.camera.look_at[: len(position)]
            # Moving the camera also moves the point it looks at.
            client.camera.position = client.camera.position + in_space(away[None])[0].astype(np.float64)


def described(seen: Portrait) -> str:
    """The state of an agent as a small table."""
    rows = [
        ("group", plain(seen.group)),
        ("speed", f"{seen.speed:.2f} m/s"),
        ("goal", plain(seen.goal)),
        *((name, plain(text)) for name, text in seen.doing),
        *((plain(name), plain(text)) for name, text in seen.knows),
        *([("follows", f"agent {seen.follows}")] if seen.follows is not None else []),
        *([("leads", f"{seen.leads} agent{'s' * (seen.leads != 1)}")] if seen.leads else []),
        ("position", ", ".join(f"{c:.2f}" for c in seen.position) + " m"),
        ("planned direction", _direction_text(seen.direction)),
        *((name.replace("_", " "), f"{value:.3g} {unit}".strip()) for name, (value, unit) in seen.columns.items()),
        ("neighbours", _listed(seen.neighbours)),
    ]
    title = f"**Agent {seen.id}**" + (" (dead)" if seen.dead else "")
    return f"{title}\n\n| | |\n|---|---|\n" + "\n".join(f"| {name} | {value} |" for name, value in rows)


def _direction_text(direction: Floats | None) -> str:
    if direction is None:
        return "not known"
    if not np.linalg.norm(direction) > 1e-6:
        return "stand"
    if len(direction) == 2:
        return f"{np.degrees(np.arctan2(direction[1], direction[0])):.0f}°"
    return ", ".join(f"{c:.2f}" for c in direction)


def _listed(ids: NDArray[np.int64]) -> str:
    if not len(ids):
        return "none"
    shown = ", ".join(str(i) for i in ids[:_MOST_LISTED].tolist())
    return f"{len(ids)}: {shown}" + (", …" if len(ids) > _MOST_LISTED else "")
