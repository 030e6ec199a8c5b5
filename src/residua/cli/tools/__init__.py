"""Commands about this installation: the demonstration, figures, benchmarks and the version."""
