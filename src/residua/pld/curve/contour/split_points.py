"""Where to cut the mixtures of a contour in two, if at all.

Nothing here is proven and nothing needs to be: what a choice costs is charged by `split.py`.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from residua.bounds import Floats
from residua.pld.arithmetic.ulp_bounds import U
from residua.pld.curve.contour import split_parts
from residua.pld.curve.contour.moments import Moments
from residua.pld.curve.contour.nodes import Line
from residua.pld.curve.contour.split import (
    Level,
    Parted,
    cut_at,
    falls,
    node_parts,
    quiet_bound,
    quiet_moments,
    tails,
)
from residua.pld.curve.contour.transform import truncation

_SHARES = (0.35, 0.25, 0.18, 0.12, 0.08, 0.05)
"""Losses to cut at, as shares of `t`."""
_TILTS = np.array([2.0, 5.0, 9.0, 14.0, 22.0, 40.0])
"""Tilts for the bound on what is quiet, in units of `1 + 1/t`."""
_RELATIVE = math.log(1e-9)
"""Cost of the low-loss part and the truncation, at most, relative to the value."""
_CROWD, _MORE = 14.0, 1.5
"""A stream should have room for so many queries in all, and so many times those there are."""
_MOST_NODES = 1 << 15


def parted(
    moments: Moments, t: float, line: Line, k: Floats, e: Floats, spread: float, room: float
) -> Parted | None:
    """A contour in two parts on this line, its count left open; None if there is no low-loss part.

    `k` and `e` are log moments, and their errors, at the tilt and at the points of the line.
    """
    if not t > 0.0:
        return None
    lam = line.lam
    at = _TILTS * (1.0 + 1.0 / t)
    crowd = 1.0
    if room > 1.0:
        crowd = max(_MORE, _CROWD / sum(n for _, n in moments.mixtures))
    saddle = -math.log((lam + 1.0) * (lam * spread + 1.0) * 3.0)
    for share in _SHARES:
        level = Level(share * t, t)
        cuts = cut_at(moments, level)
        loud = sum(n * split_parts.loud_share(f.pair, cut, lam) for f, n, cut in cuts)
        if not loud > 0.0:
            return None
        if share == _SHARES[0]:
            height = math.log(min(loud, 1.0)) + saddle
        quiet = quiet_moments(moments, cuts, at)
        bound = float(quiet_bound(at, crowd * quiet, np.array([t]), 0.0)[0])
        if math.log(bound) <= height + float(k[0]) - lam * t + _RELATIVE:
            break
    else:
        return None
    edges = np.geomspace(2.0 / spread, _MOST_NODES * line.step, 64)
    fall = np.log(falls(moments, cuts, lam, edges)[1] + 1e-300) - np.log(edges)
    enough = np.flatnonzero(fall <= height + _RELATIVE)
    if enough.size == 0:
        return None
    line = replace(line, count=int(float(edges[enough[0]]) / line.step) + 16)
    values = node_parts(moments, cuts, line)
    if values is None:
        return None
    tail, whole_fall = tails(moments, cuts, line)
    return Parted(
        line,
        level,
        values,
        float(k[0]),
        float(e[0]) + 8.0 * U * abs(float(k[0])),
        tail,
        truncation(line, 0.0, whole_fall)[0],
        t,
        k[1:] + e[1:] + 8.0 * U * np.abs(k[1:]),
        at,
        quiet,
    )
