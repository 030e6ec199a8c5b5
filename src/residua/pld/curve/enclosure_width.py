"""The width in `eps` of enclosures of a curve, bounded by means of the other enclosures.

`D` is convex in `x = e^t` and decreases. With upper ends at two points, the chord between them is
above it, so at `t + a` it is at most

    hi_i - (hi_i - hi_j) (e^a - 1) / (e^{t_j - t_i} - 1),        t_j >= t_i + a,

and where that is at most `lo_i` the width of the enclosure at `t_i` is at most `a`: no other
reading is needed to know it.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from residua.bounds import Floats


def are_narrow(t: Floats, lo: Floats, hi: Floats, accuracy: float) -> NDArray[np.bool_]:
    """Whether each enclosure of a convex curve is shown to be no wider than `accuracy` in `eps`.

    By the next argument that is far enough away; False where there is none.
    """
    order = np.argsort(t)
    at = np.searchsorted(t, t + accuracy, sorter=order)
    found = at < t.size
    after = order[np.minimum(at, t.size - 1)]
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        share = np.expm1(accuracy) / np.expm1(t[after] - t)
        narrow = (hi - hi[after]) * share >= hi - lo
    return np.asarray(found & narrow)
