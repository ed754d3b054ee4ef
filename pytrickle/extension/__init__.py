"""Moving from the extension pg_trickle: what its catalog holds, and the calls that recreate it here.

`tables` and `dump` read the catalog's tables as text, from a live server and from a dump; `contents` says what they
mean; `script` writes the calls.
"""

from __future__ import annotations

from pytrickle.extension.contents import Contents, contents
from pytrickle.extension.dump import dumped_tables
from pytrickle.extension.script import script
from pytrickle.extension.tables import live_tables

__all__ = ["Contents", "contents", "dumped_tables", "live_tables", "script"]
