"""One tracker or generator for each tenant, and nothing over all of them."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Generic, Protocol, TypeVar


class _Watermarked(Protocol):
    @property
    def watermark(self) -> datetime | None: ...


TenantGenerator = TypeVar("TenantGenerator", bound=_Watermarked)


class Tenants(Generic[TenantGenerator]):
    """Keeps tenants apart: no watermark is a minimum over them, or one slow tenant would hold up all the others.

    `make` makes the tracker or generator of a tenant when it is first asked for. In the database a watermark belongs to
    a table, so tenants stay apart there only if each has a table, or a partition, of its own.
    """

    def __init__(self, make: Callable[[], TenantGenerator]) -> None:
        self._make = make
        self._members: dict[str, TenantGenerator] = {}

    def __getitem__(self, tenant: str) -> TenantGenerator:
        if tenant not in self._members:
            self._members[tenant] = self._make()
        return self._members[tenant]

    def watermarks(self) -> dict[str, datetime | None]:
        """Return the watermark in force for each tenant."""
        return {tenant: member.watermark for tenant, member in self._members.items()}
