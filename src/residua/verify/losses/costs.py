"""Why a loss has no cost that could be charged."""

from __future__ import annotations


class Unknown(Exception):
    """A cost that cannot be worked out, and why."""


class Infinite(Exception):
    """A cost that no amount covers, and why."""
