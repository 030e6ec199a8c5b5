"""dp_accounting: events, privacy loss distributions and the accountant interface."""

from residua.interop.dp_accounting.events import PrivacyAccountant, from_dp_event
from residua.interop.dp_accounting.plds import from_google_pld, to_google_pld

__all__ = ["PrivacyAccountant", "from_dp_event", "from_google_pld", "to_google_pld"]
