"""Clients of the budget service: `Client`, and `AsyncClient` to be awaited."""

from residuum.service.client.asynchronous import AsyncClient
from residuum.service.client.sync import Client

__all__ = ["AsyncClient", "Client"]
