"""Redacts credentials from a provider's error text, and cuts the text."""

import re
from collections.abc import Collection

MAX_TEXT_BYTES = 2048

_BEARER = re.compile(r"(?i)\b(bearer|basic|api-key)\s+[A-Za-z0-9._~+/=-]{8,}")
_SHORTEST_SECRET = 4  # a dummy credential such as "x" is no secret, and its redaction would shred the text


def redact(text: str, credentials: Collection[str]) -> str:
    """Return `text` without credential values and authorization headers, cut at MAX_TEXT_BYTES."""
    for secret in sorted(credentials, key=len, reverse=True):
        if len(secret) >= _SHORTEST_SECRET:
            text = text.replace(secret, "***")
    text = _BEARER.sub(r"\1 ***", text)
    data = text.encode("utf-8", "replace")
    return text if len(data) <= MAX_TEXT_BYTES else data[:MAX_TEXT_BYTES].decode("utf-8", "ignore") + "..."
