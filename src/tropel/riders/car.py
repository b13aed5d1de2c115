"""A car: the kinematic bicycle model, which proves that mobility maps serve more than bicyclists.

With the wheelbase L, the steering angle d and the speed v, the rear axle moves as

    x' = v cos h,   y' = v sin h,   h' = v tan(d) / L                  (Rajamani, Vehicle Dynamics and Control, ch. 2)

The driver turns the wheel towards the angle that would remove the error in heading within `reaction` seconds, no faster
than `steer_rate` and no farther than `steer_limit` or than `grip` allows: v² tan(d) / L ≤ grip. A car leans outwards in
a turn by `roll_gain` per unit of sideways acceleration, and never falls.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from tropel.errors import ParameterError, named_parameters
from tropel.foundation.quantities import number
from tropel.riders.character import Character, Floats, Trials

#: The equations of motion are integrated in steps of at most this length [s].
_STEP = 0.01


@named_parameters
@dataclass(frozen=True, kw_only=True)
class Car(Character):
    """A car or van at a constant speed."""

    name: str = "car"
    speed: float = number(8.0, above=0.0, high=60.0, unit="m/s", about="nominal speed")
    wheelbase: float = number(2.6, above=0.2, high=20.0, unit="m", about="between the axles")
    length: float = number(4.2, above=0.2, high=30.0, unit="m", about="of the body")
    width: float = number(1.8, above=0.1, high=10.0, unit="m", about="of the body")
    steer_limit: float = number(0.6, above=0.01, high=1.4, unit="rad", about="largest steering angle")
    steer_rate: float = number(0.6, above=0.01, high=20.0, unit="rad/s", about="how fast the wheel turns")
    grip: float = number(5.0, above=0.1, high=50.0, unit="m/s²", about="largest sideways acceleration")
    reaction: float = number(0.8, above=0.05, high=10.0, unit="s", about="time in which an error in heading is removed")
    roll_gain: float = number(0.006, low=0.0, high=0.1, unit="rad s²/m", about="lean per sideways acceleration")
    turn_limit: float = number(0.9, above=0.01, high=3.0, unit="rad", about="largest change of heading that is tried")

    state_names: ClassVar[tuple[str, ...]] = ("steer",)
    looks: ClassVar[str] = "car"

    def __post_init__(self) -> None:
        if not (0 < len(self.name) <= 100):
            raise ParameterError("a character's name must have 1 to 100 letters")
        if self.length < self.width:
            raise ParameterError(f"Car: the length of {self.length:g} m is less than the width of {self.width:g} m")

    @property
    def action_limit(self) -> float:
        return self.turn_limit

    @property
    def largest_steer(self) -> float:
        """The limit of the wheel or of the tyres, whichever is less [rad]."""
        return min(self.steer_limit, math.atan(self.grip * self.wheelbase / self.speed**2))

    def initial_states(self, count: int) -> Floats:
        """Steering angles over the whole range; a car has no other state."""
        return np.linspace(-self.largest_steer, self.largest_steer, count)[:, np.newaxis]

    def reduced(self, full_states: Floats) -> Floats:
        return np.array(full_states)

    def trials(self, full_states: Floats, actions: Floats, times: Floats) -> Trials:
        """Integrate all of them at once, by the midpoint rule."""
        steer = np.array(full_states[:, 0])
        count, knots = len(steer), len(times)
        x, y, heading = np.zeros(count), np.zeros(count), np.zeros(count)
        kept = np.empty((count, knots, 4))
        kept[:, 0] = np.column_stack([x, y, heading, steer])
        for k in range(1, knots):
            span = times[k] - times[k - 1]
            steps = max(1, math.ceil(span / _STEP - 1e-9))
            dt = span / steps
            for _ in range(steps):
                wanted = np.arctan((actions - heading) / self.reaction * self.wheelbase / self.speed)
                wanted = np.clip(wanted, -self.largest_steer, self.largest_steer)
                turned = steer + np.clip(wanted - steer, -self.steer_rate * dt, self.steer_rate * dt)
                rate = self.speed * np.tan(0.5 * (steer + turned)) / self.wheelbase
                middle = heading + 0.5 * dt * rate
                x, y = x + dt * self.speed * np.cos(middle), y + dt * self.speed * np.sin(middle)
                heading, steer = heading + dt * rate, turned
            kept[:, k] = np.column_stack([x, y, heading, steer])
        sideways = self.speed**2 * np.tan(kept[:, :, 3]) / self.wheelbase
        return Trials(
            position=kept[:, :, :2],
            heading=kept[:, :, 2],
            steer=kept[:, :, 3],
            lean=-self.roll_gain * sideways,
            lasts=np.full(count, times[-1]),
        )
