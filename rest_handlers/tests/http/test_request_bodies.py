"""The body of a request: in one piece or many, with a limit, compressed, cut off."""

import gzip
import tracemalloc
import zlib
from random import randbytes

import pytest
from starlette.requests import ClientDisconnect
from starlette.types import Message

from opensearch_ml_stream.connectors.errors import BodyTooLarge, InvalidRequest, Throttled
from opensearch_ml_stream.rest_handlers.http.body_memory import BodyMemory, BodyReservation
from opensearch_ml_stream.rest_handlers.http.requests import read_body
from tests.asgi_exchange import Exchange

GZIP = {"content-encoding": "gzip"}
TOO_LARGE = "The request body is larger than 10 bytes (setting opensearch_ml_stream.max_body_size)"


def reservation(limit: int = 10, total: int = 1000) -> BodyReservation:
    return BodyReservation(BodyMemory(limit, total))


async def read(body: bytes | list[bytes], headers: dict[str, str] | None = None, limit: int = 10) -> bytes:
    request = Exchange("POST", "/", body, headers)
    return await read_body(request.scope, request.receive, reservation(limit))


@pytest.mark.parametrize("body", [[b""], [b"0123456789"], [b"01", b"", b"23", b"4"], [b"", b"x"]])
async def test_a_body_is_the_same_in_however_many_pieces_it_comes(body: list[bytes]) -> None:
    assert await read(body) == b"".join(body)


async def test_a_body_that_is_no_member_of_its_message_is_empty() -> None:
    async def receive() -> Message:
        return {"type": "http.request"}

    assert await read_body(Exchange().scope, receive, reservation()) == b""


@pytest.mark.parametrize("body", [[b"01234567890"], [b"0123456789", b"0", b"never read"]])
async def test_a_body_beyond_the_limit_is_refused_when_the_limit_is_passed(body: list[bytes]) -> None:
    with pytest.raises(BodyTooLarge) as refused:
        await read(body)
    assert (refused.value.reason, refused.value.type) == (TOO_LARGE, "content_too_long_exception")


async def test_a_body_announced_beyond_the_limit_is_refused_without_reading_it() -> None:
    async def receive() -> Message:
        raise AssertionError("read")

    with pytest.raises(BodyTooLarge) as refused:
        await read_body(Exchange(headers={"content-length": "11"}).scope, receive, reservation())
    assert refused.value.reason == TOO_LARGE


@pytest.mark.parametrize("length", ["10", "", "-1", "many", "\xb2"])
async def test_other_announcements_do_not_matter(length: str) -> None:
    assert await read(b"0123456789", {"content-length": length}) == b"0123456789"


@pytest.mark.parametrize("pieces", [[b""], [b"01", b"23"]])
async def test_a_body_that_is_cut_off_is_a_disconnected_client(pieces: list[bytes]) -> None:
    request = Exchange("POST", "/", pieces, cut=True)
    with pytest.raises(ClientDisconnect):
        await read_body(request.scope, request.receive, reservation())


@pytest.mark.parametrize("coding", ["gzip", "GZIP", " gzip "])
async def test_a_gzip_body_is_decompressed(coding: str) -> None:
    packed = gzip.compress(b"0123456789")
    body = [packed[:7], packed[7:]]
    assert await read(body, {"content-encoding": coding}, limit=len(packed)) == b"0123456789"


async def test_a_body_of_the_identity_coding_is_taken_as_it_is() -> None:
    assert await read(b"01", {"content-encoding": "identity"}) == b"01"


@pytest.mark.parametrize("coding", ["gzip", "br"])
async def test_without_a_body_its_coding_does_not_matter(coding: str) -> None:
    assert await read(b"", {"content-encoding": coding}) == b""


@pytest.mark.parametrize("size", [51, 1_000_000])
async def test_a_small_body_that_decompresses_beyond_the_limit_is_refused(size: int) -> None:
    with pytest.raises(BodyTooLarge, match="larger than 50 bytes"):
        await read(gzip.compress(b"x" * size)[:50] if size > 51 else gzip.compress(b"x" * size), GZIP, limit=50)


