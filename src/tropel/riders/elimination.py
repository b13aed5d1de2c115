"""Which variables of a character's full state matter for where it can go (table 1 of RIDERS), found from data.

Riders ride about at random; their states are sampled, and trials begin in each. A variable is dropped for the first
reason that holds:

- homogeneous world: trials that begin with the variable shifted are the same trials
- constant: it hardly changes while riding
- a function of others: they explain it to `EXPLAINED` of its variance
- no effect: knowing it does not improve the prediction of where the centre of mass goes

What is kept is chosen greedily: the variable that improves the prediction most comes first, until the next one
improves it by less than `WORTH_KEEPING`. Predictions are linear, and each state is predicted from all the others.
Principal components of the same states are the alternative that the paper's outlook suggests.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tropel.errors import ParameterError
from tropel.foundation.long_work import report
from tropel.riders.bicyclist.character import Bicyclist, full_states
from tropel.riders.character import Floats

EXPLAINED = 0.9
WORTH_KEEPING = 0.15
#: Variables whose middle 90 % lie within this are constant: angles [rad], lengths [m], and rates [rad/s, m/s].
_CONSTANT, _CONSTANT_RATE = 0.03, 0.05
#: Predictions this near to the best one are as good.
_ALMOST = 1.1
_SECONDS, _HORIZONS = 2.0, (0.5, 1.0, 2.0)


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """What became of one variable."""

    name: str
    reason: str  #: "kept", or why it was dropped
    share: float  #: of its variance that the variables it is a function of explain; nan if not asked


@dataclass(frozen=True, kw_only=True)
class Reduction:
    """The result: what is kept, why the others are not, and how well the centre of mass is predicted."""

    character: str
    verdicts: tuple[Verdict, ...]
    kept: tuple[str, ...]
    error_without: float  #: of predictions that know the action alone, root mean square [m]
    errors: tuple[float, ...]  #: with the first, the first two, … of `kept` [m]
    error_with_all: float  #: with all variables that are not constant [m]
    error_of_map: float  #: with the variables that the character's maps use [m]
    variances: Floats  #: share of the variance in each principal component, in descending order
    component_errors: Floats  #: of predictions with the first k components, k = 1, 2, … [m]


def variable_names(character: Bicyclist) -> list[str]:
    joints = list(character.model.joints)
    return [*joints, *(f"{name}_rate" for name in joints)]


def reduce_state(character: Bicyclist, *, riders: int = 12, seed: int = 0) -> Reduction:
    """Sample states, run trials and sort the variables; about half a minute of computing."""
    if riders < 4:
        raise ParameterError("at least 4 riders must ride about")
    what = f"state variables of '{character.name}'"
    report(what, 0, 3)
    states = _ride_about(character, riders, seed)
    report(what, 1, 3)
    names = variable_names(character)
    values = states[:, : len(names)]
    reach, turns = _trials(character, states, seed)
    report(what, 2, 3)
    same = _invariants(character, states[0])
    spread = np.ptp(np.quantile(values, (0.05, 0.95), axis=0), axis=0)
    limits = np.where([name.endswith("_rate") for name in names], _CONSTANT_RATE, _CONSTANT)
    changing = [k for k, name in enumerate(names) if spread[k] > limits[k] and name not in same]
    order = sorted(changing, key=lambda k: (_is_of_the_rider(names[k]), k))
    kept, errors = _choose(values, order, turns, reach)
    verdicts = _verdicts(names, values, changing, kept, same, spread)
    report(what, 3, 3)
    variances, scores = _components(values[:, changing])
    reduced = [names.index("roll"), names.index("yaw_rate")]
    return Reduction(
        character=character.name,
        verdicts=verdicts,
        kept=tuple(names[k] for k in kept),
        error_without=_error(np.empty((len(values), 0)), turns, reach),
        errors=tuple(errors),
        error_with_all=_error(values[:, changing], turns, reach),
        error_of_map=_error(values[:, reduced], turns, reach),
        variances=variances,
        component_errors=np.array([_error(scores[:, : k + 1], turns, reach) for k in range(min(8, scores.shape[1]))]),
    )


def _ride_about(character: Bicyclist, riders: int, seed: int) -> Floats:
    """Full states of riders who are told another heading every second and a half."""
    drawn = np.random.Generator(np.random.Philox(key=seed))
    ride = character.ride(np.repeat(character.straight_state()[np.newaxis], riders, axis=0))
    speed = np.full(riders, character.speed)
    limit = 0.5 * character.action_limit
    wanted = np.zeros(riders)
    found = []
    for tick in range(120):
        if tick % 15 == 0:
            wanted = ride.see().heading + drawn.uniform(-limit, limit, riders)
        ride.advance(0.1, wanted, speed)
        if tick >= 20 and tick % 10 == 9:
            found.append(full_states(ride)[~ride.fallen])
    return np.concatenate(found)


def _trials(character: Bicyclist, states: Floats, seed: int) -> tuple[Floats, Floats]:
    """Where the centre of mass is at the horizons (n, H, 2), after a turn drawn for each state (n,)."""
    drawn = np.random.Generator(np.random.Philox(key=seed + 1))
    turns = drawn.uniform(-0.5, 0.5, len(states)) * character.action_limit
    times = np.linspace(0.0, _SECONDS, 5)
    tried = character.trials(states, turns, times)
    at = [int(np.flatnonzero(np.isclose(times, horizon))[0]) for horizon in _HORIZONS]
    return tried.position[:, at], turns


def _invariants(character: Bicyclist, state: Floats) -> set[str]:
    """Variables whose shift leaves a trial as it is."""
    shifts = {"x": 100.0, "y": 50.0, "yaw": 1.0, "front_wheel": 1.0}
    joints = character.model.joints
    begins = np.repeat(state[np.newaxis], len(shifts) + 1, axis=0)
    rates = len(joints)
    for row, (name, shift) in enumerate(shifts.items(), start=1):
        begins[row, joints[name]] += shift
    # A rider who faces elsewhere also moves there.
    turned = list(shifts).index("yaw") + 1
    east, north = begins[turned, rates + joints["x"]], begins[turned, rates + joints["y"]]
    cos, sin = np.cos(shifts["yaw"]), np.sin(shifts["yaw"])
    begins[turned, rates + joints["x"]], begins[turned, rates + joints["y"]] = (
        cos * east - sin * north,
        sin * east + cos * north,
    )
    limit = 0.5 * character.action_limit
    tried = character.trials(begins, np.full(len(begins), limit), np.linspace(0.0, 1.0, 6))
    off = np.abs(tried.position[1:] - tried.position[0]).max(axis=(1, 2))
    return {name for name, distance in zip(shifts, off, strict=True) if distance < 1e-3}


def _error(variables: Floats, turns: Floats, reach: Floats) -> float:
    """Root mean square error of predicting each state's trial from all the others, linearly [m]."""
    count = len(turns)
    known = np.column_stack((variables, turns, np.abs(turns)))
    known = (known - known.mean(axis=0)) / np.maximum(known.std(axis=0), 1e-12)
    inputs = np.column_stack((np.ones(count), known))
    outputs = reach.reshape(count, -1)
    # A little ridge: many variables are nearly functions of each other.
    inverse = np.linalg.inv(inputs.T @ inputs + 1e-3 * np.eye(inputs.shape[1]))
    hat = np.einsum("ij,jk,ik->i", inputs, inverse, inputs)
    off = (outputs - inputs @ (inverse @ (inputs.T @ outputs))) / np.maximum(1.0 - hat, 1e-6)[:, np.newaxis]
    return float(np.sqrt((off.reshape(count, -1, 2) ** 2).sum(axis=2).mean()))


