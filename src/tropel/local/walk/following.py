"""How fast a walking person goes behind the people in its list (`local/time_gap.py`)."""

from __future__ import annotations

import numpy as np

from tropel._kernels.compile import inlined_kernel
from tropel.local.time_gap import FREE, gap_behind, speed_at
from tropel.local.walk.sight import CONTACT, DX, DY, ROW


@inlined_kernel
def speed_behind(i, crowd, ex, ey, wanted, time_gap, seen, count):
    """The speed along e that keeps the time gap to everybody in the list with the right of way."""
    gap = FREE * wanted * time_gap
    for k in range(count):
        row = seen[k]
        gap = gap_behind(i, np.uint64(row[ROW]), crowd, row[DX], row[DY], row[CONTACT], ex, ey, gap)
    return speed_at(gap, wanted, time_gap)
