"""Recorded streams of the client's own dialect, one value of which is any other: each is written to an end."""

import json

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from integration_tests.fuzz.bounds import TIMEOUT_SECONDS, tries
from integration_tests.fuzz.mutations import Replacement, replaced, replacements

from opensearch_ml_stream.connectors.known_providers import SHIPPED
from tests.client_dialects.test_recorded_answers import CLIENTS, Client, replayed
from tests.conversation.sent_streams import decoder_as_sent
from tests.providers.recorded_streams import ALL_STREAMS, Recorded
from tests.providers.recordings.recording_files import RECORDINGS, Recording

pytestmark = pytest.mark.timeout(TIMEOUT_SECONDS)

_ALL: tuple[Recorded | Recording, ...] = (*ALL_STREAMS, *RECORDINGS)
_STREAMS = [
    (client, stream.preset, stream.data)
    for client in CLIENTS
    for stream in _ALL
    if stream.preset in SHIPPED.dialects and SHIPPED.dialects[stream.preset].name == client.dialect
]


def changed(data: bytes, number: int, changes: list[Replacement]) -> bytes:
    """The stream with another event at a place; one that is no JSON stays as it is."""
    lines = data.split(b"\n")
    places = [place for place, line in enumerate(lines) if line.startswith(b"data: {")]
    place = places[number % len(places)]
    try:
        event = replaced(orjson.loads(lines[place][6:]), changes)
        lines[place] = b"data: " + json.dumps(event).encode()
    except (orjson.JSONDecodeError, RecursionError, ValueError):
        pass
    return b"\n".join(lines)


@tries(1_500)
@given(st.sampled_from(_STREAMS), st.integers(0, 100), replacements(), st.sampled_from([50, 1 << 20]))
def test_whatever_an_event_holds_the_stream_goes_on_to_its_end(
    stream: tuple[Client, str, bytes], number: int, changes: list[Replacement], size: int
) -> None:
    client, preset, data = stream
    if b"data: {" not in data:
        return
    body, _ = replayed(client, decoder_as_sent(preset), changed(data, number, changes), size)
    assert body.endswith(b"\n\n")
