"""The natural filter: what it costs, what it guarantees, and its relatives."""
