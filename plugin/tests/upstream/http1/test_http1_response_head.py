"""A response's head is read whole, strictly, and however its bytes are cut."""

import httptools
import pytest

from opensearch_ml_stream.plugin.upstream.http1.bodies import ChunkedBody, CloseBody, LengthBody
from opensearch_ml_stream.plugin.upstream.http1.response_head import (
    Head,
    MalformedHead,
    ResponseHeadParser,
    body_of,
    parse_head,
)

STREAM_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"

MAX_HEAD_BYTES = 65_536


def head(*lines: str, start: str = "HTTP/1.1 200 OK") -> Head:
    return parse_head("\r\n".join([start, *lines, "\r\n"]).encode("latin-1"))


def test_a_head_cut_anywhere_is_the_same_head() -> None:
    raw = b"HTTP/1.1 100 Continue\r\n\r\n" + STREAM_HEAD + b"rest"
    for cut in range(len(raw)):
        parser = ResponseHeadParser()
        parsed = parser.feed(raw[:cut])
        rest = raw[cut:]
        if parsed is None:
            parsed, rest = parser.feed(raw[cut:]), b""
        assert parsed is not None
        fields = {"content-type": "text/event-stream", "transfer-encoding": "chunked"}
        assert parsed[0] == Head(200, fields, True, list(fields.items()))
        assert parsed[1] + rest == b"rest"


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
def test_a_response_without_content_has_no_body_whatever_its_headers_say(start: str) -> None:
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
        parsed = ResponseHeadParser().feed(raw)
        assert parsed is not None
        body_of(parsed[0])


@pytest.mark.parametrize("first", [b"SSH-2.0", b"\x15\x03\x01", b"<html>", b"\r\n"])
def test_another_protocol_is_refused_by_its_first_bytes(first: bytes) -> None:
    with pytest.raises(MalformedHead, match="no status line"):
        ResponseHeadParser().feed(first)


