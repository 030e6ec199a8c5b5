"""Filters whose costs add up, one parameter or several."""
