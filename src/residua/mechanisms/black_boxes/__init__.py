"""Mechanisms of which only a bound is known."""
