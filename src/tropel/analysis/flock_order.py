"""Measures of a flock at one moment: how parallel, how much of a mill, how close, and in how many pieces.

| measure | is 1 (or least) for | formula |
|---|---|---|
| `polarisation` | a flock that flies in parallel | length of the mean of the unit headings u |
| `milling` | a flock that circles round its middle | length of the mean of r × u, r the unit vector from the middle |
| `nearest_distances` | | distance of everybody to the nearest other [m] |
| `subflocks` | | who hangs together: steps from one to the next of at most `within` |

The first two are those of Couzin et al., "Collective memory and spatial sorting in animal groups", J. theor. Biol. 2002
(there p_group and m_group). All are for 2D and 3D. In periodic space give `period`, the length after which each axis
repeats [m], 0 for an axis that does not: distances are then those to the nearest image, and the middle of the flock is
the mean on a circle, along each axis.
"""

from __future__ import annotations

import math
import reprlib
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tropel.analysis.subflock_cells import connected
from tropel.arguments import Length, checked_arguments, numbers_in
from tropel.errors import ParameterError

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Period = Sequence[float] | Floats | None


def polarisation(heading: ArrayLike) -> float:
    """How parallel headings (N, dim) are: 1 if all are the same, near 0 if they point everywhere; NaN for nobody.

    Velocities will do as well. Who has none, because it stands, is left out.
    """
    units = _units(_vectors(heading, "heading"))
    units = units[np.isfinite(units).all(axis=1)]
    return _length(units.mean(axis=0)) if len(units) else math.nan


def milling(position: ArrayLike, heading: ArrayLike, *, period: Period = None) -> float:
    """How much of a mill the flock is: 1 if all circle the same way round their middle; NaN for nobody.

    Who is right in the middle, or stands, is left out.
    """
    places, headings = _vectors(position, "position"), _vectors(heading, "heading")
    if places.shape != headings.shape:
        raise ParameterError(f"positions {places.shape} and headings {headings.shape} must have the same shape")
    lengths = _lengths_of(period, places.shape[1])
    outwards = _units(nearest_image(places - middle(places, period=lengths), lengths))
    units = _units(headings)
    chosen = np.isfinite(outwards).all(axis=1) & np.isfinite(units).all(axis=1)
    if not chosen.any():
        return math.nan
    r, u = outwards[chosen], units[chosen]
    if places.shape[1] == 2:
        return abs(float((r[:, 0] * u[:, 1] - r[:, 1] * u[:, 0]).mean()))
    return _length(np.cross(r, u).mean(axis=0))


def nearest_distances(position: ArrayLike, *, period: Period = None) -> Floats:
    """The distance of everybody to the nearest other [m]; NaN for who is alone."""
    from scipy.spatial import cKDTree

    places = _vectors(position, "position")
    if len(places) < 2:
        return np.full(len(places), math.nan)
    lengths = _lengths_of(period, places.shape[1])
    if not lengths.any():
        tree = cKDTree(places)
        return np.asarray(tree.query(places, k=2, workers=-1)[0][:, 1])
    wrapped = wrapped_into(places, lengths)
    tree = cKDTree(wrapped, boxsize=lengths)
    return np.asarray(tree.query(wrapped, k=2, workers=-1)[0][:, 1])


@checked_arguments
def subflocks(position: ArrayLike, *, within: Length, period: Period = None) -> Ints:
    """The number of the sub-flock of everybody, from 0 on in the order of their first members.

    Two are in the same one when a chain of others leads from one to the other with steps of at most `within` [m].
    """
    places = _vectors(position, "position")
    return connected(places, within, _lengths_of(period, places.shape[1]))


def middle(position: ArrayLike, *, period: Period = None) -> Floats:
    """The middle of a flock: the mean, along periodic axes the mean on a circle."""
    places = _vectors(position, "position")
    lengths = _lengths_of(period, places.shape[1])
    found = places.mean(axis=0) if len(places) else np.full(places.shape[1], math.nan)
    for axis in np.flatnonzero(lengths):
        turns = 2.0 * math.pi / lengths[axis] * places[:, axis]
        found[axis] = math.atan2(np.sin(turns).sum(), np.cos(turns).sum()) * lengths[axis] / (2.0 * math.pi)
    return found


def nearest_image(offset: Floats, lengths: Floats) -> Floats:
    """Offsets (N, dim) to the nearest image of where they lead to."""
    around = lengths > 0.0
    if around.any():
        offset = offset.copy()
        offset[:, around] -= lengths[around] * np.round(offset[:, around] / lengths[around])
    return offset


def wrapped_into(places: Floats, lengths: Floats) -> Floats:
    """Places moved by whole periods to at least 0 and below the period, along the axes that have one."""
    wrapped = places.copy()
    for axis in np.flatnonzero(lengths):
        inside = np.mod(places[:, axis], lengths[axis])
        # A tiny negative number is rounded up to the whole period.
        wrapped[:, axis] = np.where(inside < lengths[axis], inside, 0.0)
    return wrapped


def _vectors(given: ArrayLike, what: str) -> Floats:
    vectors = numbers_in(given)
    if vectors is None:
        raise ParameterError(f"{what} must be an array with a row of 2 or 3 numbers each, not {reprlib.repr(given)}")
    if vectors.ndim != 2 or vectors.shape[1] not in (2, 3):
        raise ParameterError(f"{what} must be an array with a row of 2 or 3 numbers each, not of shape {vectors.shape}")
    if not np.isfinite(vectors).all():
        row = int(np.flatnonzero(~np.isfinite(vectors).all(axis=1))[0])
        raise ParameterError(f"{what} must be finite, and row {row} is {vectors[row].tolist()}")
    return vectors


def _lengths_of(period: Period, dim: int) -> Floats:
    if period is None:
        return np.zeros(dim)
    lengths = numbers_in(period)
    if lengths is None or lengths.shape != (dim,) or not (np.isfinite(lengths).all() and (lengths >= 0.0).all()):
        raise ParameterError(f"period must be {dim} lengths in metres, 0 for an axis without one, not {period!r}")
    return lengths


def _units(vectors: Floats) -> Floats:
    """Unit vectors; NaN for vectors without a length."""
    with np.errstate(invalid="ignore", divide="ignore"):
        return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def _length(vector: Floats) -> float:
    return float(np.linalg.norm(vector))
