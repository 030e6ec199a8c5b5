"""The objects that callers use: the ledger, guards, views of budgets."""
