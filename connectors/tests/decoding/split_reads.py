"""Feeds a framing in reads of one size."""

from opensearch_ml_stream.connectors.decoding.contract import Framing
from opensearch_ml_stream.connectors.event import Event


def read_events(framing: Framing, data: bytes, size: int | None = None) -> list[Event]:
    """All events of `data`, fed in reads of `size` bytes (all at once for None) and closed."""
    size = size or max(len(data), 1)
    events: list[Event] = []
    for start in range(0, len(data), size):
        events += framing.feed(data[start : start + size])
    return events + framing.close()


def read_payloads(framing: Framing, data: bytes, size: int | None = None) -> list[bytes]:
    return [event.data for event in read_events(framing, data, size)]
