"""A recorded stream of each framing, played by the replaying provider, and read and recorded by a diagnosis.

That each provider's recording is read whole, however it is cut, is in connectors/tests/providers.
"""

from typing import Any

import pytest

from opensearch_ml_stream.extensions.doctor.cli.replay_provider import replay_provider
from opensearch_ml_stream.extensions.doctor.diagnosis.connector_file import diagnose_connector
from opensearch_ml_stream.extensions.doctor.diagnosis.recording import Read, Recording, read_recording_file
from opensearch_ml_stream.plugin.settings import Settings
from tests.providers.recorded_streams import ALL_STREAMS, Recorded, ending_fields, play

PIECE_BYTES = 61  # cuts events anywhere
SETTINGS = Settings(trusted_connector_endpoints_regex=(r"^http://127\.0\.0\.1:[0-9]+/.*$",), private_ip_enabled=True)


def content_type(data: bytes) -> str:
    by_first_byte = {
        b"\0": "application/vnd.amazon.eventstream",
        b"{": "application/x-ndjson",
        b"[": "application/json",
    }
    if b"\ndata:" in b"\n" + data:
        return "text/event-stream"
    return by_first_byte.get(data[:1], "text/plain")


def recording_of(recorded: Recorded) -> Recording:
    """A recording of the stream in pieces, a millisecond apart."""
    starts = range(0, len(recorded.data), PIECE_BYTES)
    reads = tuple(
        Read(float(number), recorded.data[start : start + PIECE_BYTES]) for number, start in enumerate(starts)
    )
    headers = (("content-type", content_type(recorded.data)),)
    return Recording(200, headers, reads, "complete", float(len(reads)))


def connector(url: str, interface: str) -> dict[str, Any]:
    action = {
        "action_type": "predict",
        "method": "POST",
        "url": f"{url}/predict",
        "request_body": '{"prompt": "${parameters.prompt}"}',
    }
    return {
        "name": "c",
        "version": 1,
        "protocol": "http",
        "credential": {"key": "none"},
        "parameters": {"_llm_interface": interface},
        "actions": [action],
    }


ONE_OF_EACH = {content_type(recorded.data): recorded for recorded in ALL_STREAMS}.values()


@pytest.mark.parametrize("recorded", ONE_OF_EACH, ids=lambda recorded: recorded.name)
async def test_a_replayed_stream_ends_as_the_recorded_one_and_is_recorded_as_it_was(recorded: Recorded) -> None:
    recording = read_recording_file(recording_of(recorded).to_file())
    with replay_provider(recording, speed=0) as url:
        diagnosis = await diagnose_connector(connector(url, recorded.preset), {"prompt": "hi"}, SETTINGS, record=True)
    assert diagnosis.report.stream is not None
    outcome = dict(diagnosis.report.stream.outcome)
    finish, native, usage, model = ending_fields(play(recorded.decoder(), [recorded.data])[1])
    expected = {"finish_reason": finish, "native_finish_reason": native, "usage": usage, "model": model}
    assert outcome == {name: value for name, value in expected.items() if value is not None}
    assert diagnosis.recording is not None
    # What follows the end of the stream is not waited for.
    assert recorded.data.startswith(diagnosis.recording.body) and diagnosis.recording.body
