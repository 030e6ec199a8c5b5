"""Who may do what: tokens and permissions."""
