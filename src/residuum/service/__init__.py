"""The budget service: HTTP in front of a ledger, and clients with the ledger's verbs.

`pip install 'residuum[service]'` brings what it needs. `residuum.Client` and `residuum.AsyncClient`
speak HTTP with the standard library.
"""
