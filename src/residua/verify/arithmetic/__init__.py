"""Ball arithmetic under a limit of work and memory."""
