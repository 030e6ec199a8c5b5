"""Mechanisms that answer with a choice."""
