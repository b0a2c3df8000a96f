"""What public SDKs and frameworks recorded means here what was written beside it, however its bytes are cut."""

import random
import re
from collections import Counter

import pytest

from opensearch_ml_stream.connectors.chunks import FINISH_REASONS
from opensearch_ml_stream.connectors.errors import StreamTruncated, UpstreamError
from opensearch_ml_stream.connectors.unstreamed_response import read_whole_response
from tests.providers.recorded_streams import ending_fields, join_chunks, outcome_fields, play
from tests.providers.recordings.recording_files import RECORDINGS, WHOLE_RESPONSES, Recording

_BEGIN = re.compile(rb'^(?:data: ?|\[)?\{(?=")', re.MULTILINE)  # of an event, or of a whole response

every_recording = pytest.mark.parametrize("recording", RECORDINGS, ids=lambda recording: recording.name)


@every_recording
def test_a_recording_means_what_is_written_beside_it(recording: Recording) -> None:
    decoder = recording.decoder()
    chunks, outcome = play(decoder, [recording.data])
    assert join_chunks(chunks) == (recording.text, recording.reasoning, recording.tool_calls())
    if recording.error == "truncated":
        assert isinstance(outcome, StreamTruncated)
    elif isinstance(recording.error, dict):
        assert isinstance(outcome, UpstreamError)
        assert outcome.provider_status == recording.error.get("status")
        assert recording.error["message"] in outcome.reason
    else:
        assert ending_fields(outcome) == _ending(recording)


def _ending(recording: Recording) -> tuple[str, str | None, dict[str, int] | None, str | None]:
    assert recording.finish in FINISH_REASONS
    return recording.finish, recording.native, recording.usage, recording.model


@pytest.mark.parametrize("recording", WHOLE_RESPONSES, ids=lambda recording: recording.name)
def test_a_whole_response_means_what_is_written_beside_it(recording: Recording) -> None:
    read = read_whole_response(recording.data)
    assert read is not None
    chunk, ending = read
    assert join_chunks([chunk]) == (recording.text, recording.reasoning, recording.tool_calls())
    assert ending_fields(ending) == _ending(recording)


@pytest.mark.parametrize(
    "recording", [one for one in RECORDINGS + WHOLE_RESPONSES if _BEGIN.search(one.data)], ids=lambda one: one.name
)
def test_what_is_not_quite_json_in_a_recording_changes_nothing_else(recording: Recording) -> None:
    def read(beside: bytes) -> object:
        data = _BEGIN.sub(lambda begin: begin[0] + b'"x":' + beside + b",", recording.data)
        if recording in WHOLE_RESPONSES:
            return read_whole_response(data)
        chunks, outcome = play(recording.decoder(), [data])
        return chunks, outcome_fields(outcome)

    meant = read('[null,null,null,"\ufffd.","\ufffd.","\\t"]'.encode())
    assert read(b'[NaN,Infinity,-Infinity,"\xff.","\\ud83d.","\t"]') == meant


@every_recording
def test_the_cuts_of_a_recording_change_nothing(recording: Recording) -> None:
    data = recording.data
    whole, outcome = play(recording.decoder(), [data])
    draw = random.Random(recording.name)
    cuttings = [list(range(len(data)))]
    cuttings += [sorted(draw.sample(range(len(data)), draw.randint(1, min(40, len(data))))) for _ in range(8)]
    for cuts in cuttings:
        pieces = [data[start:end] for start, end in zip([0, *cuts], [*cuts, len(data)], strict=True)]
        chunks, cut_outcome = play(recording.decoder(), pieces)
        assert (chunks, outcome_fields(cut_outcome)) == (whole, outcome_fields(outcome)), cuts


@pytest.mark.parametrize("recording", RECORDINGS + WHOLE_RESPONSES, ids=lambda recording: recording.name)
def test_a_recording_names_its_source(recording: Recording) -> None:
    repository, _, path = recording.source.partition(" ")
    assert repository.count("/") == 1
    assert path
    assert recording.shows


def test_there_are_recordings_of_many_providers_and_dialects() -> None:
    assert len(RECORDINGS) >= 100
    assert len(Counter(recording.provider for recording in RECORDINGS)) >= 12
    assert len(Counter(recording.preset for recording in RECORDINGS)) >= 10
