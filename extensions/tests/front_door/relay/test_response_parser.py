"""Heads of the cluster's responses, cut anywhere."""

import pytest

from opensearch_ml_stream.extensions.front_door.relay.response_parser import HeadParser, ResponseHead
from opensearch_ml_stream.plugin.upstream.http1.response_head import MAX_HEAD_BYTES, MalformedHead

HEAD = (
    b"HTTP/1.1 200 OK\r\nSet-Cookie: a\r\nset-cookie: b\r\nConnection: x,\r\nconnection: Close\r\n"
    b"Content-Length: 4\r\n\r\n"
)


def test_a_head_is_the_same_wherever_it_is_cut() -> None:
    for cut in range(len(HEAD)):
        parser = HeadParser()
        assert parser.feed(HEAD[:cut]) is None
        parsed = parser.feed(HEAD[cut:] + b"body")
        assert parsed is not None
        head, rest = parsed
        assert rest == b"body"
        assert head.headers[:2] == [(b"set-cookie", b"a"), (b"set-cookie", b"b")]
        assert (head.status, head.is_final, head.is_chunked, head.framing.keep_alive) == (200, True, False, False)


def test_an_informational_head_is_not_the_last() -> None:
    head = parsed(b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n")
    assert (head.status, head.is_final) == (103, False)


def test_a_response_to_head_has_no_body_whatever_it_says() -> None:
    head = parsed(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\n")
    assert head.body("HEAD").done
    assert not head.body("GET").done


@pytest.mark.parametrize(
    "data",
    [
        b"\x15\x03\x03", b"HTTX", b"HTTP/1.1 101 Switching\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nA b: c\r\n\r\n", b"HTTP/1.1 200 OK\r\nX: " + b"x" * MAX_HEAD_BYTES,
    ],
)  # fmt: skip
def test_what_is_no_response_is_refused(data: bytes) -> None:
    with pytest.raises(MalformedHead):
        HeadParser().feed(data)


def test_a_body_of_two_lengths_is_refused() -> None:
    with pytest.raises(MalformedHead):
        parsed(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\nContent-Length: 5\r\n\r\n").body("GET")


def parsed(data: bytes) -> ResponseHead:
    result = HeadParser().feed(data)
    assert result is not None
    return result[0]
