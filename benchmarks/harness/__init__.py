"""What benchmarks share: the clock, mechanisms, the exact values, rows and sections."""
