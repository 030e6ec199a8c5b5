"""Pure values and rules of the ledger; no input or output."""
