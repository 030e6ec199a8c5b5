"""Proofs of single steps, one kind of filter a file."""
