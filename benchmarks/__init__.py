"""Side by side with dp-accounting, in one run: `python -m benchmarks`.

One benchmark a file; each has a `run(repeats)` that returns rows. Both sides are warmed,
every repeat draws fresh parameters so that no cache can answer, and each figure is the
median over the repeats. Timings are printed beside their targets and never asserted.
"""
