"""What sampling and group privacy make of a privacy loss."""
