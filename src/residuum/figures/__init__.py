"""Every picture, one function each.

The functions return matplotlib figures and touch no global state: the caller saves or shows them.
"""
