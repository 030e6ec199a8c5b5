"""Clients of the budget service: `Client`, and `AsyncClient` to be awaited."""

from residua.service.client.client import AsyncClient, Client

__all__ = ["AsyncClient", "Client"]
