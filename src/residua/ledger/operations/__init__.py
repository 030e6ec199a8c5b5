"""What changes budgets: spend, hold, create, retire, and the one way to commit them."""
