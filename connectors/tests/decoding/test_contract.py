"""The outcomes that framings and providers share."""

import pytest

from opensearch_ml_stream.connectors.decoding.contract import (
    MAX_EVENT_BYTES,
    MAX_EVENT_VALUES,
    has_too_many_values,
    too_large,
    truncated,
)


def test_an_event_may_have_4_mebibytes() -> None:
    assert MAX_EVENT_BYTES == 4 * 1024 * 1024
    assert "more than 4194304 bytes" in too_large().reason


@pytest.mark.parametrize(
    ("event", "too_many"),
    [
        (b"[" + b"0," * (MAX_EVENT_VALUES - 3) + b"0]", False),
        (b"[" + b"0," * MAX_EVENT_VALUES + b"0]", True),
        (b"[" + b"{}," * (MAX_EVENT_VALUES // 2) + b"0]", True),
        (b'["' + b",[{" * MAX_EVENT_VALUES + b'"]', False),
        (b'["' + b'\\",[{' * MAX_EVENT_VALUES + b'"]', False),
        (b"[" + b'"",' * 3 * MAX_EVENT_VALUES + b"0]", True),
    ],
    ids=["most", "more", "objects", "in a text", "in a text with quotes", "strings"],
)
def test_an_event_may_have_so_many_values_wherever_its_commas_are(event: bytes, too_many: bool) -> None:
    assert has_too_many_values(event) is too_many


def test_a_truncation_says_what_did_not_come() -> None:
    assert "before [DONE];" in truncated("[DONE]").reason
    assert "before its terminator;" in truncated().reason
