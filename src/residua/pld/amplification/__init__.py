"""Amplification: how sampling and group privacy change a privacy loss."""
