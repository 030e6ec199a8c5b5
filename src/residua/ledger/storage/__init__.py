"""Databases: schema, statements, SQLite, PostgreSQL, and the anchor outside the store."""
