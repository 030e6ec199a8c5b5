"""Mechanisms that add noise to a number or a vector."""
