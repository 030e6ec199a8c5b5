"""Operations that change budgets: spend, hold, create, retire, and the one way to commit them."""
