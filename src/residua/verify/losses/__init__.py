"""Privacy losses by the verifier's own formulas, and their hockey-stick curves."""
