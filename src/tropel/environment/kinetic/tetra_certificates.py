"""How far points may move before a tetrahedron can invert or a face can fail the in-sphere test.

Let every point move by at most δ. A tetrahedron with the altitudes h_i has the barycentric coordinates b_i, with
gradients of the length 1 / h_i; let g = Σ 1 / h_i. At the moved vertices p'_j, b_i is 1 or 0 plus ∇b_i · dp_j. As a
linear function it is the sum of these values times the moved tetrahedron's coordinates b'_j. So |∇b'_i| is at most
|∇b_i| (1 + δ g'), and in the sum

    g' ≤ g / (1 - g δ):    it cannot become flat while δ < 1 / g.

Let x and R be centre and radius of its sphere, π(y) = |y - x|² - R², e the point behind a face, at the distance d from
x, P = π(e) > 0 and B = Σ |b_i(e)|. The moved sphere's π' differs from π by a linear function that is at most
2 R δ + δ² at the moved vertices, and Σ |b'_i(e')| ≤ (B + g δ) / (1 - g δ). So e stays outside while

    (P - 2 d δ) (1 - g δ) > (2 R δ + δ²) (B + g δ),

for which P > (2 d + 2 R B + g P) δ + B δ² + g δ³ is enough, as d > R. When points are nearly cospherical, P is small
and 2 d + 2 R B is what the derivative of the determinant gives: the tolerance is sharp. Rounding in x and R does not
matter: it shows as a rest of π at the vertices, which is measured and taken off P.
"""

from __future__ import annotations

import math

import numpy as np

from tropel._kernels.compile import inlined_kernel
from tropel._kernels.simd import trailing_zeros
from tropel.environment.kinetic.tetra_arrays import enqueue, glue, is_upright

_ROUNDING = 1e-14
#: What rounding does to a tolerance, generously, and to a sum of travel and tolerance.
_CAREFUL, _SUM = 1.0 - 1e-9, 4e-16


@inlined_kernel
def dot(a, b):
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]


@inlined_kernel
def cross(a, b):
    return a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]


@inlined_kernel
def edges_of(m, t):
    """The three edges from the last vertex, their cross products, and six times the volume."""
    p, corner = m.position, m.tet_vertex
    a, b, c, d = corner[t, 0], corner[t, 1], corner[t, 2], corner[t, 3]
    u = (p[a, 0] - p[d, 0], p[a, 1] - p[d, 1], p[a, 2] - p[d, 2])
    v = (p[b, 0] - p[d, 0], p[b, 1] - p[d, 1], p[b, 2] - p[d, 2])
    w = (p[c, 0] - p[d, 0], p[c, 1] - p[d, 1], p[c, 2] - p[d, 2])
    v_w = cross(v, w)
    return u, v, w, v_w, cross(w, u), cross(u, v), dot(u, v_w)


@inlined_kernel
def areas_of(a, b, c):
    """At least twice the area of all four faces, from three cross products: twice the root of the sum of squares."""
    s = (a[0] + b[0] + c[0], a[1] + b[1] + c[1], a[2] + b[2] + c[2])
    return 2.0 * math.sqrt(dot(a, a) + dot(b, b) + dot(c, c) + dot(s, s))


