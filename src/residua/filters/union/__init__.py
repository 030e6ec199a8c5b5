"""Unions of filters: each component keeps its own state, and one that admits is enough."""
