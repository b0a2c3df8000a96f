"""What a connection over TLS has beside its transport."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from starlette.types import Scope


@dataclass(frozen=True, slots=True)
class SecureChannel:
    """`extension` is ASGI's TLS extension, `tcp` the transport to which TLS writes."""

    extension: Mapping[str, Any]
    tcp: asyncio.Transport

    def mark(self, scope: Scope) -> None:
        """Tell the application of the TLS beneath a request."""
        scope["scheme"] = "https"
        scope["extensions"]["tls"] = self.extension
