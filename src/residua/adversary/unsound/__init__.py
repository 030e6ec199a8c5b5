"""Rules that look safe and are not, kept as demonstrations."""