def _is_of_the_rider(name: str) -> bool:
    return name.startswith(("left_", "right_", "waist_", "neck_", "pelvis"))


def _choose(values: Floats, order: list[int], turns: Floats, reach: Floats) -> tuple[list[int], list[float]]:
    kept: list[int] = []
    errors: list[float] = []
    last = _error(np.empty((len(values), 0)), turns, reach)
    while len(kept) < len(order):
        tried = {k: _error(values[:, [*kept, k]], turns, reach) for k in order if k not in kept}
        least = min(tried.values())
        # Joints of the bicycle come first: arms and legs follow them, and predict as well by accident.
        best = next(k for k in order if k in tried and tried[k] <= _ALMOST * least)
        if tried[best] > (1.0 - WORTH_KEEPING) * last:
            break
        kept.append(best)
        errors.append(tried[best])
        last = tried[best]
    return kept, errors


def _explained(values: Floats, target: int, by: list[int], crank: Floats) -> float:
    """Share of a variable's variance that a quadratic function of others, or of the crank's angle, explains."""
    parts = [np.ones((len(values), 1))]
    if by:
        chosen = values[:, by]
        chosen = (chosen - chosen.mean(axis=0)) / np.maximum(chosen.std(axis=0), 1e-12)
        parts += [chosen, np.stack([chosen[:, i] * chosen[:, j] for i in range(len(by)) for j in range(i + 1)], axis=1)]
    if crank.size:
        parts.append(crank)
    inputs = np.column_stack(parts)
    wanted = values[:, target]
    fitted = inputs @ np.linalg.lstsq(inputs, wanted, rcond=None)[0]
    return float(1.0 - np.var(wanted - fitted) / max(float(np.var(wanted)), 1e-300))


def _verdicts(
    names: list[str], values: Floats, changing: list[int], kept: list[int], same: set[str], spread: Floats
) -> tuple[Verdict, ...]:
    angle = values[:, names.index("crank")]
    phase = np.column_stack([f(k * angle) for k in (1, 2, 3) for f in (np.cos, np.sin)])
    phase = np.column_stack((phase, angle))  # the rear wheel turns with the chain
    none = np.empty((len(values), 0))
    steer = names.index("steer")
    explanations = [("crank", [], phase), ("steer", [steer], none)]
    explanations += [(names[k], [k], none) for k in kept if k != steer]
    explanations.append((", ".join(names[k] for k in kept), kept, none))
    explanations.append((", ".join([*(names[k] for k in kept), "crank"]), kept, phase))
    found = []
    for k, name in enumerate(names):
        if k in kept:
            found.append(Verdict(name=name, reason="kept", share=float("nan")))
        elif name in same:
            found.append(Verdict(name=name, reason="homogeneous world or symmetrical", share=float("nan")))
        elif k not in changing:
            found.append(Verdict(name=name, reason=f"constant (within {spread[k]:.2g})", share=float("nan")))
        else:
            shares = [(text, _explained(values, k, by, crank)) for text, by, crank in explanations if k not in by]
            text, share = next(((t, s) for t, s in shares if s >= EXPLAINED), ("", max(s for _, s in shares)))
            reason = f"f({text})" if text else "no effect on the trajectory"
            if name == "crank":
                reason = "symmetrical: no effect on the trajectory"
            found.append(Verdict(name=name, reason=reason, share=share))
    return tuple(found)


def _components(values: Floats) -> tuple[Floats, Floats]:
    """Principal components of normalised variables: shares of the variance, and scores (n, k)."""
    normal = (values - values.mean(axis=0)) / np.maximum(values.std(axis=0), 1e-12)
    left, strength, _ = np.linalg.svd(normal, full_matrices=False)
    return strength**2 / np.sum(strength**2), left * strength
