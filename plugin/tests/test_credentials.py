"""Credentials are encrypted as ML Commons does it, and nothing that was touched is ever decrypted."""

import base64

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from opensearch_ml_stream.connectors.errors import Internal
from opensearch_ml_stream.plugin.credentials import decrypt, encrypt

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


MANY_FRAMES = encrypt(KEY, "z" * (2 * 4096 + 8))


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
