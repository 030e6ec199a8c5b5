"""Finite PLDs above and below a given one."""
