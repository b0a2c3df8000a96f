"""The outcomes that framings and providers share."""

from opensearch_ml_stream.connectors.decoding.contract import MAX_EVENT_BYTES, too_large, truncated


def test_an_event_may_have_16_mebibytes() -> None:
    assert MAX_EVENT_BYTES == 16 * 1024 * 1024
    assert "more than 16777216 bytes" in too_large().reason


def test_a_truncation_says_what_did_not_come() -> None:
    assert "before [DONE];" in truncated("[DONE]").reason
    assert "before its terminator;" in truncated().reason
