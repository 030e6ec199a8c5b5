"""Other libraries: what they describe as our queries, and our accounting behind their interfaces.

    rz.interop.from_dp_event(event)                   dp_accounting's events
    rz.interop.from_google_pld(pld), to_google_pld    its privacy loss distributions, both ways
    rz.interop.PrivacyAccountant()                    its accountant, on our core
    rz.interop.from_opendp(measurement)               OpenDP's measurements
    rz.interop.guard_opendp(ledger, budget, …)        the same, run once a ledger was paid
    rz.interop.opacus.register()                      PrivacyEngine(accountant="residua")

Each library is imported when something for it is first used.
"""

from residua.lazy_names import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__, __file__)
