"""Scripts that show the library at work: `python -m examples.NAME --help`."""
