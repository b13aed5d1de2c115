"""The bicycle agrees with the published benchmark: the linear model to the last digits, the physics engine closely."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest

from tropel.errors import ParameterError
from tropel.riders.bicyclist.mjcf import whipple_mjcf
from tropel.riders.bicyclist.whipple import BENCHMARK, RigidPart, WhippleBicycle, critical_speeds, linearise

#: Meijaard et al. 2007: the matrices of the benchmark (their section 4 d).
MASS = [[80.81722, 2.31941332208709], [2.31941332208709, 0.29784188199686]]
GRAVITY_STIFFNESS = [[-80.95, -2.59951685249872], [-2.59951685249872, -0.80329488458618]]
SPEED_STIFFNESS = [[0.0, 76.59734589573222], [0.0, 2.65431523794604]]
DAMPING = [[0.0, 33.86641391492494], [-0.85035641456978, 1.68540397397560]]
#: Uncontrolled at 7 m/s: caster, weave, weave, capsize.
AT_SEVEN = np.array([-18.15788466, -2.13875644 - 7.19525913j, -2.13875644 + 7.19525913j, 0.10268171])


def test_the_matrices_are_those_of_the_benchmark() -> None:
    linear = linearise(BENCHMARK)
    for found, published in (
        (linear.mass, MASS),
        (linear.damping, DAMPING),
        (linear.gravity_stiffness, GRAVITY_STIFFNESS),
        (linear.speed_stiffness, SPEED_STIFFNESS),
    ):
        np.testing.assert_allclose(found, published, rtol=0.0, atol=1e-11)


def test_the_critical_speeds_are_those_of_the_benchmark() -> None:
    weave, capsize = critical_speeds(linearise(BENCHMARK))
    assert weave == pytest.approx(4.29238253634111, abs=1e-11)
    assert capsize == pytest.approx(6.02426201538837, abs=1e-11)


def test_a_bicycle_that_is_never_stable_has_no_critical_speeds() -> None:
    heavy = RigidPart(mass=400.0, centre=(0.1, 2.5), inertia=(400.0, 400.0, 10.0, 0.0))
    kind = {name: getattr(BENCHMARK, name) for name in WhippleBicycle.__dataclass_fields__}
    tall = WhippleBicycle(**{**kind, "body": heavy, "trail": -0.2})
    with pytest.raises(ParameterError, match="not stable by itself"):
        critical_speeds(linearise(tall))


def engine_eigenvalues(time_step: float, *replaced: tuple[str, str]) -> np.ndarray:
    """Eigenvalues of the uncontrolled bicycle in the physics engine at 7 m/s, without those of contacts and shifts."""
    text = whipple_mjcf(BENCHMARK, time_step=time_step)
    for old, new in replaced:
        assert old in text
        text = text.replace(old, new)
    model = mujoco.MjModel.from_xml_string(text)
    data = mujoco.MjData(model)
    data.joint("x").qvel[0] = 7.0
    data.joint("rear_wheel").qvel[0] = 7.0 / BENCHMARK.rear_wheel.radius
    data.joint("front_wheel").qvel[0] = 7.0 / BENCHMARK.front_wheel.radius
    for _ in range(round(0.5 / time_step)):
        mujoco.mj_step(model, data)
    transition = np.zeros((2 * model.nv, 2 * model.nv))
    mujoco.mjd_transitionFD(model, data, 1e-6, True, transition, None, None, None)
    found = np.log(np.linalg.eigvals(transition) + 0j) / time_step
    found = found[(found.real > -60.0) & (np.abs(found) > 0.01)]
    assert len(found) == 4
    return found[np.lexsort((found.imag, found.real))]


def test_the_engine_s_bicycle_has_the_eigenvalues_of_the_benchmark() -> None:
    off = np.abs(engine_eigenvalues(0.002) - AT_SEVEN) / np.abs(AT_SEVEN)
    assert off.max() < 0.04


def test_and_comes_closer_with_shorter_steps() -> None:
    # Tyres in the engine slip a little, the less the stiffer they are, which takes shorter steps.
    found = engine_eigenvalues(0.0002, ('solref="0.005 1"', 'solref="0.0004 1"'))
    off = np.abs(found - AT_SEVEN) / np.abs(AT_SEVEN)
    assert off[:3].max() < 0.004
    assert off[3] < 0.04


def test_soft_tyres_do_not_pass() -> None:
    off = np.abs(engine_eigenvalues(0.002, ('priority="1"', 'priority="0"')) - AT_SEVEN) / np.abs(AT_SEVEN)
    assert off.max() > 0.08


def test_the_gains_balance_and_without_them_it_falls() -> None:
    linear = linearise(BENCHMARK)
    for speed in (3.0, 7.0, 12.0):
        a, b = linear.system(speed)
        gains = linear.balancing_gains(speed, (4000.0, 0.0, 400.0, 400.0), 1.0)
        assert np.linalg.eigvals(a).real.max() > 0.0
        assert np.linalg.eigvals(a - b @ gains[np.newaxis]).real.max() < -0.5


def test_a_steady_turn_is_an_equilibrium() -> None:
    linear = linearise(BENCHMARK)
    steer, torque = linear.steady_turn(7.0)
    a, b = linear.system(7.0)
    np.testing.assert_allclose(a @ np.array([1.0, steer, 0.0, 0.0]) + b[:, 0] * torque, 0.0, atol=1e-12)
