"""Bodies are what HTTP says, however their bytes are cut; h11's reading is the measure."""

import gc

import h11
import httptools
import pytest
from hypothesis import given
from hypothesis import strategies as st

from opensearch_ml_stream.plugin.upstream.http1.bodies import (
    Body,
    ChunkedBody,
    CloseBody,
    LengthBody,
    MalformedBody,
)

MAX_OVERHEAD_BYTES = 65_536


def fed(body: Body, pieces: list[bytes]) -> bytes:
    return b"".join([body.feed(piece) for piece in pieces])


def cut(data: bytes, points: list[int]) -> list[bytes]:
    """`data` cut at the points, each taken modulo its length."""
    cuts = sorted({point % (len(data) + 1) for point in points})
    return [data[start:stop] for start, stop in zip([0, *cuts], [*cuts, len(data)], strict=True)]


def as_h11_reads(chunked: bytes) -> tuple[bytes, bool] | None:
    """The body and whether it is whole, None if it is malformed."""
    connection = h11.Connection(h11.CLIENT)
    connection.send(h11.Request(method="GET", target="/", headers=[("Host", "h")]))
    connection.send(h11.EndOfMessage())
    connection.receive_data(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + chunked)
    body = b""
    try:
        while (event := connection.next_event()) is not h11.NEED_DATA:
            if isinstance(event, h11.Data):
                body += event.data
            if isinstance(event, h11.EndOfMessage):
                return body, True
    except h11.RemoteProtocolError:
        return None
    return body, False


def as_we_read(pieces: list[bytes]) -> tuple[bytes, bool] | None:
    body = ChunkedBody()
    try:
        return fed(body, pieces), body.done
    except MalformedBody:
        return None


chunk_lines = st.builds(
    lambda data, upper, extension: (b"%X" if upper else b"%x") % len(data) + extension + b"\r\n" + data + b"\r\n",
    st.binary(min_size=1, max_size=300),
    st.booleans(),
    st.sampled_from([b"", b"", b"", b";a", b";a=b", b';a="b"']),
)
ends = st.sampled_from([b"0\r\n\r\n", b"0\r\nX: y\r\nZ: 1\r\n\r\n", b"000\r\n\r\n", b""])
streams = st.builds(lambda chunks, end: b"".join(chunks) + end, st.lists(chunk_lines, max_size=8), ends)


@given(streams, st.lists(st.integers(0, 5000), max_size=12))
def test_chunks_cut_anywhere_are_read_as_h11_reads_them(stream: bytes, points: list[int]) -> None:
    assert as_we_read(cut(stream, points)) == as_h11_reads(stream)


@given(streams, st.integers(0, 5000), st.binary(max_size=3))
def test_a_damaged_stream_is_never_read_as_another_body(stream: bytes, position: int, damage: bytes) -> None:
    position %= len(stream) + 1
    damaged = stream[:position] + damage + stream[position + len(damage) :]
    theirs = as_h11_reads(damaged)
    ours = as_we_read([damaged])
    if ours is not None and ours[1] and theirs is not None:
        assert ours[0] == theirs[0]


@given(
    st.lists(chunk_lines, min_size=1, max_size=5), ends, st.integers(0, 4), st.integers(0, 400), st.binary(max_size=3)
)
def test_reads_of_one_chunk_each_are_read_as_their_bytes_one_by_one(
    chunks: list[bytes], end: bytes, which: int, position: int, damage: bytes
) -> None:
    reads = [*chunks[:-1], chunks[-1] + end]
    which %= len(reads)
    reads[which] = reads[which][:position] + damage + reads[which][position + len(damage) :]
    whole = b"".join(reads)
    assert as_we_read(reads) == as_we_read([bytes([byte]) for byte in whole])


def test_every_two_cuts_of_a_stream_give_the_same_body() -> None:
    stream = b"5\r\nhello\r\nc;x=1\r\n, big\r\nworld\r\n0\r\nT: v\r\n\r\n"
    for first in range(len(stream) + 1):
        for second in range(first, len(stream) + 1):
            body = ChunkedBody()
            assert fed(body, [stream[:first], stream[first:second], stream[second:]]) == b"hello, big\r\nworld"
            assert body.done and not body.excess


@pytest.mark.parametrize(
    "malformed",
    [
        b"+5\r\nhello\r\n", b"0x5\r\nhello\r\n", b"5_0\r\n", b" 5\r\nhello\r\n", b"\r\n", b"zz\r\n", b"-1\r\n",
        b"5\nhello\n", b"5\r\nhelloo\r\n", b"5\r\nhello\n\n", b"f" * 17 + b"\r\n", b"5;a\x00b\r\nhello\r\n",
        b"5;" + b"a" * MAX_OVERHEAD_BYTES, b"0\r\nX: " + b"a" * MAX_OVERHEAD_BYTES,
    ],
)  # fmt: skip
def test_a_malformed_chunk_is_refused_however_it_is_cut(malformed: bytes) -> None:
    with pytest.raises(MalformedBody):
        fed(ChunkedBody(), [malformed])
    with pytest.raises(MalformedBody):
        fed(ChunkedBody(), [bytes([byte]) for byte in malformed])


def test_a_stream_of_whole_chunks_with_its_end_needs_no_parser() -> None:
    body = ChunkedBody()
    assert fed(body, [b"5\r\nhello\r\n", b"2\r\n, \r\n", b"5\r\nworld\r\n0\r\n\r\n"]) == b"hello, world"
    assert (body.done, body.excess, body.trailers) == (True, False, [])
    assert not any(isinstance(held, httptools.HttpResponseParser) for held in gc.get_referents(body))
    assert body.feed(b"more") == b"" and body.excess


