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

from tropel._kernels.compile import inlined_kernel
from tropel.environment.kinetic.tetra_arrays import NOTHING, in_sphere_of, orientation_with

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
    """Twice the area of all four faces, from three cross products."""
    s = (a[0] + b[0] + c[0], a[1] + b[1] + c[1], a[2] + b[2] + c[2])
    return math.sqrt(dot(a, a)) + math.sqrt(dot(b, b)) + math.sqrt(dot(c, c)) + math.sqrt(dot(s, s))


@inlined_kernel
def certify_tet(m, t):
    """Whether a tetrahedron is positively oriented; if so, its certificate is renewed."""
    u, v, w, a, b, c, volume = edges_of(m, t)
    doubt = _ROUNDING * (
        (abs(u[0]) + abs(u[1]) + abs(u[2])) * (abs(v[0]) + abs(v[1]) + abs(v[2])) * (abs(w[0]) + abs(w[1]) + abs(w[2]))
    )
    tolerance = 0.0
    if volume > doubt:
        tolerance = (volume - doubt) / areas_of(a, b, c) * _CAREFUL
    elif volume < -doubt or orientation_with(m, t, 4, 0.0, 0.0, 0.0) <= 0:
        return False
    # Points that still have to go in this step will do so after the travel has been counted.
    way, fastest = 0.0, m.tet_class[t] * 0
    for k in range(4):
        point = m.tet_vertex[t, k]
        way = max(way, m.position[point, 3])
        fastest = max(fastest, m.vertex_class[point])
    m.tet_class[t] = fastest
    m.tet_due[t] = m.travel[fastest] * (1.0 - _SUM) + tolerance - way
    return True


@inlined_kernel
def face_tolerance(m, t, k):
    """How far the points of tetrahedron t and the one behind its face k may move with e outside; below 0: in doubt."""
    u, v, w, a, b, c, volume = edges_of(m, t)
    d = m.tet_vertex[t, 3]
    code = m.tet_neighbour[t, k]
    e = m.tet_vertex[code >> 2, code & 3]
    away = (
        m.position[e, 0] - m.position[d, 0],
        m.position[e, 1] - m.position[d, 1],
        m.position[e, 2] - m.position[d, 2],
    )
    uu, vv, ww, ee = dot(u, u), dot(v, v), dot(w, w), dot(away, away)
    longest = max(uu, vv, ww, ee)
    if volume < 1e-10 * longest * math.sqrt(longest):
        return -1.0  # too flat for sharp statements about its sphere
    inverse = 1.0 / volume
    half = 0.5 * inverse
    x = (
        (uu * a[0] + vv * b[0] + ww * c[0]) * half,
        (uu * a[1] + vv * b[1] + ww * c[1]) * half,
        (uu * a[2] + vv * b[2] + ww * c[2]) * half,
    )
    radius2 = dot(x, x)
    rest = max(abs(uu - 2.0 * dot(u, x)), abs(vv - 2.0 * dot(v, x)), abs(ww - 2.0 * dot(w, x)))
    rest += _ROUNDING * (longest + 2.0 * math.sqrt(longest * radius2))
    b0, b1, b2 = dot(away, a) * inverse, dot(away, b) * inverse, dot(away, c) * inverse
    spread = abs(b0) + abs(b1) + abs(b2) + abs(1.0 - b0 - b1 - b2)
    power = ee - 2.0 * dot(away, x) - 4.0 * rest * (1.0 + spread)
    if power <= 0.0:
        return -1.0
    # Their sum is at most twice the root of the sum of squares: one root instead of four.
    d_area = (a[0] + b[0] + c[0], a[1] + b[1] + c[1], a[2] + b[2] + c[2])
    areas = 2.0 * math.sqrt(dot(a, a) + dot(b, b) + dot(c, c) + dot(d_area, d_area))
    steep = areas * inverse
    gap = (away[0] - x[0], away[1] - x[1], away[2] - x[2])
    first = 2.0 * math.sqrt(dot(gap, gap)) + 2.0 * math.sqrt(radius2) * spread + steep * power
    reach = power / first
    # The factor 4 before the rest is enough up to half of what inverts the tetrahedron.
    return min(power / (first + spread * reach + steep * reach * reach), 0.5 * volume / areas) * _CAREFUL


@inlined_kernel
def certify_face(m, t, k):
    """Whether a face passes the in-sphere test; if so, its certificate is renewed. Both sides must be oriented."""
    twin = m.tet_neighbour[t, k]
    if twin == NOTHING:
        return True
    n, n_k = twin >> 2, twin & 3
    # The sphere of the larger tetrahedron is the better conditioned one.
    volume, other_volume = edges_of(m, t)[6], edges_of(m, n)[6]
    larger, place = (t, k) if volume >= other_volume else (n, n_k)
    tolerance = face_tolerance(m, larger, place)
    e = m.tet_vertex[n, n_k]
    if tolerance < 0.0:
        if in_sphere_of(m, t, m.position[e, 0], m.position[e, 1], m.position[e, 2]) > 0:
            return False
        tolerance = 0.0
    way, fastest = m.position[e, 3], m.vertex_class[e]
    for j in range(4):
        point = m.tet_vertex[t, j]
        way = max(way, m.position[point, 3])
        fastest = max(fastest, m.vertex_class[point])
    code = 4 * t + k
    low, high = min(code, twin), max(code, twin)
    m.face_class[low >> 2, low & 3] = fastest
    m.face_due[low >> 2, low & 3] = m.travel[fastest] * (1.0 - _SUM) + tolerance - way
    m.face_due[high >> 2, high & 3] = math.inf
    return True