async def test_a_body_that_decompresses_to_the_limit_is_taken() -> None:
    assert await read(gzip.compress(b"x" * 50), GZIP, limit=50) == b"x" * 50


async def test_a_small_body_may_not_become_as_much_as_a_large_one() -> None:
    packed = gzip.compress(b"x" * (5 * 1024 * 1024))
    with pytest.raises(BodyTooLarge, match=f"A compressed body of {len(packed)} bytes may become 4194304; send it"):
        await _read_within(packed, 100 * 1024 * 1024)


async def test_a_body_may_become_ten_times_as_much() -> None:
    body = randbytes(1024 * 1024).hex().encode() * 5
    assert await _read_within(gzip.compress(body, 1), 100 * 1024 * 1024) == body


async def test_a_small_body_may_not_become_json_of_many_parts() -> None:
    packed = gzip.compress(b"[" + b"0," * 500_000 + b"0]")
    with pytest.raises(InvalidRequest, match="may hold 400000 of the characters"):
        await _read_within(packed, 100 * 1024 * 1024)
    request = Exchange("POST", "/", packed, GZIP)
    held = reservation(100 * 1024 * 1024, 100 * 1024 * 1024)
    assert len(await read_body(request.scope, request.receive, held, is_of_parts=False)) == 1_000_003


async def _read_within(body: bytes, limit: int) -> bytes:
    request = Exchange("POST", "/", body, GZIP)
    return await read_body(request.scope, request.receive, reservation(limit, limit))


@pytest.mark.parametrize(
    ("body", "coding", "reason"),
    [
        (b"{}", "gzip", "The request body is not gzip, as its Content-Encoding says it is"),
        (zlib.compress(b"{}"), "gzip", "The request body is not gzip, as its Content-Encoding says it is"),
        (gzip.compress(b"{}")[:-9], "gzip", "The request body is not one whole gzip stream; is it cut off?"),
        (gzip.compress(b"{}") + b"x", "gzip", "The request body is not one whole gzip stream; is it cut off?"),
        (b"{}", "br", "Content-Encoding [br] is not supported; use gzip, or send the body as it is"),
    ],
    ids=["plain", "zlib", "cut", "longer", "brotli"],
)
async def test_a_body_that_cannot_be_decompressed_is_refused_with_the_reason(
    body: bytes, coding: str, reason: str
) -> None:
    with pytest.raises(InvalidRequest) as refused:
        await read(body, {"content-encoding": coding}, limit=100)
    assert refused.value.reason == reason


@pytest.mark.parametrize("body", [[b"01234567"], [b"0123", b"4567"]])
async def test_the_size_of_a_body_is_reserved_as_it_arrives_until_it_is_let_go(body: list[bytes]) -> None:
    budget = BodyMemory(10, 20)
    request = Exchange("POST", "/", body)
    with BodyReservation(budget) as held:
        await read_body(request.scope, request.receive, held)
        assert budget.reserved == 8
    assert budget.reserved == 0


async def test_a_body_that_does_not_fit_beside_the_others_is_refused_as_soon_as_that_is_seen() -> None:
    budget = BodyMemory(10, 15)
    other = BodyReservation(budget)
    other.add(9)
    request = Exchange("POST", "/", [b"0123", b"456", b"never read"])
    held = BodyReservation(budget)
    with pytest.raises(Throttled, match="max_total_body_size") as refused:
        await read_body(request.scope, request.receive, held)
    assert (refused.value.status, refused.value.retry_after) == (429, "1")
    assert (await request.receive())["body"] == b"never read"
    held.release()
    assert budget.reserved == 9


async def test_what_a_compressed_body_becomes_is_reserved_before_it_takes_more_memory() -> None:
    body = gzip.compress(b"x" * 10_000_000)
    request = Exchange("POST", "/", body, GZIP)
    budget = BodyMemory(20_000_000, 1_000_000)
    held = BodyReservation(budget)
    tracemalloc.start()
    try:
        with pytest.raises(BodyTooLarge, match="max_total_body_size"):
            await read_body(request.scope, request.receive, held)
        assert tracemalloc.get_traced_memory()[1] < 3_000_000
    finally:
        tracemalloc.stop()
