"""Files of certificates and keys: the forms that are read, and what is said of those that cannot be."""

import base64
import ssl
import sys
import tempfile
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import dsa, ec
from cryptography.hazmat.primitives.serialization import pkcs12

from opensearch_ml_stream.connectors.errors import InvalidRequest
from opensearch_ml_stream.plugin import key_pairs
from opensearch_ml_stream.plugin.key_pairs import (
    KeyPair,
    KeyPairFiles,
    load_key_pair,
    parse_files,
    parse_private_key,
    read_files,
)
from tests.upstream.certificates import issue

AUTHORITY = issue("authority", authority=True)
OWN = issue("ml.example", AUTHORITY)
OTHER = issue("other.example", AUTHORITY)


def pair_of(folder: Path, certificate: str | bytes, key: str = "", password: str = "") -> KeyPair:
    """What is read from the files `certificate` and, unless it is empty, `key`."""
    path = folder / "certificate"
    path.write_bytes(certificate.encode() if isinstance(certificate, str) else certificate)
    if key:
        (folder / "key").write_text(key)
    files = KeyPairFiles(str(path), str(folder / "key") if key else "", password)
    return parse_files(files, read_files(files.paths()))


def bundle(password: str = "") -> bytes:
    return base64.b64decode(OWN.pkcs12(password, [AUTHORITY]))


@pytest.fixture
def password(tmp_path: Path) -> str:
    (tmp_path / "password").write_text("hush\n")
    return f"file:{tmp_path / 'password'}"


def is_own(pair: KeyPair) -> bool:
    return pair.certificates[0] == OWN.certificate and pair.key.private_numbers() == OWN.key.private_numbers()  # type: ignore[union-attr]


def test_certificate_and_key_may_be_two_files_or_one_in_any_order(tmp_path: Path) -> None:
    assert is_own(pair_of(tmp_path, OWN.pem, OWN.key_pem()))
    assert is_own(pair_of(tmp_path, OWN.pem + OWN.key_pem()))
    assert is_own(pair_of(tmp_path, "Bag Attributes: x\n" + OWN.key_pem() + OWN.pem))


def test_a_chain_follows_the_certificate(tmp_path: Path) -> None:
    assert pair_of(tmp_path, OWN.pem + AUTHORITY.pem + OWN.key_pem()).certificates == (
        OWN.certificate,
        AUTHORITY.certificate,
    )
    assert pair_of(tmp_path, bundle()).certificates == (OWN.certificate, AUTHORITY.certificate)


def test_a_key_may_have_its_parameters_before_it(tmp_path: Path) -> None:
    traditional = OWN.key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption()
    ).decode()
    parameters = "-----BEGIN EC PARAMETERS-----\nBggqhkjOPQMBBw==\n-----END EC PARAMETERS-----\n"
    assert is_own(pair_of(tmp_path, OWN.pem, parameters + traditional))


def test_a_key_that_begins_again_and_again_is_looked_for_to_the_end() -> None:
    """Were it quadratic, it would take longer than any test may."""
    with pytest.raises(ValueError, match="cannot be read"):
        parse_private_key(b"-----BEGIN PRIVATE KEY-----\n" * 400_000)


def test_the_password_comes_from_a_file_or_the_environment(
    tmp_path: Path, password: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KEY_PASSWORD", "hush")
    for source in (password, "env:KEY_PASSWORD"):
        assert is_own(pair_of(tmp_path, OWN.pem, OWN.key_pem("hush"), source))
        assert is_own(pair_of(tmp_path, bundle("hush"), password=source))


def refusal(folder: Path, certificate: str | bytes, key: str = "", password: str = "") -> str:
    with pytest.raises(InvalidRequest) as raised:
        pair_of(folder, certificate, key, password)
    return raised.value.reason.removeprefix(f"{folder}/")


def test_what_is_wrong_is_said_with_the_file(tmp_path: Path, password: str) -> None:
    assert refusal(tmp_path, OWN.pem, OTHER.key_pem()).startswith("key: the key does not match the certificate")
    assert refusal(tmp_path, OWN.pem) == "certificate: it holds no private key in PEM (-----BEGIN PRIVATE KEY-----)"
    assert refusal(tmp_path, OWN.key_pem()).startswith("certificate: it holds no certificate in PEM that can be read")
    encrypted = OWN.key_pem("other")
    assert refusal(tmp_path, OWN.pem, encrypted) == "key: the key is encrypted, and no password is given"
    wrong = "key: the password is wrong, or the key cannot be read"
    assert refusal(tmp_path, OWN.pem, encrypted, password) == wrong
    needless = "key: a password is given, and the key is not encrypted"
    assert refusal(tmp_path, OWN.pem, OWN.key_pem(), password) == needless
    cut = OWN.key_pem()[:60] + "\n-----END PRIVATE KEY-----"
    assert refusal(tmp_path, OWN.pem, cut) == "key: the key cannot be read"
    neither = "certificate: the password is wrong, or it is neither PEM nor PKCS #12"
    assert refusal(tmp_path, bundle("other"), password=password) == neither
    assert refusal(tmp_path, b"\x00") == neither


def test_a_bundle_without_a_key_is_refused(tmp_path: Path) -> None:
    empty = pkcs12.serialize_key_and_certificates(b"name", None, OWN.certificate, None, serialization.NoEncryption())
    assert refusal(tmp_path, empty) == "certificate: the PKCS #12 bundle holds no key, or no certificate for it"


def test_a_key_that_tls_does_not_use_is_refused(tmp_path: Path) -> None:
    key = dsa.generate_private_key(1024).private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    assert refusal(tmp_path, OWN.pem, key.decode()) == "key: the key is of a kind that TLS does not use"
    assert isinstance(OWN.key, ec.EllipticCurvePrivateKey)


def test_a_variable_that_is_not_set_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KEY_PASSWORD", raising=False)
    assert "environment variable KEY_PASSWORD" in refusal(tmp_path, OWN.pem, OWN.key_pem("x"), "env:KEY_PASSWORD")


def test_files_that_cannot_be_read_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InvalidRequest, match=r"missing: the file cannot be read \(No such file or directory\)"):
        read_files([str(tmp_path / "missing")])
    with pytest.raises(InvalidRequest, match="no file can have that path"):
        read_files(["a\0b"])
    monkeypatch.setattr(key_pairs, "MAX_FILE_BYTES", 3)
    (tmp_path / "large").write_bytes(b"four")
    with pytest.raises(InvalidRequest, match="large: the file is larger than 3 bytes"):
        read_files([str(tmp_path / "large")])


@pytest.mark.skipif(sys.platform != "linux", reason="other systems have no files in memory")
def test_a_certificate_needs_no_room_on_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "not there"))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    load_key_pair(context, pair_of(tmp_path, OWN.pem, OWN.key_pem()))
    assert not (tmp_path / "not there").exists()
