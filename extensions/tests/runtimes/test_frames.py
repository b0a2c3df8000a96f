"""Frames, cut anywhere."""

import pytest

from opensearch_ml_stream.runtimes.frames import HEADER, MAX_PAYLOAD, FrameParser, Kind, MalformedFrame, frame

FRAMES = [(1, Kind.STREAM, b'{"inputs":[]}'), (2, Kind.CANCEL, b""), (1, Kind.DATA, b"x" * 70_000), (1, Kind.END, b"")]


@pytest.mark.parametrize("size", [1, 7, 9, 10, 1000, 200_000])
def test_frames_are_the_same_however_they_are_cut(size: int) -> None:
    data = b"".join([frame(*one) for one in FRAMES])
    parser = FrameParser()
    found = [one for start in range(0, len(data), size) for one in parser.feed(data[start : start + size])]
    assert found == FRAMES


def test_a_frame_that_is_too_large_is_refused_by_its_header() -> None:
    with pytest.raises(MalformedFrame, match="are allowed"):
        list(FrameParser().feed(HEADER.pack(MAX_PAYLOAD + 1, 1, Kind.DATA)))
