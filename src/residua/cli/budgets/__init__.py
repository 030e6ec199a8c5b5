"""Commands that work on a ledger or a service."""
