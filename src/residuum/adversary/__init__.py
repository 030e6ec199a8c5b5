"""Adversaries: the exact cost of any rule, and what the natural filter really guarantees."""
