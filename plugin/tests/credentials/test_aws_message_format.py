"""Credentials are encrypted as ML Commons does it, and nothing that was touched is ever decrypted."""

import base64

import pytest
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from hypothesis import given, settings
from hypothesis import strategies as st

from opensearch_ml_stream.connectors.errors import Internal
from opensearch_ml_stream.plugin.credentials.aws_message_format import decrypt, encrypt

KEY = bytes(range(32))
# Made by the AWS Encryption SDK for Java with KEY.
FROM_JAVA = (
    "AgV4XAw1QDJSci615LnECc5cSdyFCYvj1zNx1H1ZYt/91ykAXwABABVhd3MtY3J5cHRvLXB1YmxpYy1rZXkAREExM1Q3OUF1YkNURmY3U0Fic1R1"
    "VnhNckVmaFMvUXVPY2hNdlhLb0lLOWhjdXM2bzVEVEtsdkVGY0plTnRFVkk5dz09AAEABkN1c3RvbQAUAAAAgAAAAAyldqXSjG9lnnyE/RcAMMXO"
    "/4F5r3jfHEbrhYGGPR07ZCYxORljI9qQlk19oUhmwVNoHIg0qlHLQtyC3kidpAIAABAAbtzhFL4ZiyzymljL4gWd+jVjj1wGSEFO6bzetRc2WQRs"
    "QibfJ9rWSyh/AKmCmxwF/////wAAAAEAAAAAAAAAAAAAAAEAAAALeQYsVkIjkNav/akJmY4aZ1IoBnn5Da1qvk2zAGcwZQIxAMrUrRchB8B8IjZ4"
    "zUev370AQL6y8JndT8uiVEHKJp8mkANjv8i0DmGj5kAmGzbj4QIwbZ7wVbuGnuYpkgeeTDljE0P0DvsklHUBbLl5En/CTwXloG9zfo/v9IEwhJyJ"
    "Eqp1"
)
PLAIN = "sk-test-123"


def test_what_ml_commons_encrypted_is_read() -> None:
    assert decrypt(KEY, FROM_JAVA) == PLAIN


def test_a_message_has_the_layout_that_ml_commons_reads() -> None:
    """Field by field as the Java message; only what is random, and the signature's length, may differ."""
    ours, theirs = base64.b64decode(encrypt(KEY, PLAIN)), base64.b64decode(FROM_JAVA)
    random_parts = [(3, 35), (64, 132), (152, 164), (166, 214), (219, 267), (291, 318)]
    end_of_frame = 318
    assert _without(ours[:end_of_frame], random_parts) == _without(theirs[:end_of_frame], random_parts)
    assert int.from_bytes(ours[end_of_frame : end_of_frame + 2], "big") == len(ours) - end_of_frame - 2


def test_every_message_is_encrypted_anew() -> None:
    assert encrypt(KEY, PLAIN) != encrypt(KEY, PLAIN)


@given(st.text())
@settings(max_examples=50, deadline=None)
def test_any_text_comes_back(text: str) -> None:
    assert decrypt(KEY, encrypt(KEY, text)) == text


@pytest.mark.parametrize("length", [0, 1, 4095, 4096, 4097, 8192, 8193, 20000])
def test_texts_of_one_or_many_frames_come_back(length: int) -> None:
    text = ("0123456789" * 2000)[:length]
    assert decrypt(KEY, encrypt(KEY, text)) == text


def test_any_changed_byte_is_an_error() -> None:
    message = bytearray(base64.b64decode(FROM_JAVA))
    for position in range(len(message)):
        message[position] ^= 1
        _refused(KEY, base64.b64encode(message).decode())
        message[position] ^= 1


@given(st.integers(0, 9000), st.integers(1, 255))
@settings(max_examples=50, deadline=None)
def test_any_changed_byte_of_a_message_of_many_frames_is_an_error(position: int, change: int) -> None:
    message = bytearray(base64.b64decode(MANY_FRAMES))
    message[position % len(message)] ^= change
    _refused(KEY, base64.b64encode(message).decode())


def test_any_cut_is_an_error() -> None:
    message = base64.b64decode(FROM_JAVA)
    for length in range(len(message)):
        _refused(KEY, base64.b64encode(message[:length]).decode())