def test_bytes_behind_the_last_chunk_are_excess() -> None:
    body = ChunkedBody()
    assert body.feed(b"1\r\na\r\n0\r\n\r\nHTTP/1.1") == b"a"
    assert body.done and body.excess


@pytest.mark.parametrize("more", [b"x", b"HTTP/1.1 200 OK\r\nX: ", b"1;"])
def test_any_number_of_bytes_behind_the_last_chunk_is_excess_and_no_error(more: bytes) -> None:
    more += b"a" * MAX_OVERHEAD_BYTES
    at_once, later = ChunkedBody(), ChunkedBody()
    assert at_once.feed(b"0\r\n\r\n" + more) == b""
    assert fed(later, [b"1\r\na\r\n0\r\n\r\n", more, more]) == b"a"
    assert all(body.done and body.excess for body in (at_once, later))


@given(st.binary(max_size=200), st.lists(st.integers(0, 200), max_size=5), st.binary(max_size=3))
def test_a_body_of_known_length_ends_there(data: bytes, points: list[int], more: bytes) -> None:
    body = LengthBody(len(data))
    assert fed(body, cut(data + more, points)) == data
    assert body.done and body.eof() and body.excess == bool(more)


def test_a_body_that_is_short_of_its_length_may_not_end() -> None:
    body = LengthBody(3)
    body.feed(b"ab")
    assert not body.done and not body.eof()


def test_a_body_without_a_length_ends_with_the_connection() -> None:
    body = CloseBody()
    assert body.feed(b"abc") == b"abc" and not body.done
    assert body.eof() and body.done


def test_chunks_may_not_end_with_the_connection() -> None:
    body = ChunkedBody()
    body.feed(b"1\r\na\r\n")
    assert not body.eof()
    body.feed(b"0\r\n\r\n")
    assert body.eof()


def test_an_empty_body_is_done_before_it_has_begun() -> None:
    body = LengthBody(0)
    assert body.done and not body.excess
    assert body.feed(b"a") == b"" and body.excess
    body.feed(b"")
    assert body.excess


@pytest.mark.parametrize("start", [b"5;", b"0\r\nX: "], ids=["extension", "trailer"])
def test_a_chunk_may_have_64_kib_beside_its_data_and_no_byte_more(start: bytes) -> None:
    body = ChunkedBody()
    assert body.feed(start) == b""
    assert body.feed(b"a" * (MAX_OVERHEAD_BYTES - len(start))) == b""
    with pytest.raises(MalformedBody, match="its chunks have too much beside their data"):
        body.feed(b"a")


def test_data_resets_the_count_of_what_stands_beside_it() -> None:
    body = ChunkedBody()
    for _ in range(3):
        assert body.feed(b"1;" + b"x" * (MAX_OVERHEAD_BYTES - 2)) == b""
        assert body.feed(b"\r\na\r\n") == b"a"


def test_a_second_message_behind_the_chunks_is_excess() -> None:
    body = ChunkedBody()
    assert body.feed(b"0\r\n\r\n") == b""
    assert (body.done, body.excess) == (True, False)
    assert body.feed(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n") == b""
    assert (body.done, body.excess) == (True, True)


@pytest.mark.parametrize("malformed", [b"zz\r\n", b"f" * 17 + b"\r\n", b"1\r\nab"])
def test_the_refusal_of_chunks_has_the_data_that_came_before_the_fault(malformed: bytes) -> None:
    with pytest.raises(MalformedBody) as raised:
        ChunkedBody().feed(b"3\r\none\r\n3\r\ntwo\r\n" + malformed)
    assert raised.value.data.startswith(b"onetwo")


def test_the_refusal_of_chunks_repeats_none_of_their_bytes() -> None:
    with pytest.raises(MalformedBody) as raised:
        ChunkedBody().feed(b"secret\r\n")
    assert str(raised.value) == "its chunks cannot be read"


@given(st.lists(st.sampled_from([b"abc", b"xyz", b"\r\n\r", b"0\r\n", b"a" * 300, b"b" * 300]), max_size=12), st.data())
def test_chunks_of_one_size_are_read_as_any_others_are(chunks: list[bytes], data: st.DataObject) -> None:
    """The shortcut for a read that is one whole chunk gives what the parser gives, whatever came before."""
    framed = [b"%x\r\n%b\r\n" % (len(chunk), chunk) for chunk in chunks]
    joined = data.draw(st.integers(0, max(len(framed), 1)))
    for reads in (
        framed,
        [b"".join(framed[:joined]), *framed[joined:]],
        [piece for one in framed for piece in (one[:3], one[3:])],
    ):
        body = ChunkedBody()
        assert b"".join(map(body.feed, filter(None, reads))) == b"".join(chunks)
        assert not body.done
        assert body.feed(b"0\r\n\r\n") == b"" and body.done


def test_a_read_of_the_length_of_the_chunk_before_is_not_taken_for_a_chunk() -> None:
    body = ChunkedBody()
    assert body.feed(b"3\r\nabc\r\n") == b"abc"
    with pytest.raises(MalformedBody):
        body.feed(b"z\r\nabc\r\n")
    body = ChunkedBody()
    assert body.feed(b"3\r\nabc\r\n") == b"abc"
    with pytest.raises(MalformedBody):
        body.feed(b"3\r\nabcde")
