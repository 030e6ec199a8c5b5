"""GDP residues: what a query costs of a Gaussian budget, with proofs."""
