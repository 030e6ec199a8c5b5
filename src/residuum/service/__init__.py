"""The budget service: HTTP in front of a ledger, and clients with the ledger's verbs.

`residuum.Client` and `residuum.AsyncClient` need httpx alone; the service itself needs what
`pip install 'residuum[service]'` brings.
"""
