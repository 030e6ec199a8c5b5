"""Numbers with proven errors: rationals, platform functions, phases, and what convexity proves."""
