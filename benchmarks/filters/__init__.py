"""Filters beside the peers: what they admit and how long a decision takes."""
