"""Which clients take gzip, and bodies that are compressed."""

import asyncio
import gzip
import random
import zlib

import pytest

from opensearch_ml_stream.connectors.chunks import Chunk, Ending
from opensearch_ml_stream.connectors.errors import UpstreamError
from opensearch_ml_stream.connectors.wire_format import SSE
from opensearch_ml_stream.rest_handlers.http.gzip_coding import GzipFormat, accepts_gzip, gzipped


@pytest.mark.parametrize(
    ("accepted", "expected"),
    [
        (["gzip"], True),
        (["gzip, deflate, br, zstd"], True),  # httpx, curl --compressed
        (["deflate", "GZIP"], True),
        (["x-gzip"], True),
        (["*"], True),
        (["br;q=1.0, gzip;q=0.8, *;q=0.1"], True),
        (["identity;q=0.5, gzip"], True),
        (["gzip ; q=0.001"], True),
        ([], False),
        ([""], False),
        (["identity"], False),
        (["br"], False),
        (["gzip;q=0"], False),
        (["gzip;q=0.000, *"], False),
        (["*;q=0"], False),
        (["gzip;q=0.5, identity"], False),
        (["gzip;q=high"], False),
        (["gzip;q=7"], False),
        (["gzip;level=1"], False),
        (["gzip;q=nan"], False),
    ],
)
def test_a_client_says_what_it_takes(accepted: list[str], expected: bool) -> None:
    headers = [(b"accept-encoding", value.encode()) for value in accepted]
    assert accepts_gzip({"headers": [(b"accept", b"*/*"), *headers]}) is expected


@pytest.mark.parametrize("size", [0, 1, 200_000, 1_000_000])
async def test_a_whole_body_is_the_same_when_unpacked(size: int) -> None:
    body = random.Random(size).randbytes(size // 2).hex().encode()
    assert gzip.decompress(await gzipped(body)) == body


async def test_other_work_goes_on_while_a_large_body_is_compressed() -> None:
    turns = 0

    async def other() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    task = asyncio.create_task(other())
    await gzipped(b"x" * 1_048_576)
    task.cancel()
    assert turns >= 7


def test_what_a_format_writes_can_be_read_as_far_as_it_goes() -> None:
    reader = zlib.decompressobj(31)
    wire = GzipFormat(SSE)
    assert wire.content_type == SSE.content_type
    for written, plain in [
        (wire.heartbeat, SSE.heartbeat),
        (wire.chunks([Chunk("a")]), SSE.chunks([Chunk("a")])),
        (wire.heartbeat, SSE.heartbeat),
        (wire.chunks([Chunk("b"), Chunk("c")]), SSE.chunks([Chunk("b"), Chunk("c")])),
        (wire.last([Chunk("d")], Ending(), {}), SSE.last([Chunk("d")], Ending(), {})),
    ]:
        assert reader.decompress(written) == plain
    assert reader.eof


def test_a_format_ends_with_an_error_too() -> None:
    error = UpstreamError("gone")
    assert gzip.decompress(GzipFormat(SSE).error(error)) == SSE.error(error)
