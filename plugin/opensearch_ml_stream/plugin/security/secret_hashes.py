"""Hashes of secrets: scrypt for passwords, which people choose, SHA-256 for keys, which are random."""

import base64
import hashlib
import hmac
import re
import secrets
from dataclasses import dataclass

KEY_PREFIX = "mls"
_KEY_ID = re.compile(r"[0-9a-f]{1,16}")
MIN_PASSWORD_CHARACTERS = 8

# 16 MiB and some 130 ms for each try (RFC 7914; of the parameters that OWASP gives as equal, those with least memory).
_COST, _BLOCK_SIZE, _PARALLELISM = 2**14, 8, 5
_SALT_BYTES = 16
_MAX_MEMORY = 64 * 1024 * 1024
_MAX_COST = 2**17  # of a stored hash: more would need more memory than is granted


@dataclass(frozen=True, slots=True)
class NewKey:
    """A new key: its value, which is shown once, and the hash that is stored."""

    id: str
    value: str
    hash: str


def hash_password(password: str) -> str:
    """Return `scrypt$N$r$p$salt$hash`, salt and hash in base64. Takes some 130 ms, so call it in a thread."""
    salt = secrets.token_bytes(_SALT_BYTES)
    digest = _scrypt(password, salt, _COST, _BLOCK_SIZE, _PARALLELISM)
    encoded = (base64.b64encode(part).decode() for part in (salt, digest))
    return "$".join(("scrypt", str(_COST), str(_BLOCK_SIZE), str(_PARALLELISM), *encoded))


def is_password(password: str, stored: str) -> bool:
    """Whether the stored hash is of that password; False for a hash that cannot be read. Takes some 130 ms."""
    try:
        kind, cost, block_size, parallelism, salt, digest = stored.split("$")
        if kind != "scrypt" or int(cost) > _MAX_COST:
            return False
        wanted = base64.b64decode(digest)
        computed = _scrypt(password, base64.b64decode(salt), int(cost), int(block_size), int(parallelism))
    except ValueError:
        return False
    return hmac.compare_digest(computed, wanted)


def new_key() -> NewKey:
    """Make a key, `mls_<id>_<secret>`: the id finds its document, the secret has 256 random bits."""
    id = secrets.token_hex(8)
    secret = secrets.token_hex(32)
    return NewKey(id, f"{KEY_PREFIX}_{id}_{secret}", _hash_key_secret(secret))


def split_key(value: str) -> tuple[str, str] | None:
    """Return id and secret of a key; None if it has not the form of one."""
    prefix, _, rest = value.partition("_")
    id, separator, secret = rest.partition("_")
    return (id, secret) if prefix == KEY_PREFIX and separator and _KEY_ID.fullmatch(id) and secret else None


def is_key_secret(secret: str, stored: str) -> bool:
    """Whether the stored hash is of that secret of a key."""
    return hmac.compare_digest(_hash_key_secret(secret).encode(), stored.encode())


def _hash_key_secret(secret: str) -> str:
    return hashlib.sha256(secret.encode("utf-8", "surrogateescape")).hexdigest()


def _scrypt(password: str, salt: bytes, cost: int, block_size: int, parallelism: int) -> bytes:
    data = password.encode("utf-8", "surrogateescape")
    return hashlib.scrypt(data, salt=salt, n=cost, r=block_size, p=parallelism, maxmem=_MAX_MEMORY, dklen=32)
