"""What planners want of riders, as the search reads it."""

from __future__ import annotations

import numpy as np

from tropel.agents.state import Floats
from tropel.contracts import Moment
from tropel.contracts.courses import Road
from tropel.local.mobility_map.search import Ways


def ways_of(moment: Moment, *, speed: float, brake: float) -> tuple[Ways, Floats]:
    """Roads and lines that the agents want to follow, and their wanted pace, by row of the state."""
    state, directions = moment.state, moment.directions
    count = len(state)
    size = np.linalg.norm(directions, axis=1)
    pace = np.minimum(size, 1.0)
    # Agents without a direction stand, and face as they do.
    along = np.where(size[:, None] > 1e-9, directions / np.maximum(size, 1e-9)[:, None], state.heading)
    road = np.full(count, -1, dtype=np.int32)
    at, side = np.zeros(count), np.zeros(count)
    place = state.position.copy()
    roads: list[Road] = []
    for course in moment.guidance.courses:
        if course.road is None:
            place[course.rows], along[course.rows] = course.place, course.along
            continue
        road[course.rows] = len(roads)
        roads.append(course.road)
        at[course.rows], side[course.rows] = course.at, course.side
        if course.stops and course.at is not None and not course.road.closed:
            left = np.maximum(course.road.length - course.at, 0.0)
            pace[course.rows] = np.minimum(pace[course.rows], np.sqrt(2.0 * brake * left) / speed)
    first = np.cumsum([0, *(len(one.points) for one in roads)]).astype(np.int64)
    ways = Ways(
        road=road,
        at=at,
        side=side,
        place=place,
        along=np.ascontiguousarray(along),
        first=first,
        points=np.concatenate([np.empty((0, 2)), *(one.points for one in roads)]),
        tangents=np.concatenate([np.empty((0, 2)), *(one.tangents for one in roads)]),
        step=np.array([one.step for one in roads], dtype=np.float64),
        closed=np.array([one.closed for one in roads], dtype=np.uint8),
    )
    return ways, pace
