"""The Blackwell order: comparison of whole curves, decided or left UNDECIDED."""
