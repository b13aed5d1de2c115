"""The linear model of an uncontrolled bicycle (Whipple), and the gains that balance it.

Equations and notation: J. P. Meijaard, J. M. Papadopoulos, A. Ruina, A. L. Schwab, "Linearized dynamics equations for
the balance and steer of a bicycle: a benchmark and review", Proc. R. Soc. A 463 (2007), appendix A. Lean φ and steer δ
obey  M q″ + v C1 q′ + (g K0 + v² K2) q = (0, T)  at forward speed v with steer torque T.

The paper's axes are x forward, y right, z down; here z points up and y left, which turns the sign of z and of products
of inertia with z and leaves the equations as they are, with φ, δ and T positive to the left.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tropel.errors import ParameterError

Floats = NDArray[np.float64]

GRAVITY = 9.81


@dataclass(frozen=True, kw_only=True)
class RigidPart:
    """A rigid part that is symmetric about the plane of the bicycle: mass [kg], centre (x, z) [m], inertia [kg m²].

    `inertia` is (Ixx, Iyy, Izz, Ixz) about the centre of mass; Ixz is the element of the matrix, with z up.
    """

    mass: float
    centre: tuple[float, float]
    inertia: tuple[float, float, float, float]


@dataclass(frozen=True, kw_only=True)
class Wheel:
    """A wheel: radius [m], mass [kg], inertia about a diameter and about the axle [kg m²]."""

    radius: float
    mass: float
    diametral: float
    axial: float


@dataclass(frozen=True, kw_only=True)
class WhippleBicycle:
    """The four rigid parts of the model and how they are joined; lengths in metres, angles in radians."""

    wheelbase: float
    trail: float
    steer_tilt: float  #: of the steer axis from the vertical, backwards
    rear_wheel: Wheel
    front_wheel: Wheel
    body: RigidPart  #: rear frame and rider
    fork: RigidPart  #: fork and handlebar


#: Table 1 of the paper.
BENCHMARK = WhippleBicycle(
    wheelbase=1.02,
    trail=0.08,
    steer_tilt=np.pi / 10.0,
    rear_wheel=Wheel(radius=0.3, mass=2.0, diametral=0.0603, axial=0.12),
    front_wheel=Wheel(radius=0.35, mass=3.0, diametral=0.1405, axial=0.28),
    body=RigidPart(mass=85.0, centre=(0.3, 0.9), inertia=(9.2, 11.0, 2.8, -2.4)),
    fork=RigidPart(mass=4.0, centre=(0.9, 0.7), inertia=(0.05892, 0.06, 0.00708, 0.00756)),
)


@dataclass(frozen=True)
class LinearBicycle:
    """The matrices M, C1, K0, K2 of a bicycle, for (φ, δ)."""

    mass: Floats
    damping: Floats
    gravity_stiffness: Floats
    speed_stiffness: Floats

    def stiffness(self, speed: float) -> Floats:
        return GRAVITY * self.gravity_stiffness + speed**2 * self.speed_stiffness

    def system(self, speed: float) -> tuple[Floats, Floats]:
        """A (4, 4) and B (4, 1) of x′ = A x + B T with x = (φ, δ, φ′, δ′)."""
        a = np.zeros((4, 4))
        a[:2, 2:] = np.eye(2)
        a[2:, :2] = -np.linalg.solve(self.mass, self.stiffness(speed))
        a[2:, 2:] = -np.linalg.solve(self.mass, speed * self.damping)
        b = np.zeros((4, 1))
        b[2:, 0] = np.linalg.solve(self.mass, np.array([0.0, 1.0]))
        return a, b

    def eigenvalues(self, speed: float) -> NDArray[np.complex128]:
        """Of the uncontrolled bicycle, by ascending real part and then imaginary part."""
        found = np.linalg.eigvals(self.system(speed)[0]).astype(np.complex128)
        return found[np.lexsort((found.imag, found.real))]

    def steady_turn(self, speed: float) -> tuple[float, float]:
        """Steer angle and steer torque of a steady turn, each per radian of lean."""
        stiffness = self.stiffness(speed)
        if stiffness[0, 1] == 0.0:
            raise ParameterError("a bicycle whose steer does not act on its lean cannot turn; give it trail or speed")
        steer = -stiffness[0, 0] / stiffness[0, 1]
        return float(steer), float(stiffness[1, 0] + stiffness[1, 1] * steer)

    def balancing_gains(self, speed: float, weights: tuple[float, float, float, float], effort: float) -> Floats:
        """K of T = -K (φ, δ, φ′, δ′) that minimises ∫ Σ weights x² + effort T² (LQR)."""
        from scipy.linalg import solve_continuous_are

        a, b = self.system(speed)
        try:
            cost = solve_continuous_are(a, b, np.diag(weights), np.array([[effort]]))
        except np.linalg.LinAlgError:
            raise ParameterError(
                f"no steer torque balances this bicycle at {speed:g} m/s; change its speed, trail or masses"
            ) from None
        return np.asarray((b.T @ cost)[0] / effort)


def linearise(bicycle: WhippleBicycle) -> LinearBicycle:
    """The matrices of appendix A; names follow the paper, z points down as there."""
    w, c, tilt = bicycle.wheelbase, bicycle.trail, bicycle.steer_tilt
    rear, front, body, fork = bicycle.rear_wheel, bicycle.front_wheel, bicycle.body, bicycle.fork
    xb, zb = body.centre[0], -body.centre[1]
    xh, zh = fork.centre[0], -fork.centre[1]
    ibxx, _, ibzz, ibxz = body.inertia
    ihxx, _, ihzz, ihxz = fork.inertia
    ibxz, ihxz = -ibxz, -ihxz
    cos, sin = np.cos(tilt), np.sin(tilt)

    mt = rear.mass + body.mass + fork.mass + front.mass
    xt = (xb * body.mass + xh * fork.mass + w * front.mass) / mt
    zt = (-rear.radius * rear.mass + zb * body.mass + zh * fork.mass - front.radius * front.mass) / mt
    itxx = rear.diametral + ibxx + ihxx + front.diametral
    itxx += rear.mass * rear.radius**2 + body.mass * zb**2 + fork.mass * zh**2 + front.mass * front.radius**2
    itxz = ibxz + ihxz - body.mass * xb * zb - fork.mass * xh * zh + front.mass * w * front.radius
    itzz = rear.diametral + ibzz + ihzz + front.diametral
    itzz += body.mass * xb**2 + fork.mass * xh**2 + front.mass * w**2

    ma = fork.mass + front.mass
    xa = (xh * fork.mass + w * front.mass) / ma
    za = (zh * fork.mass - front.radius * front.mass) / ma
    iaxx = ihxx + front.diametral + fork.mass * (zh - za) ** 2 + front.mass * (front.radius + za) ** 2
    iaxz = ihxz - fork.mass * (xh - xa) * (zh - za) + front.mass * (w - xa) * (front.radius + za)
    iazz = ihzz + front.diametral + fork.mass * (xh - xa) ** 2 + front.mass * (w - xa) ** 2
    ua = (xa - w - c) * cos - za * sin
    iall = ma * ua**2 + iaxx * sin**2 + 2.0 * iaxz * sin * cos + iazz * cos**2
    ialx = -ma * ua * za + iaxx * sin + iaxz * cos
    ialz = ma * ua * xa + iaxz * sin + iazz * cos
    mu = c / w * cos
    sr, sf = rear.axial / rear.radius, front.axial / front.radius
    st = sr + sf
    sa = ma * ua + mu * mt * xt

    cross = ialx + mu * itxz
    return LinearBicycle(
        mass=np.array([[itxx, cross], [cross, iall + 2.0 * mu * ialz + mu**2 * itzz]]),
        damping=np.array(
            [
                [0.0, mu * st + sf * cos + itxz / w * cos - mu * mt * zt],
                [-(mu * st + sf * cos), ialz / w * cos + mu * (sa + itzz / w * cos)],
            ]
        ),
        gravity_stiffness=np.array([[mt * zt, -sa], [-sa, -sa * sin]]),
        speed_stiffness=np.array([[0.0, (st - mt * zt) / w * cos], [0.0, (sa + sf * sin) / w * cos]]),
    )


def critical_speeds(bicycle: LinearBicycle, *, fastest: float = 20.0) -> tuple[float, float]:
    """The speeds between which the uncontrolled bicycle is stable: weave ends at one, capsize begins at the other.

    Below the first a pair of complex eigenvalues grows; above the second a real one does.
    """
    from scipy.optimize import brentq

    def weave(speed: float) -> float:
        swinging = [root.real for root in bicycle.eigenvalues(speed) if abs(root.imag) > 1e-9]
        return max(swinging, default=1.0)  # at walking speed there is no swinging motion yet: it falls

    # The capsize eigenvalue passes zero where the stiffness becomes singular.
    def capsize(speed: float) -> float:
        return float(np.linalg.det(bicycle.stiffness(speed)))

    speeds = np.linspace(0.5, fastest, 400)
    stable = [float(np.max(bicycle.eigenvalues(float(v)).real)) < 0.0 for v in speeds]
    if not any(stable):
        raise ParameterError(f"this bicycle is not stable by itself at any speed up to {fastest:g} m/s")
    first, last = stable.index(True), len(stable) - 1 - stable[::-1].index(True)
    if first == 0 or last == len(speeds) - 1:
        raise ParameterError(f"the critical speeds of this bicycle are not between 0.5 and {fastest:g} m/s")
    return (
        float(brentq(weave, speeds[first - 1], speeds[first], xtol=1e-14)),
        float(brentq(capsize, speeds[last], speeds[last + 1], xtol=1e-14)),
    )
