"""Which cells a hazard's influence reaches: rays drawn on the cells, from the rim of a box inwards."""

from __future__ import annotations

from tropel._kernels.compile import kernel

UNPROCESSED, OPEN, HIDDEN = 0, 1, 2


@kernel
def _look_from(row, column, centre_row, centre_column, first_row, first_column, free, mark):
    """Draw the line from an unprocessed cell to the centre and mark the cells on it that have no mark yet."""
    rows, columns = abs(centre_row - row), abs(centre_column - column)
    down = 1 if centre_row > row else -1
    along = 1 if centre_column > column else -1
    major, minor = max(rows, columns), min(rows, columns)
    upright = rows >= columns
    # The number of the blocked cell nearest to the centre, counted from the selected cell; the centre never blocks.
    blocked = -1
    # The remainder of (2 k minor + major) / (2 major), whose quotient says how far the line is off its major axis.
    rest = major
    r, c = row, column
    for step in range(major):
        if 0 <= r < free.shape[0] and 0 <= c < free.shape[1] and not free[r, c]:
            blocked = step
        rest += 2 * minor
        turn = rest >= 2 * major
        rest -= 2 * major * turn
        r += down * (upright or turn)
        c += along * (not upright or turn)
    rest = major
    r, c = row - first_row, column - first_column
    for step in range(major + 1):
        if 0 <= r < mark.shape[0] and 0 <= c < mark.shape[1] and mark[r, c] == UNPROCESSED:
            mark[r, c] = OPEN if step > blocked else HIDDEN
        rest += 2 * minor
        turn = rest >= 2 * major
        rest -= 2 * major * turn
        r += down * (upright or turn)
        c += along * (not upright or turn)


@kernel
def mark_influence(free, centre_row, centre_column, reach, first_row, first_column, mark):
    """Mark the cells of a box as OPEN to its centre or HIDDEN behind blocked cells; `influence.py` says the rule.

    `mark` covers the part of the box that is on the map, whose first cell is (first_row, first_column); the whole box
    reaches `reach` cells to each side of the centre's cell, which may lie off the map.
    """
    last_row, last_column = first_row + mark.shape[0] - 1, first_column + mark.shape[1] - 1
    for ring in range(reach, -1, -1):
        for row in range(max(centre_row - ring, first_row), min(centre_row + ring, last_row) + 1):
            left, right, stride = centre_column - ring, centre_column + ring, 2 * ring
            # In the rows between its first and its last a ring has two cells.
            if row == centre_row - ring or row == centre_row + ring:
                left, right, stride = max(left, first_column), min(right, last_column), 1
            for column in range(left, right + 1, stride):
                inside = first_column <= column <= last_column
                if inside and mark[row - first_row, column - first_column] == UNPROCESSED:
                    _look_from(row, column, centre_row, centre_column, first_row, first_column, free, mark)
