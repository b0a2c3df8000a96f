"""A response's head is read whole, strictly, and however its bytes are cut."""

import pytest

from opensearch_ml_stream.plugin.upstream.http1.bodies import ChunkedBody, CloseBody, LengthBody
from opensearch_ml_stream.plugin.upstream.http1.response_head import (
    MAX_HEAD_BYTES,
    Head,
    MalformedHead,
    ResponseHeadParser,
    body_of,
    read_head,
)

STREAM_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"


def head(*lines: str, start: str = "HTTP/1.1 200 OK") -> Head:
    return read_head("\r\n".join([start, *lines, "\r\n"]).encode("latin-1"))


def test_a_head_cut_anywhere_is_the_same_head() -> None:
    raw = b"HTTP/1.1 100 Continue\r\n\r\n" + STREAM_HEAD + b"rest"
    for place in range(len(raw)):
        reader = ResponseHeadParser()
        found = reader.feed(raw[:place])
        if found is None:
            found = reader.feed(raw[place:])
            assert found is not None and found[1] == b"rest"
        assert found[0].status == 200
        assert found[0].headers == {"content-type": "text/event-stream", "transfer-encoding": "chunked"}
        assert found[0].keep_alive


@pytest.mark.parametrize(
    ("lines", "kind"),
    [
        (["Transfer-Encoding: Chunked"], ChunkedBody),
        (["Content-Length: 5"], LengthBody),
        (["Content-Length: 0"], LengthBody),
        ([], CloseBody),
    ],
)
def test_the_headers_say_how_the_body_ends(lines: list[str], kind: type) -> None:
    assert type(body_of(head(*lines))) is kind


@pytest.mark.parametrize("start", ["HTTP/1.1 204 No Content", "HTTP/1.1 304 Not Modified"])
def test_an_answer_without_content_has_no_body_whatever_its_headers_say(start: str) -> None:
    assert body_of(head("Content-Length: 5", start=start)).done


@pytest.mark.parametrize(
    ("start", "lines", "kept"),
    [
        ("HTTP/1.1 200 OK", ["Content-Length: 0"], True),
        ("HTTP/1.1 200 OK", ["Content-Length: 0", "Connection: close"], False),
        ("HTTP/1.1 200 OK", ["Content-Length: 0", "Connection: Upgrade, Close"], False),
        ("HTTP/1.0 200 OK", ["Content-Length: 0"], False),
        ("HTTP/1.0 200 OK", ["Content-Length: 0", "Connection: keep-alive"], True),
    ],
)
def test_a_connection_is_kept_when_the_head_allows_it(start: str, lines: list[str], kept: bool) -> None:
    assert head(*lines, start=start).keep_alive is kept


@pytest.mark.parametrize(
    "raw",
    [
        b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: +5\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 5x\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nX : y\r\n\r\n",
        b"HTTP/1.1 200 OK\r\n folded: y\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nX: a\x00b\r\n\r\n",
        b"HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n",
        b"HTTP/2 200\r\n\r\n",
        b"HTTP/1.1 xx OK\r\n\r\n",
    ],
)
def test_a_head_that_could_be_read_in_two_ways_is_refused(raw: bytes) -> None:
    with pytest.raises(MalformedHead):
        found = ResponseHeadParser().feed(raw)
        assert found is not None
        body_of(found[0])


@pytest.mark.parametrize("first", [b"SSH-2.0", b"\x15\x03\x01", b"<html>", b"\r\n"])
def test_another_protocol_is_told_by_its_first_bytes(first: bytes) -> None:
    with pytest.raises(MalformedHead, match="no status line"):
        ResponseHeadParser().feed(first)


def test_a_head_without_end_is_refused() -> None:
    reader = ResponseHeadParser()
    assert reader.feed(b"HTTP/1.1 200 OK\r\n") is None
    with pytest.raises(MalformedHead, match="larger than"):
        for _ in range(MAX_HEAD_BYTES // 1000 + 1):
            reader.feed(b"X: " + b"a" * 995 + b"\r\n")


def test_interim_answers_without_end_are_refused() -> None:
    reader = ResponseHeadParser()
    with pytest.raises(MalformedHead, match="larger than"):
        for _ in range(MAX_HEAD_BYTES // 25 + 1):
            reader.feed(b"HTTP/1.1 100 Continue\r\n\r\n")
