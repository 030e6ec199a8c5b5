"""Composition by sums over a contour: moments on a vertical line instead of a grid of losses."""
