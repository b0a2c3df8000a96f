"""How a stream is measured, against a sidecar in memory and with a clock of the test."""

import gzip
import zlib
from collections.abc import Callable, Iterator
from itertools import count

import httpx
import pytest

from opensearch_ml_stream.connectors.errors import UpstreamError
from opensearch_ml_stream.connectors.wire_format import NDJSON
from opensearch_ml_stream.extensions.doctor.cli import path_measurement
from opensearch_ml_stream.extensions.doctor.cli.path_comparison import PathTimeline
from opensearch_ml_stream.extensions.doctor.cli.path_measurement import PathMeter, count_requests
from opensearch_ml_stream.plugin.cli.sidecar_api import SidecarAPI
from tests.cli.in_memory_sidecar import ENDING, Body, InMemorySidecar, text

PATH = ("POST", "/models/m1/_predict/stream")


@pytest.fixture
def client(sidecar: InMemorySidecar) -> Iterator[httpx.Client]:
    with httpx.Client(base_url="http://sidecar") as client:
        yield client


def measured(client: httpx.Client, seconds: float = 1.0) -> PathTimeline:
    """A timeline by a clock that goes on by so many seconds at each look."""
    ticks = count()
    meter = PathMeter(client, "proxy", "m1", {"inputs": "hi"}, lambda: next(ticks) * seconds)
    return meter.measure("NDJSON")


def compressed(data: bytes, encoding: str) -> httpx.Response:
    return httpx.Response(200, headers={"content-encoding": encoding}, stream=Body([data]))


def test_each_read_is_noted_with_its_time_and_text_with_it(client: httpx.Client, sidecar: InMemorySidecar) -> None:
    sidecar.stream(text("Hel"), b"\n", text("lo"), ENDING)
    timeline = measured(client)
    assert timeline.end == "complete"
    assert [time for time, _ in timeline.reads] == [1000.0, 2000.0, 3000.0, 4000.0]
    assert timeline.chunks == (1000.0, 3000.0)
    assert (timeline.status, timeline.end_ms) == (200, 5000.0)
    assert sidecar.sent(0) == {"parameters": {"inputs": "hi"}}
    assert sidecar.requests[0].headers["accept"] == "application/x-ndjson"
    assert sidecar.requests[0].headers["accept-encoding"] == "gzip, deflate"


def test_parts_that_came_at_once_are_one_read(client: httpx.Client, sidecar: InMemorySidecar) -> None:
    sidecar.stream(text("a"), text("b"), ENDING)
    timeline = measured(client, 0.0001)
    assert [size for _, size in timeline.reads] == [len(text("a") + text("b") + ENDING)]


@pytest.mark.parametrize(
    ("encoding", "compress"), [("gzip", gzip.compress), ("deflate", zlib.compress), ("GZIP", gzip.compress)]
)
def test_a_compressed_stream_is_read_too(
    client: httpx.Client, sidecar: InMemorySidecar, encoding: str, compress: Callable[[bytes], bytes]
) -> None:
    sidecar.responses[PATH] = compressed(compress(text("a") + ENDING), encoding)
    timeline = measured(client)
    assert (timeline.end, timeline.chunks) == ("complete", (1000.0,))
    assert timeline.headers["content-encoding"] == encoding


@pytest.mark.parametrize(
    ("response", "reason"),
    [
        (compressed(b"x", "br"), "it is compressed with br, which was not asked for"),
        (compressed(b"no gzip", "gzip"), "its compressed body cannot be decompressed"),
        (
            httpx.Response(200, stream=Body([b"{}\n"])),
            "The server sent something that is no inference result; is it the sidecar?",
        ),
    ],
)
def test_a_body_that_no_client_could_read_is_an_error(
    client: httpx.Client, sidecar: InMemorySidecar, response: httpx.Response, reason: str
) -> None:
    sidecar.responses[PATH] = response
    timeline = measured(client)
    assert (timeline.end, timeline.reason) == ("error", reason)


def test_more_than_is_kept_of_a_response_is_an_error(
    client: httpx.Client, sidecar: InMemorySidecar, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(path_measurement, "MAX_BYTES", 1000)
    for response in (
        httpx.Response(200, stream=Body([b"x" * 1001])),
        compressed(gzip.compress(b"x" * 100_000), "gzip"),
    ):
        sidecar.responses[PATH] = response
        timeline = measured(client)
        assert (timeline.end, timeline.reason) == ("error", "it has more than 1000 bytes")


def test_a_stream_without_its_last_object_is_cut(client: httpx.Client, sidecar: InMemorySidecar) -> None:
    sidecar.stream(text("a"))
    assert measured(client).end == "cut"
    sidecar.stream(text("a"), fault=httpx.ReadError("reset"))
    assert (measured(client).end, measured(client).chunks) == ("cut", (1000.0,))


def test_an_error_in_the_stream_is_told(client: httpx.Client, sidecar: InMemorySidecar) -> None:
    sidecar.stream(text("a"), NDJSON.error(UpstreamError("no more")))
    assert (measured(client).end, measured(client).reason) == ("error", "no more")


def test_a_stream_that_does_not_end_is_left(
    client: httpx.Client, sidecar: InMemorySidecar, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(path_measurement, "MAX_SECONDS", 2)
    body = sidecar.stream(*[b"\n"] * 10)
    assert measured(client).end == "too long"
    assert body.closed


def test_a_status_that_is_not_good_is_a_refusal_with_its_reason(client: httpx.Client, sidecar: InMemorySidecar) -> None:
    sidecar.responses[PATH] = httpx.Response(504, text="upstream request timeout")
    timeline = measured(client)
    assert (timeline.end, timeline.status, timeline.reason) == ("refused", 504, "upstream request timeout")


def test_an_address_without_server_is_unreachable(client: httpx.Client, sidecar: InMemorySidecar) -> None:
    sidecar.responses[PATH] = httpx.ConnectError("refused")
    assert (measured(client).end, measured(client).reason) == ("unreachable", "refused")


def counted(response: httpx.Response) -> int | None:
    """How many requests of a model a sidecar with this response to `/stats` has counted."""
    transport = httpx.MockTransport(
        lambda request: response if request.url.path.endswith("/stats") else httpx.Response(404)
    )
    with httpx.Client(transport=transport, base_url="http://sidecar") as client:
        return count_requests(SidecarAPI(client), "m1")


def test_requests_are_those_of_the_model_on_all_nodes() -> None:
    node = {"models": {"m1": {"predict": {"ml_action_request_count": 2}}}}
    assert counted(httpx.Response(200, json={"nodes": {"a": node, "b": node, "c": {}}})) == 4
    assert counted(httpx.Response(200, json={})) == 0


@pytest.mark.parametrize("stats", [{"nodes": []}, {"nodes": {"a": {"models": {"m1": 1}}}}])
@pytest.mark.parametrize("status", [200, 403])
def test_a_caller_who_may_not_see_the_stats_gets_no_count(status: int, stats: object) -> None:
    assert counted(httpx.Response(status, json=stats)) is None
