"""Supremum, infimum, and the kernel between two ordered PLDs."""
