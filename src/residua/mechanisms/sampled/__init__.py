"""Mechanisms that run on a random sample of the records."""
