"""Filters that walk along a potential: plan, menu, auto, and Rényi with commit."""
