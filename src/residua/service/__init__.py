"""The budget service: HTTP in front of a ledger, and clients with the ledger's methods.

`pip install 'residua[service]'` brings what it needs. `residua.Client` and `residua.AsyncClient`
speak HTTP with the standard library.
"""
