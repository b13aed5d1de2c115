"""Numbers that no walking person has: speeds, radii and time steps. Flocks, vehicles in 3D and crowds on cells are
left out: there the same numbers mean something else."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from tropel.agents.state import NO_GOAL
from tropel.checks.finding import Finding, named, people
from tropel.checks.later import Later
from tropel.checks.subjects import alive, newcomers, walks_freely

if TYPE_CHECKING:
    from tropel.simulation import Simulation

#: Desired speeds outside these are no walk and no run [m/s]: the fastest sprint is just above 12.
FASTEST, SLOWEST = 12.0, 0.05
#: No body of a person has a larger radius [m].
WIDEST = 1.0
#: Doors that are narrower than a body by rounding only are wide enough.
_FITS = 1.001


def check_numbers(sim: Simulation, later: Later) -> Iterator[Finding]:
    """Absurd speeds, radii and time steps of each group, or of what its sources will send."""
    living = alive(sim)
    for number, group in enumerate(sim.groups):
        if not walks_freely(sim, number):
            continue
        rows = living & (sim.agents.group == number)
        source = next((source for source in sim.population.sources if source.group == group), None)
        if rows.any():
            columns = {name: sim.agents.columns[name][rows] for name in ("radius", "desired_speed", "goal")}
            yield from _Bodies(group, columns, present=True).findings(sim, later)
        elif source is not None:
            yield from _Bodies(group, newcomers(sim, source), present=False).findings(sim, later)


class _Bodies:
    """The bodies and speeds of a group; of newcomers, if none of it is present yet."""

    def __init__(self, group: str, columns: dict[str, NDArray[np.float64]], *, present: bool) -> None:
        self.group, self.present = group, present
        self.radius, self.speed = columns["radius"], columns["desired_speed"]
        self.has_goal = columns["goal"] != NO_GOAL

    def findings(self, sim: Simulation, later: Later) -> Iterator[Finding]:
        radius, speed = self.radius, self.speed
        fast, wide, slow = speed > FASTEST, radius > WIDEST, (speed < SLOWEST) & self.has_goal
        if fast.any():
            yield self._finding(
                "fast",
                fast,
                f"desired speeds of up to {speed[fast].max():.3g} m/s, and nobody runs faster than {FASTEST:g} m/s",
                "give a desired_speed in m/s: people walk at 0.5 to 2",
            )
        if slow.any():
            yield self._finding(
                "slow",
                slow,
                f"a goal, but a desired speed of only {speed[slow].min():.3g} m/s",
                'give a desired_speed in m/s (people walk at 0.5 to 2), or the goal "none"',
                note=later.speed_of(self.group) is not None,
            )
        if wide.any():
            yield self._finding(
                "wide",
                wide,
                f"bodies with a radius of up to {radius[wide].max():.3g} m",
                "give the radius in metres: bodies of people have 0.15 to 0.35",
            )
        yield from self._wider_than_doors({name: door.line.length for name, door in sim.world.doors.items()})
        far = speed * sim.dt > radius
        if 2 * far.sum() > len(far) and not (fast.any() or wide.any()):
            moved, body = float(np.median(speed * sim.dt)), float(np.median(radius))
            yield self._finding(
                "long_steps",
                far,
                f"steps of {moved:.2g} m in dt = {sim.dt:g} s, longer than the radius of their bodies, {body:.2g} m",
                f"use a dt of at most {body / moved * sim.dt:.2g} s; 0.01 to 0.1 s is usual",
            )

    def _wider_than_doors(self, widths: dict[str, float]) -> Iterator[Finding]:
        width = 2.0 * self.radius
        narrow = {name: each for name, each in widths.items() if (width[self.has_goal] > each * _FITS).any()}
        if narrow:
            which = self.has_goal & (width > min(narrow.values()) * _FITS)
            yield self._finding(
                "wider_than_door",
                which,
                f"bodies up to {width[which].max():.2f} m wide, which do not fit through the {named('door', narrow)} "
                f"({min(narrow.values()):.2f} m)",
                "widen the doors, or give them a smaller radius",
            )

    def _finding(
        self, code: str, which: NDArray[np.bool_], message: str, remedy: str, *, note: bool = False
    ) -> Finding:
        count = int(which.sum()) if self.present else 0
        return Finding(
            code=code,
            message=f"{people(count) if self.present else 'newcomers'} of group '{self.group}' with {message}",
            remedy=remedy,
            severity="note" if note else "warning",
            group=self.group,
            agents=count,
        )
