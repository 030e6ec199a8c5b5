"""Where the budgets of subjects live: memory, DuckDB, Parquet and Spark."""
