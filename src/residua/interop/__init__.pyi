"""What `residua.interop` offers: `__init__.py` reads this file, and so do type checkers."""

from residua.interop import (
    dp_accounting as dp_accounting,
    opacus as opacus,
    opendp as opendp,
)
from residua.interop.dp_accounting import (
    PrivacyAccountant as PrivacyAccountant,
    from_dp_event as from_dp_event,
)
from residua.interop.google_pld import (
    from_google_pld as from_google_pld,
    to_google_pld as to_google_pld,
)
from residua.interop.opendp import from_opendp as from_opendp, guard_opendp as guard_opendp
