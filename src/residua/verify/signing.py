"""Ed25519 signatures of reports, with a key that lives outside the store.

A signed report is a JSON object: `report`, the canonical text of the report; `key`, the public key;
`signature`, over the bytes of `report`; the last two in base64. Needs the package `cryptography`
(`pip install residua[sign]`), which is loaded only here.
"""

from __future__ import annotations

import base64
import binascii
import json
from importlib import import_module
from pathlib import Path
from typing import Any

from residua.errors import ArgumentError, MissingPackage
from residua.records import canonical
from residua.verify.report import Report


def signed(report: Report, key_file: str | Path) -> str:
    """The report with a signature by the private key in a PEM file."""
    serialization, ed25519, _ = _cryptography()
    try:
        key = serialization.load_pem_private_key(Path(key_file).read_bytes(), None)
    except (OSError, ValueError, TypeError) as error:
        raise ArgumentError(f"key must be a PEM file without a password, got {error}") from None
    if not isinstance(key, ed25519.Ed25519PrivateKey):
        raise ArgumentError(f"key must be an Ed25519 key, got {type(key).__name__}")
    text = report.to_json()
    raw = serialization.Encoding.Raw, serialization.PublicFormat.Raw
    public = key.public_key().public_bytes(*raw)
    return canonical(
        {
            "report": text,
            "key": base64.b64encode(public).decode(),
            "signature": base64.b64encode(key.sign(text.encode())).decode(),
        }
    )


def check_signature(text: str, public_key: str | None = None) -> dict[str, Any]:
    """The report inside a signed one; raises unless the signature is that of `public_key`.

    The key is in base64. Without one only the signature itself is checked, against the key that the
    report names: that shows who signed to nobody.
    """
    _, ed25519, invalid = _cryptography()
    try:
        outer = json.loads(text)
        key = base64.b64decode(outer["key"], validate=True)
        signature = base64.b64decode(outer["signature"], validate=True)
        body = outer["report"].encode()
        report: dict[str, Any] = json.loads(body)
    except (ValueError, KeyError, TypeError, AttributeError, binascii.Error) as error:
        raise ArgumentError(f"text must be a signed report, got {error!r}") from None
    if public_key is not None and outer["key"] != public_key:
        raise ArgumentError(f"signature must be by the key {public_key}, got one by {outer['key']}")
    try:
        ed25519.Ed25519PublicKey.from_public_bytes(key).verify(signature, body)
    except (invalid, ValueError):
        raise ArgumentError(
            "signature must be of this report, got one that does not match its text and key"
        ) from None
    return report


def _cryptography() -> tuple[Any, Any, Any]:
    try:
        exceptions = import_module("cryptography.exceptions")
        serialization = import_module("cryptography.hazmat.primitives.serialization")
        ed25519 = import_module("cryptography.hazmat.primitives.asymmetric.ed25519")
    except ModuleNotFoundError as error:
        raise MissingPackage.behind(error, "signing") from None
    return serialization, ed25519, exceptions.InvalidSignature
