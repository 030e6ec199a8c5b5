"""The fast path of a spend, beside the ordinary routes."""
