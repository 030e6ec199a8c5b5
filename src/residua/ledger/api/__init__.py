"""What callers hold: the ledger, guards, views of budgets."""
