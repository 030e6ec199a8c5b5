"""The version of the code, for whatever writes it down."""

__version__ = "0.1.0"
