"""Export, and recovery after a restored backup."""
