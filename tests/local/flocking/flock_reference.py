"""Flocks in plain NumPy, one boid and one rule after the other, all pairs: what `Flocking` is compared with."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

_DRIVES = ("separation", "cohesion", "alignment", "avoidance", "flight", "pursuit", "goal_pull", "leader_pull")
OFF = dict.fromkeys((*_DRIVES, "obstacle_repulsion", "obstacle_steering"), 0.0)


@dataclass
class Reference:
    """A flock and its rules; `weights` are numbers or arrays with one for each boid."""

    position: Floats
    velocity: Floats
    reach: float
    top: float = 2.0
    dt: float = 0.1
    weights: dict[str, Any] = field(default_factory=dict)
    separation_distance: float | None = None
    flee_radius: float | None = None
    blind_angle: float = 0.0
    max_force: float = 1e9
    least_speed: float = 0.0
    nearest: int | None = None
    priorities: bool = False
    period: Any = None
    mates: NDArray[np.bool_] | None = None  #: (N, N): who is whose mate
    avoided: NDArray[np.bool_] | None = None
    fled: NDArray[np.bool_] | None = None
    chased: NDArray[np.bool_] | None = None
    directions: Floats | None = None
    leader: NDArray[np.int64] | None = None
    obstacles: list[tuple[Floats, float]] = field(default_factory=list)
    radius: float = 0.05

    def weight(self, name: str, i: int) -> float:
        return float(np.broadcast_to(self.weights.get(name, 0.0), len(self.position))[i])

    def offsets(self, i: int) -> Floats:
        d = self.position - self.position[i]
        if self.period is not None:
            for axis, length in enumerate(self.period):
                if length > 0:
                    d[:, axis] -= length * np.round(d[:, axis] / length)
        return d

    def in_view(self, i: int, d: Floats) -> NDArray[np.bool_]:
        speed = np.linalg.norm(self.velocity[i])
        r = np.linalg.norm(d, axis=1)
        if self.blind_angle == 0.0 or speed == 0.0:
            return np.ones(len(d), dtype=bool)
        with np.errstate(invalid="ignore"):
            angle = np.arccos(np.clip(d @ self.velocity[i] / (r * speed), -1.0, 1.0))
        return (r == 0.0) | (angle <= np.pi - 0.5 * self.blind_angle)

    @staticmethod
    def away_from(d: Floats, reach: float) -> Floats:
        r = np.linalg.norm(d, axis=1)
        d, r = d[r > 0], r[r > 0]
        return -reach * (d * (1.0 / r**2 - 1.0 / reach**2)[:, None]).sum(axis=0)

    def rules(self, i: int) -> list[Floats]:
        """The weighted rules of boid i in the order of their priority."""
        count, dim = self.position.shape
        d = self.offsets(i)
        r = np.linalg.norm(d, axis=1)
        nothing = np.zeros((count, count), dtype=bool)
        another = np.arange(count) != i
        seen = another & (r <= self.reach) & self.in_view(i, d)
        mates = np.flatnonzero(seen & (np.ones(count, dtype=bool) if self.mates is None else self.mates[i]))
        if self.nearest is not None:
            mates = mates[np.lexsort((mates, r[mates]))][: self.nearest]
        s = 0.5 * self.reach if self.separation_distance is None else min(self.separation_distance, self.reach)
        fr = self.reach if self.flee_radius is None else self.flee_radius
        avoided, fled, chased = ((nothing if m is None else m)[i] for m in (self.avoided, self.fled, self.chased))
        zero = np.zeros(dim)
        prey = np.flatnonzero(seen & chased)
        prey = prey[np.lexsort((prey, r[prey]))][:1]
        lead = zero
        if self.leader is not None and self.leader[i] >= 0:
            lead = d[self.leader[i]] / max(r[self.leader[i]], self.reach)
        return [
            self.weight("obstacle_repulsion", i) * self.repulsion(i),
            self.weight("flight", i) * self.away_from(d[another & fled & (r <= fr)], fr),
            self.weight("separation", i) * self.away_from(d[mates][r[mates] < s], s),
            self.weight("avoidance", i) * self.away_from(d[seen & avoided], self.reach),
            self.weight("alignment", i) * (self.velocity[mates] - self.velocity[i]).mean(axis=0) / self.top
            if len(mates)
            else zero,
            self.weight("cohesion", i) * d[mates].mean(axis=0) / self.reach if len(mates) else zero,
            self.weight("pursuit", i) * d[prey[0]] / r[prey[0]] if len(prey) else zero,
            self.weight("leader_pull", i) * lead,
            self.weight("goal_pull", i) * (zero if self.directions is None else self.directions[i]),
        ]

    def repulsion(self, i: int) -> Floats:
        total = np.zeros(self.position.shape[1])
        for centre, size in self.obstacles:
            d = centre - self.position[i]
            away = np.linalg.norm(d)
            gap = max(away - size - self.radius, 0.0)
            if gap < self.reach:
                total -= d / away * (1.0 - gap / self.reach) ** 2
        return total

    def new_velocity(self) -> Floats:
        fresh = np.empty_like(self.velocity)
        for i in range(len(fresh)):
            force = np.zeros(fresh.shape[1])
            left = self.max_force
            for rule in self.rules(i):
                if self.priorities:
                    length = np.linalg.norm(rule)
                    rule = rule * min(1.0, left / length) if length > 0 else rule
                    left -= min(length, left)
                force += rule
            strength = np.linalg.norm(force)
            force *= min(1.0, self.max_force / strength) if strength > 0 else 1.0
            v = self.velocity[i] + self.dt * force
            speed = np.linalg.norm(v)
            fresh[i] = v / speed * min(max(speed, self.least_speed * self.top), self.top)
        return fresh