def test_a_head_without_end_is_refused() -> None:
    parser = ResponseHeadParser()
    assert parser.feed(b"HTTP/1.1 200 OK\r\n") is None
    with pytest.raises(MalformedHead, match="larger than"):
        for _ in range(MAX_HEAD_BYTES // 1000 + 1):
            parser.feed(b"X: " + b"a" * 995 + b"\r\n")


def head_of(size: int) -> bytes:
    frame = b"HTTP/1.1 200 OK\r\nX: \r\n\r\n"
    return frame[:-4] + b"a" * (size - len(frame)) + frame[-4:]


@pytest.mark.parametrize("cut", [0, 40, MAX_HEAD_BYTES - 2])
def test_a_head_may_have_64_kib_and_no_byte_more(cut: int) -> None:
    largest = head_of(MAX_HEAD_BYTES)
    parser = ResponseHeadParser()
    assert parser.feed(largest[:cut]) is None
    parsed = parser.feed(largest[cut:] + b"body")
    assert parsed is not None and parsed[1] == b"body"
    with pytest.raises(MalformedHead, match=f"its head is larger than {MAX_HEAD_BYTES} bytes"):
        ResponseHeadParser().feed(head_of(MAX_HEAD_BYTES + 1))


def test_a_head_that_is_incomplete_may_have_64_kib_and_no_byte_more() -> None:
    parser = ResponseHeadParser()
    assert parser.feed(b"HTTP/1.1 200 OK\r\n" + b"a" * (MAX_HEAD_BYTES - 17)) is None
    with pytest.raises(MalformedHead, match="larger than"):
        parser.feed(b"a")


def test_interim_responses_count_as_part_of_the_head() -> None:
    interim = b"HTTP/1.1 100 Continue\r\n\r\n"
    parser = ResponseHeadParser()
    assert parser.feed(interim) is None
    parsed = parser.feed(interim + head_of(MAX_HEAD_BYTES - 2 * len(interim)))
    assert parsed is not None and parsed[0].status == 200
    parser = ResponseHeadParser()
    assert parser.feed(interim) is None
    with pytest.raises(MalformedHead, match="larger than"):
        parser.feed(interim + head_of(MAX_HEAD_BYTES - 2 * len(interim) + 1))


def test_interim_responses_without_end_are_refused() -> None:
    parser = ResponseHeadParser()
    with pytest.raises(MalformedHead, match="larger than"):
        for _ in range(MAX_HEAD_BYTES // 25 + 1):
            parser.feed(b"HTTP/1.1 100 Continue\r\n\r\n")


@pytest.mark.parametrize("cut", range(len(b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n") + 1))
def test_an_interim_response_is_skipped_wherever_it_is_cut_from_the_next(cut: int) -> None:
    raw = b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 201 Created\r\nX: y\r\n\r\n"
    parser = ResponseHeadParser()
    assert parser.feed(raw[:cut]) is None
    assert parser.feed(raw[cut:]) == (Head(201, {"x": "y"}, True, [("x", "y")]), b"")


def test_interim_responses_can_be_seen_before_the_final_one() -> None:
    seen: list[Head] = []
    parsed = ResponseHeadParser(seen.append).feed(
        b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n\r\n"
    )
    assert [(interim.status, interim.fields) for interim in seen] == [(103, [("link", "x")]), (100, [])]
    assert parsed is not None and parsed[0].status == 200


def test_fields_are_kept_one_by_one_in_their_order() -> None:
    fields = head("Set-Cookie: a", "Date: d", "set-cookie: b").fields
    assert fields == [("set-cookie", "a"), ("date", "d"), ("set-cookie", "b")]


def test_a_response_to_head_has_no_body_whatever_its_headers_say() -> None:
    assert body_of(head("Content-Length: 5"), "HEAD").done
    assert not body_of(head("Content-Length: 5"), "GET").done


def test_values_of_one_header_are_joined_and_names_are_in_lower_case() -> None:
    assert head("X-One: a", "x-one: b", "X-Two: \xe9").headers == {"x-one": "a, b", "x-two": "\xe9"}


@pytest.mark.parametrize(
    ("raw", "problem"),
    [
        (b"HTTP/1.1 200 OK\r\nX : y\r\n\r\n", "its head cannot be read"),
        (
            b"HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n",
            "it changes the protocol, which was not asked for",
        ),
        (b"HTTP/1.1 099 Low\r\n\r\n", "status 99 was not asked for"),
    ],
)
def test_a_head_that_is_refused_says_why(raw: bytes, problem: str) -> None:
    with pytest.raises(MalformedHead) as raised:
        parse_head(raw)
    assert str(raised.value) == problem


def test_100_is_the_lowest_status() -> None:
    assert parse_head(b"HTTP/1.1 100 Continue\r\n\r\n").status == 100


@pytest.mark.parametrize(
    ("headers", "problem"),
    [
        ({"transfer-encoding": "gzip, chunked"}, "its transfer-encoding is not chunked"),
        ({"content-length": "5, 6"}, "it gives more than one content-length"),
        ({"content-length": "\u0665"}, "it gives more than one content-length"),
        ({"content-length": "five"}, "its content-length is not a number"),
        ({"content-length": "9" * 19}, "its content-length is not a number"),
        ({"content-length": ""}, "its content-length is not a number"),
    ],
)
def test_headers_that_do_not_say_how_the_body_ends_are_refused(headers: dict[str, str], problem: str) -> None:
    with pytest.raises(MalformedHead) as raised:
        body_of(Head(200, headers, True, []))
    assert str(raised.value) == problem


def test_a_length_that_is_given_twice_is_one_length() -> None:
    body = body_of(Head(200, {"content-length": "2, 2"}, True, []))
    assert body.feed(b"abc") == b"ab"
    assert body.excess
    assert not body_of(Head(200, {"content-length": "9" * 18}, True, [])).done


class Reported:
    """What llhttp itself reports of a head."""

    def __init__(self, raw: bytes) -> None:
        self.headers: dict[str, list[str]] = {}
        httptools.HttpResponseParser(self).feed_data(raw)

    def on_header(self, name: bytes, value: bytes) -> None:
        self.headers.setdefault(name.decode("latin-1").lower(), []).append(value.decode("latin-1"))


@pytest.mark.parametrize(
    "lines",
    [
        b"",
        b"a:b\r\n",
        b"A: b\r\na: c\r\n",
        b"a:\r\nb: \r\nc: d: e\r\n",
        b"a: \t b \t \r\n",
        b"a: \xa0b\x85\xff\r\nb:\t\r\n",
        b"last: \r\n",
    ],
)
@pytest.mark.parametrize("start", [b"HTTP/1.1 200 OK\r\n", b"HTTP/1.0 500\r\n", b"\r\nHTTP/1.1 200 \xff\r\n"])
def test_the_fields_are_those_that_llhttp_reports(start: bytes, lines: bytes) -> None:
    raw = start + lines + b"\r\n"
    assert parse_head(raw).headers == {name: ", ".join(values) for name, values in Reported(raw).headers.items()}


@pytest.mark.parametrize(
    "lines", [b"a: b\r\n c\r\n", b"a:\r\n\tb\r\n", b"a: b\nc: d\r\n", b"a: b\rc: d\r\n", b"a\r\n", b"\xe9: b\r\n"]
)
def test_a_field_of_any_other_form_than_one_line_is_refused(lines: bytes) -> None:
    with pytest.raises(MalformedHead):
        parse_head(b"HTTP/1.1 200 OK\r\n" + lines + b"\r\n")
