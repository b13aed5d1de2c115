"""exp and arctan without branches and calls, so that loops that use them compile to vector instructions.

Both are polynomials (interpolated at Chebyshev points, and evaluated pairwise to shorten the chain of operations) and
agree with the exact values to a few units in the last place. Multiplications and additions are fused explicitly, so
the result has the same bits in a vector as in scalar code.
"""

from __future__ import annotations

from tropel._kernels.compile import inlined_kernel
from tropel._kernels.simd import bits_of, fma, number_of

#: 1.5 · 2^52: adding a number to it rounds the number to an integer, which appears in the low bits.
_ROUNDER = 6755399441055744.0
_PER_LOG_2 = 1.4426950408889634
#: log 2 in two parts; the first has so few digits that its multiples are exact.
_LOG_2_HIGH, _LOG_2_LOW = 0.6931471803691238, 1.9082149292705877e-10


@inlined_kernel
def fast_exp(y):
    """exp(y), relative error below 1e-15; |y| is limited to 700."""
    y = max(min(y, 700.0), -700.0)
    rounded = fma(y, _PER_LOG_2, _ROUNDER)
    n = rounded - _ROUNDER
    r = fma(-n, _LOG_2_LOW, fma(-n, _LOG_2_HIGH, y))
    e0_1 = fma(1.0, r, 1.0)
    e2_3 = fma(0.1666666666666668, r, 0.5000000000000019)
    e4_5 = fma(0.008333333333319589, r, 0.04166666666648795)
    e6_7 = fma(0.00019841269890076403, r, 0.0013888888952352863)
    e8_9 = fma(2.755724088722987e-06, r, 2.4801485441561313e-05)
    e10_11 = fma(2.5110049204818658e-08, r, 2.763265472252779e-07)
    r2 = r * r
    e0_3 = fma(e2_3, r2, e0_1)
    e4_7 = fma(e6_7, r2, e4_5)
    e8_11 = fma(e10_11, r2, e8_9)
    r4 = r2 * r2
    e0_7 = fma(e4_7, r4, e0_3)
    r8 = r4 * r4
    e0_11 = fma(e8_11, r8, e0_7)
    # Multiply by 2^n: add n to the exponent.
    return number_of(bits_of(e0_11) + (bits_of(rounded) << 52))


@inlined_kernel
def fast_atan(t):
    """arctan(t) for t in [0, 1], relative error below 1e-14."""
    u = t * t
    a0_1 = fma(-0.3333333333289398, u, 0.9999999999999925)
    a2_3 = fma(-0.142857126460504, u, 0.19999999957481826)
    a4_5 = fma(-0.09090489647799033, u, 0.11111077584971772)
    a6_7 = fma(-0.06646145790221254, u, 0.07688811662401294)
    a8_9 = fma(-0.04977996675955047, u, 0.05794192316881845)
    a10_11 = fma(-0.029589012194344372, u, 0.04051778977125066)
    a12_13 = fma(-0.008792435542217635, u, 0.018198570485395787)
    a14_15 = fma(-0.0006774105399645076, u, 0.0030659957028108006)
    u2 = u * u
    a0_3 = fma(a2_3, u2, a0_1)
    a4_7 = fma(a6_7, u2, a4_5)
    a8_11 = fma(a10_11, u2, a8_9)
    a12_15 = fma(a14_15, u2, a12_13)
    u4 = u2 * u2
    a0_7 = fma(a4_7, u4, a0_3)
    a8_15 = fma(a12_15, u4, a8_11)
    u8 = u4 * u4
    a0_15 = fma(a8_15, u8, a0_7)
    u16 = u8 * u8
    a0_16 = fma(7.063142635888046e-05, u16, a0_15)
    return t * a0_16
