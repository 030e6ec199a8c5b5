"""Evaluation of the hockey-stick curve and everything that is read off it."""
