"""Headers that belong to a connection stay behind."""

import pytest

from opensearch_ml_stream.extensions.front_door.hop_by_hop import end_to_end, trailer_fields


def test_headers_of_the_connection_and_those_that_it_names_stay_behind() -> None:
    headers = [
        (b"accept", b"a"), (b"connection", b"X-One, keep-alive"), (b"connection", b"x-two"), (b"x-one", b"1"),
        (b"x-two", b"2"), (b"te", b"gzip"), (b"upgrade", b"h2c"), (b"transfer-encoding", b"chunked"),
        (b"x-three", b"3"),
    ]  # fmt: skip
    assert end_to_end(headers) == [(b"accept", b"a"), (b"x-three", b"3")]


def test_connection_takes_no_bodys_length_and_no_host_away() -> None:
    headers = [(b"host", b"h"), (b"content-length", b"3"), (b"connection", b"content-length, host")]
    assert end_to_end(headers) == headers[:2]


def test_what_frames_or_authorizes_a_message_is_no_trailer() -> None:
    assert trailer_fields([(b"x-sum", b"1"), (b"content-length", b"5"), (b"authorization", b"x")]) == [(b"x-sum", b"1")]


@pytest.mark.parametrize("name", [b"forwarded", b"opendistro_security_impersonate_as", b"x-api-key"])
def test_what_says_who_calls_is_no_trailer(name: bytes) -> None:
    assert trailer_fields([(name, b"x")]) == []
