"""One family of privacy losses a file, in closed form, and the factors of a PLD."""
