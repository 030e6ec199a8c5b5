"""The routes of the service, one subject a file."""
