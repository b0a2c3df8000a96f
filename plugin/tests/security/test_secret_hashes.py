"""Hashes of passwords and keys."""

import pytest

from opensearch_ml_stream.plugin.security.secret_hashes import (
    hash_password,
    is_key_secret,
    is_password,
    new_key,
    split_key,
)


def test_a_hash_is_as_costly_as_owasp_asks() -> None:
    stored = hash_password("correct horse")
    assert stored.startswith("scrypt$16384$8$5$")
    assert is_password("correct horse", stored)


@pytest.mark.usefixtures("cheap_passwords")
def test_a_password_fits_its_own_hash_alone() -> None:
    stored = hash_password("correct horse")
    assert is_password("correct horse", stored)
    assert not is_password("correct horsf", stored)
    assert hash_password("correct horse") != stored, "each hash has a salt of its own"
    assert "correct" not in stored


@pytest.mark.parametrize("stored", ["", "scrypt$1$1$1$$", "bcrypt$1$2$3$4$5", "scrypt$x$8$5$AA==$AA==",
                                    f"scrypt${2**30}$8$5$AA==$AA=="])  # fmt: skip
def test_a_hash_that_cannot_be_read_fits_no_password(stored: str) -> None:
    assert not is_password("", stored)


def test_a_key_is_found_by_its_id_and_fits_by_its_secret() -> None:
    key = new_key()
    parts = split_key(key.value)
    assert parts is not None
    id, secret = parts
    assert id == key.id
    assert is_key_secret(secret, key.hash)
    assert not is_key_secret(secret[:-1], key.hash)
    assert secret not in key.hash
    assert new_key().value != key.value


@pytest.mark.parametrize(
    "value", ["", "mls", "mls_", "mls_a", "mls_a_", "mls__s", "sk_a_b", "mls_a/b_c", "mls_é_s", f"mls_{'a' * 17}_s"]
)
def test_other_strings_are_no_keys(value: str) -> None:
    assert split_key(value) is None
