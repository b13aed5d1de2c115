"""Arithmetic without rounding: sums of floating-point numbers that do not overlap, smallest first ("expansions").

After Shewchuk, "Adaptive precision floating-point arithmetic and fast robust geometric predicates", 1997. An expansion
is the front of an array and its length. Parts that are zero are left out, so numbers with few digits stay short; the
sign is that of the last part. Exact as long as nothing overflows or underflows.
"""

from __future__ import annotations

from tropel._kernels.compile import kernel

_SPLIT = 134217729.0  # 2 ** 27 + 1


@kernel
def two_sum(a, b):
    """a + b as (rounded sum, exact error)."""
    total = a + b
    virtual = total - a
    return total, (a - (total - virtual)) + (b - virtual)


@kernel
def two_product(a, b):
    """a · b as (rounded product, exact error), by Dekker's splitting."""
    product = a * b
    c = _SPLIT * a
    a_high = c - (c - a)
    a_low = a - a_high
    c = _SPLIT * b
    b_high = c - (c - b)
    b_low = b - b_high
    return product, a_low * b_low - (((product - a_high * b_high) - a_low * b_high) - a_high * b_low)


@kernel
def difference(a, b, out):
    """Write a - b; returns its length."""
    high, low = two_sum(a, -b)
    size = 0
    if low != 0.0:
        out[size] = low
        size += 1
    if high != 0.0:
        out[size] = high
        size += 1
    return size


@kernel
def add_number(e, size, b):
    """Add a number to an expansion in place; returns its new length. There must be room for one more part."""
    kept = 0
    carry = b
    for k in range(size):
        carry, rest = two_sum(carry, e[k])
        if rest != 0.0:
            e[kept] = rest
            kept += 1
    if carry != 0.0:
        e[kept] = carry
        kept += 1
    return kept


@kernel
def add(e, size, f, f_size, sign):
    """Add sign · f to e in place; returns the new length of e, at most the sum of both."""
    for k in range(f_size):
        size = add_number(e, size, sign * f[k])
    return size


@kernel
def add_product(out, size, e, e_size, f, f_size, sign):
    """Add sign · e · f to `out` in place; returns its new length, at most 2 · e_size · f_size more."""
    for k in range(e_size):
        for m in range(f_size):
            high, low = two_product(sign * e[k], f[m])
            if low != 0.0:
                size = add_number(out, size, low)
            size = add_number(out, size, high)
    return size


@kernel
def sign_of(e, size):
    """-1, 0 or 1; 0 also after an overflow."""
    if size == 0:
        return 0
    last = e[size - 1]
    return int(last > 0.0) - int(last < 0.0)