@inlined_kernel
def tolerances_of(m, t, faces):
    """How far points may move with a tetrahedron upright, and with the points behind some of its faces outside.

    `faces` has a bit for each. Returns the smallest tolerance, below 0 if the tetrahedron is inverted; a bit for each
    face that fails or is in doubt; and the highest speed class of all these points.
    """
    u, v, w, a, b, c, volume = edges_of(m, t)
    doubt = _ROUNDING * (
        (abs(u[0]) + abs(u[1]) + abs(u[2])) * (abs(v[0]) + abs(v[1]) + abs(v[2])) * (abs(w[0]) + abs(w[1]) + abs(w[2]))
    )
    fastest = m.vertex_class[m.tet_vertex[t, 0]]
    for k in range(1, 4):
        fastest = max(fastest, m.vertex_class[m.tet_vertex[t, k]])
    if volume <= doubt:
        # Too flat for any statement about its sphere.
        return 0.0 if volume >= -doubt and is_upright(m, t) else -1.0, faces, fastest
    areas = areas_of(a, b, c)
    # One division for both: they take longer than the rest.
    both = 1.0 / (areas * volume)
    inverse, steep = both * areas, both * areas * areas
    tolerance = (volume - doubt) * both * volume
    # The factor 4 before the rest is enough up to half of what inverts the tetrahedron.
    most = 0.5 * tolerance
    half = 0.5 * inverse
    uu, vv, ww = dot(u, u), dot(v, v), dot(w, w)
    x = (
        (uu * a[0] + vv * b[0] + ww * c[0]) * half,
        (uu * a[1] + vv * b[1] + ww * c[1]) * half,
        (uu * a[2] + vv * b[2] + ww * c[2]) * half,
    )
    radius2 = dot(x, x)
    twice_radius = 2.0 * math.sqrt(radius2)
    rest_here = max(abs(uu - 2.0 * dot(u, x)), abs(vv - 2.0 * dot(v, x)), abs(ww - 2.0 * dot(w, x)))
    longest_here = max(uu, vv, ww)
    d = m.tet_vertex[t, 3]
    dx, dy, dz = m.position[d, 0], m.position[d, 1], m.position[d, 2]
    in_doubt = faces & 0
    while faces:
        k = trailing_zeros(np.uint64(faces))
        faces &= faces - 1
        e = m.tet_opposite[t, k]
        fastest = max(fastest, m.vertex_class[e])
        away = (m.position[e, 0] - dx, m.position[e, 1] - dy, m.position[e, 2] - dz)
        ee = dot(away, away)
        longest = max(longest_here, ee)
        b0, b1, b2 = dot(away, a) * inverse, dot(away, b) * inverse, dot(away, c) * inverse
        spread = abs(b0) + abs(b1) + abs(b2) + abs(1.0 - b0 - b1 - b2)
        # Twice the product of two lengths is at most the sum of their squares.
        rest = rest_here + _ROUNDING * (2.0 * longest + radius2)
        power = ee - 2.0 * dot(away, x) - 4.0 * rest * (1.0 + spread)
        if not power > 0.0 or volume * volume < 1e-20 * longest * longest * longest:
            in_doubt |= 1 << k
            continue
        # d = √(R² + P) is at most R + P / 2 R, and 1 / R at most g / 3: a sphere inside has the radius 1 / g.
        first = 1.0 / (twice_radius * (1.0 + spread) + power * (4.0 / 3.0 * steep))
        reach = power * first
        # 1 / (1 + y) is at least 1 - y.
        tolerance = min(tolerance, reach * (1.0 - reach * (spread + steep * reach) * first), most)
    if in_doubt:
        tolerance = 0.0
    return tolerance * _CAREFUL, in_doubt, fastest


@inlined_kernel
def certify(m, t):
    """Renew the certificate of a tetrahedron; False if it is inverted. Faces that fail or are in doubt are queued."""
    tolerance, in_doubt, fastest = tolerances_of(m, t, np.int64(m.watches[t]))
    if tolerance < 0.0:
        return False
    m.tet_class[t] = fastest
    m.tet_due[t] = m.travel[fastest] * (1.0 - _SUM) + tolerance
    if in_doubt:
        volume = edges_of(m, t)[6]
        for k in range(4):
            if in_doubt >> k & 1:
                enqueue(m, 4 * t + k)
                # The sphere of the larger tetrahedron is the better conditioned one.
                twin = m.tet_neighbour[t, k]
                if edges_of(m, twin >> 2)[6] > volume:
                    glue(m, twin, 4 * t + k)
    return True
