"""The CPU time of each step of relaying a chunk that needs no socket, timed by itself in this process."""

import time
from collections.abc import Callable, Iterator

from bench.traffic.stream_forms import OPENAI
from opensearch_ml_stream.connectors.decoding.decoder import Decoder
from opensearch_ml_stream.connectors.decoding.sse import SSEFraming
from opensearch_ml_stream.connectors.providers.openai_chat import OpenAIChat
from opensearch_ml_stream.connectors.wire_format import NDJSON
from opensearch_ml_stream.plugin.upstream.http1.bodies import ChunkedBody

TIMES = 20_000


def time_parts() -> Iterator[tuple[str, float]]:
    """Each step's name and its microseconds of CPU for one chunk, the mean of TIMES runs."""
    raw = OPENAI.chunks(30)[0] % (1, time.monotonic_ns())
    event = raw.partition(b"\r\n")[2][:-2]
    body = ChunkedBody()
    framing = SSEFraming()
    decoder = Decoder(SSEFraming(), OpenAIChat())
    chunks = decoder.feed(event)
    yield "HTTP parse of the provider's answer", _time(lambda: body.feed(raw))
    yield "SSE parse", (sse := _time(lambda: framing.feed(event)))
    yield "JSON: the event read", _time(lambda: decoder.feed(event)) - sse
    yield "JSON: the chunk printed", _time(lambda: NDJSON.chunks(chunks))


def _time(call: Callable[[], object]) -> float:
    began = time.process_time_ns()
    for _ in range(TIMES):
        call()
    return (time.process_time_ns() - began) / TIMES / 1000