def test_anything_after_the_message_is_an_error() -> None:
    _refused(KEY, base64.b64encode(base64.b64decode(FROM_JAVA) + b"x").decode())


@pytest.mark.parametrize("text", ["", "sk-test-123", "not base64!", "é", "AAAA"])
def test_what_is_no_message_is_an_error(text: str) -> None:
    _refused(KEY, text)


def test_another_key_is_an_error_that_says_what_to_do() -> None:
    _refused(bytes(32), FROM_JAVA)
    with pytest.raises(Internal, match=r"another master key.*update the connector"):
        decrypt(bytes(32), FROM_JAVA)


def test_frames_cannot_change_places() -> None:
    message = base64.b64decode(MANY_FRAMES)
    frame = 4 + 12 + 4096 + 16
    start = len(message) - int.from_bytes(message[_footer(message) :][:2], "big") - 2 - (20 + 4 + 16 + 8) - 2 * frame
    swapped = message[:start] + message[start + frame : start + 2 * frame] + message[start : start + frame]
    assert len(swapped) == start + 2 * frame
    _refused(KEY, base64.b64encode(swapped + message[start + 2 * frame :]).decode())


def test_a_message_that_was_made_with_care_but_breaks_a_rule_is_an_error() -> None:
    """Tags and signature are right in these, so that only the rule itself can refuse them."""
    assert decrypt(KEY, _made()) == PLAIN
    _refused(KEY, _made(commitment=bytes(32)))
    _refused(KEY, _made(sequence=2))
    _refused(KEY, _made(suite=b"\x04\x78"))
    _refused(KEY, _made(frame_length=len(PLAIN) - 1))


MANY_FRAMES = encrypt(KEY, "z" * (2 * 4096 + 8))


def _made(
    *, commitment: bytes | None = None, sequence: int = 1, suite: bytes = b"\x05\x78", frame_length: int = 4096
) -> str:
    """A message of PLAIN, written down from the format's description and not with the code under test."""
    message_id, data_key, iv = bytes(range(32, 64)), bytes(range(64, 96)), bytes(12)
    signing_key = ec.generate_private_key(ec.SECP384R1())
    point = base64.b64encode(signing_key.public_key().public_bytes(Encoding.X962, PublicFormat.CompressedPoint))
    aad = b"\0\1\0\x15aws-crypto-public-key\0\x44" + point
    keys = [
        HKDF(hashes.SHA512(), 32, message_id, info).derive(data_key) for info in (suite + b"DERIVEKEY", b"COMMITKEY")
    ]
    header = b"\2" + suite + message_id + b"\0\x5f" + aad + b"\0\1\0\6Custom\0\x14\0\0\0\x80\0\0\0\x0c" + iv
    header += b"\0\x30" + AESGCM(KEY).encrypt(iv, data_key, aad) + b"\2" + frame_length.to_bytes(4, "big")
    header += keys[1] if commitment is None else commitment
    number, length = sequence.to_bytes(4, "big"), len(PLAIN).to_bytes(4, "big")
    frame_aad = message_id + b"AWSKMSEncryptionClient Final Frame" + number + bytes(4) + length
    frame_iv = bytes(8) + number
    signed = header + AESGCM(keys[0]).encrypt(bytes(12), b"", header)
    signed += b"\xff\xff\xff\xff" + number + frame_iv + length
    signed += AESGCM(keys[0]).encrypt(frame_iv, PLAIN.encode(), frame_aad)
    signature = signing_key.sign(signed, ec.ECDSA(hashes.SHA384()))
    return base64.b64encode(signed + len(signature).to_bytes(2, "big") + signature).decode()


def _footer(message: bytes) -> int:
    """Where the footer begins: its length field tells the rest of the message."""
    return next(
        position
        for position in range(len(message) - 110, len(message) - 90)
        if int.from_bytes(message[position : position + 2], "big") == len(message) - position - 2
    )


def _without(message: bytes, parts: list[tuple[int, int]]) -> list[bytes]:
    edges = [0, *(edge for part in parts for edge in part), len(message)]
    return [message[start:end] for start, end in zip(edges[::2], edges[1::2], strict=True)]


def _refused(key: bytes, message: str) -> None:
    with pytest.raises(Internal) as caught:
        decrypt(key, message)
    assert PLAIN not in caught.value.reason
