"""Commands that compute: privacy losses, plans, comparisons and attacks."""
