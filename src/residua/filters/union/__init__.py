"""Unions of filters: each component keeps a state of its own, and one that admits is enough."""
