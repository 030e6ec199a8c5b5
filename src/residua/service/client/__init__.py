"""Clients of the budget service: `Client`, and `AsyncClient` to be awaited."""

from residua.service.client.asynchronous import AsyncClient
from residua.service.client.sync import Client

__all__ = ["AsyncClient", "Client"]
