"""The header `Authorization` of a key, and of a user with a password."""

import base64
import re

_KEY = re.compile(r"[!-~]{1,4090}")  # visible ASCII; the sidecar reads headers of 4096 characters


def bearer(api_key: str) -> str:
    """Return the header's value for a key; ValueError, which does not show it, for what cannot be one."""
    if _KEY.fullmatch(api_key) is None:
        raise ValueError("a key has 1 to 4090 characters of visible ASCII, and no white space")
    return f"Bearer {api_key}"


def basic(user: str, password: str) -> str:
    """Return the header's value for a user; ValueError for a name that cannot be one."""
    if not user or ":" in user:
        raise ValueError("a user's name is not empty and holds no colon")
    return "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()
