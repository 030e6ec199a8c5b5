"""Filters that replace the budget by a proven residue after each query."""
