"""A recording means here what it means in the provider's own SDK, unless it says beside its bytes why not."""

import json
from typing import Any

import openai
import pytest

from tests.providers.recordings.recording_files import RECORDINGS, Recording
from tests.providers.recordings.sdk_readers import READERS, Reading

READ_BY_AN_SDK = [recording for recording in RECORDINGS if recording.preset in READERS and recording.sdk is None]
COUNTS = ("input_tokens", "output_tokens")


def _decoded(arguments: Any) -> Any:
    """Arguments as a value: Anthropic's SDK gives them decoded."""
    try:
        return json.loads(arguments) if isinstance(arguments, str) else arguments
    except ValueError:
        return arguments


def _content(read: Recording | Reading) -> tuple[Any, ...]:
    return read.text, read.reasoning, [(id, name, _decoded(arguments)) for id, name, arguments in read.tools]


@pytest.mark.parametrize("recording", READ_BY_AN_SDK, ids=lambda recording: recording.name)
def test_the_sdk_reads_a_recording_as_we_do(recording: Recording) -> None:
    read = READERS[recording.preset]
    if isinstance(recording.error, dict):
        with pytest.raises(openai.APIError, match=recording.error["message"]):
            read(recording.data)
        return
    reading = read(recording.data)
    assert _content(reading) == _content(recording)
    if recording.error is None:  # an SDK does not notice that a stream is cut off
        counts = {name: (recording.usage or {})[name] for name in COUNTS if recording.usage and name in recording.usage}
        assert (reading.native, reading.model, reading.usage) == (recording.native, recording.model, counts)


def test_most_recordings_are_read_by_an_sdk() -> None:
    assert len(READ_BY_AN_SDK) > len(RECORDINGS) / 2
