"""A compressed body is read as its plain one, in pieces of a bounded size."""

import asyncio
import gzip
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field

import pytest

from opensearch_ml_stream.connectors.errors import UpstreamError
from opensearch_ml_stream.plugin.upstream import Sink, UpstreamResponse, pump_by_reading
from opensearch_ml_stream.plugin.upstream.http1.content_coding import decoded

TEXT = b"data: some text\n\n" * 200

MAX_READ_BYTES = 65_536


@dataclass
class FakeResponse:
    parts: list[bytes]
    coding: str | None = "gzip"
    status: int = 207
    headers: Mapping[str, str] = field(init=False)
    told: list[object] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.headers = {} if self.coding is None else {"content-encoding": self.coding}

    async def read(self) -> bytes:
        return self.parts.pop(0) if self.parts else b""

    async def pump(self, sink: Sink) -> bool:
        return await pump_by_reading(self.read, sink)

    def limit_silence(self, seconds: float) -> None:
        self.told.append(seconds)

    def fail(self, error: UpstreamError) -> None:
        self.told.append(error)


async def read_to_end(response: UpstreamResponse) -> list[bytes]:
    reads = []
    while data := await response.read():
        reads.append(data)
    return reads


async def body_of(coding: str, *parts: bytes) -> bytes:
    return b"".join(await read_to_end(decoded(FakeResponse(list(parts), coding), "provider:80")))


@pytest.mark.parametrize("coding", [None, "identity", "IDENTITY", " identity ", ""])
def test_a_body_that_is_not_compressed_stays_as_it_is(coding: str | None) -> None:
    response = FakeResponse([], coding)
    assert decoded(response, "provider:80") is response


@pytest.mark.parametrize("coding", ["gzip", "x-gzip", "GZip", " gzip"])
async def test_gzip_is_decoded_however_it_is_cut(coding: str) -> None:
    packed = gzip.compress(TEXT)
    assert await body_of(coding, packed) == TEXT
    assert await body_of(coding, *[packed[i : i + 1] for i in range(len(packed))]) == TEXT


async def test_deflate_is_zlibs_format() -> None:
    assert await body_of("deflate", zlib.compress(TEXT)) == TEXT
    with pytest.raises(UpstreamError):
        await body_of("deflate", gzip.compress(TEXT))


async def test_status_and_headers_are_those_of_the_response() -> None:
    response = decoded(FakeResponse([]), "provider:80")
    assert (response.status, response.headers) == (207, {"content-encoding": "gzip"})


async def test_what_can_be_decoded_is_read_before_more_is_received() -> None:
    compressor = zlib.compressobj(wbits=31)
    first = compressor.compress(b"one") + compressor.flush(zlib.Z_SYNC_FLUSH)
    second = compressor.compress(b"two") + compressor.flush()
    source = FakeResponse([first, second])
    response = decoded(source, "provider:80")
    assert await response.read() == b"one"
    assert source.parts == [second]
    assert await response.read() == b"two"
    assert await response.read() == b""


@pytest.mark.parametrize("cut", range(0, 80, 7))
async def test_gzip_members_behind_one_another_are_one_body(cut: int) -> None:
    packed = gzip.compress(b"one") + gzip.compress(b"two") + gzip.compress(b"three")
    assert await body_of("gzip", packed[:cut] or packed, packed[cut:] if cut else b"") == b"onetwothree"


async def test_a_small_body_that_unpacks_to_a_large_one_is_read_in_bounded_pieces() -> None:
    packed = gzip.compress(bytes(5 * MAX_READ_BYTES + 1))
    reads = await read_to_end(decoded(FakeResponse([packed]), "provider:80"))
    assert max(map(len, reads)) == MAX_READ_BYTES
    assert sum(map(len, reads)) == 5 * MAX_READ_BYTES + 1


async def test_others_get_their_turn_while_a_few_bytes_become_many() -> None:
    """The bytes are all there: nothing is waited for."""
    packed = gzip.compress(bytes(100 * MAX_READ_BYTES))
    turns = 0

    async def count_turns() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    counting = asyncio.create_task(count_turns())
    await read_to_end(decoded(FakeResponse([packed]), "provider:80"))
    counting.cancel()
    assert turns >= 99


@pytest.mark.parametrize(
    ("coding", "parts"),
    [
        ("gzip", [gzip.compress(TEXT)[:-9]]),
        ("gzip", [gzip.compress(TEXT)[:-1]]),
        ("gzip", [b"plain text"]),
        ("gzip", [gzip.compress(TEXT), b"plain text"]),
        ("gzip", [gzip.compress(TEXT), gzip.compress(TEXT)[:-1]]),
        ("deflate", [b"plain text"]),
        ("gzip", []),
    ],
)
async def test_a_body_that_is_cut_or_not_what_it_says_is_an_error(coding: str, parts: list[bytes]) -> None:
    with pytest.raises(UpstreamError) as raised:
        await body_of(coding, *parts)
    assert raised.value.reason == (
        f"Error communicating with remote model: provider:80 sent a body in content-encoding [{coding}] that cannot be "
        "decoded; identity was asked for"
    )


@pytest.mark.parametrize(
    ("coding", "shown"),
    [
        ("br", "content-encoding [br]"),
        ("gzip, gzip", "content-encoding [gzip, gzip]"),
        ("sk-secret-1234567890", "an unknown content-encoding"),
    ],
)
def test_a_coding_that_is_not_supported_is_an_error_that_names_it(coding: str, shown: str) -> None:
    with pytest.raises(UpstreamError) as raised:
        decoded(FakeResponse([], coding), "provider:80")
    assert f"{shown} that" in raised.value.reason


async def test_a_decoded_body_can_be_pumped() -> None:
    packed = gzip.compress(bytes(2 * MAX_READ_BYTES))
    sizes: list[int] = []

    def sink(data: bytes) -> bool:
        sizes.append(len(data))
        return len(sizes) != 1

    response = decoded(FakeResponse([packed]), "provider:80")
    assert [await response.pump(sink), await response.pump(sink)] == [False, True]
    assert sizes == [MAX_READ_BYTES, MAX_READ_BYTES]


async def test_limits_are_those_of_the_response_that_is_decompressed() -> None:
    inner, error = FakeResponse([]), UpstreamError("enough")
    response = decoded(inner, "provider:80")
    response.limit_silence(2)
    response.fail(error)
    assert inner.told == [2, error]
