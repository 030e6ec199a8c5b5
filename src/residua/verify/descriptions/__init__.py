"""Descriptions of mechanisms, filters and states, read strictly."""
