"""Budgets in a database: durable, replayable, verifiable. Public names are in `residua`."""
