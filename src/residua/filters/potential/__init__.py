"""Filters on potentials and plans: plan, menu, and Rényi with commit."""
