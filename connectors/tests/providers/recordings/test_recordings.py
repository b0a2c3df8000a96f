"""What public SDKs and frameworks recorded means here what was written beside it, however its bytes are cut."""

import random
from collections import Counter

import pytest

from opensearch_ml_stream.connectors.chunks import FINISH_REASONS
from opensearch_ml_stream.connectors.errors import StreamTruncated, UpstreamError
from opensearch_ml_stream.connectors.unstreamed_response import read_whole_response
from tests.providers.recorded_streams import ending_fields, join_chunks, outcome_fields, play
from tests.providers.recordings.recording_files import RECORDINGS, WHOLE_RESPONSES, Recording

every_recording = pytest.mark.parametrize("recording", RECORDINGS, ids=lambda recording: recording.name)


@every_recording
def test_a_recording_means_what_is_written_beside_it(recording: Recording) -> None:
    decoder = recording.decoder()
    chunks, outcome = play(decoder, [recording.data])
    assert join_chunks(chunks) == (recording.text, recording.reasoning, recording.tool_calls())
    assert decoder.skipped_events == 0
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
