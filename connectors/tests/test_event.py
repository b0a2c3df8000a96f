"""Events, whose data is parsed once."""

import pytest

from opensearch_ml_stream.connectors.event import Event


def test_the_payload_is_parsed_once() -> None:
    event = Event("", b'{"a":1}')
    assert event.payload == {"a": 1}
    assert event.payload is event.payload


def test_an_event_can_be_made_of_its_payload() -> None:
    payload = {"a": 1}
    event = Event.of(payload, "message")
    assert event == Event("message", b'{"a":1}')
    assert event.payload is payload


def test_data_that_is_no_json_has_no_payload() -> None:
    with pytest.raises(ValueError, match="unexpected"):
        _ = Event("", b"[DONE]").payload
