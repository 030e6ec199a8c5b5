"""The peers, each asked in a process of its own: who they are, where they live, how to ask them.

An adapter (`adapters/`) is a script with the standard library and its peer alone; it reads tasks
and writes answers as JSON, so that a peer may need another numpy, another Python, or crash.
"""
