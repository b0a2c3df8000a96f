"""The providers' words for the end of a response, in one vocabulary."""

import pytest

from opensearch_ml_stream.connectors.chunks import FINISH_REASONS
from opensearch_ml_stream.connectors.decoding.finish_reasons import (
    after_calls,
    after_refusal,
    finish_reason,
    native_finish_reason,
)


@pytest.mark.parametrize(
    ("native", "reason"),
    [
        (None, "stop"),
        ("", "stop"),
        ("end_turn", "stop"),
        ("STOP", "stop"),
        ("what nobody knows", "stop"),
        ("MAX_TOKENS", "length"),
        ("tool_use", "tool_calls"),
        ("SAFETY", "content_filter"),
        ("error", "error"),
    ],
)
def test_a_providers_word_is_translated_whatever_its_case(native: str | None, reason: str) -> None:
    assert finish_reason(native) == reason
    assert reason in FINISH_REASONS


@pytest.mark.parametrize("value", [None, "", 7, "null", "None", "not_finished", "NOT_FINISHED", "in_progress"])
def test_a_word_that_says_that_the_stream_goes_on_is_no_finish_reason(value: object) -> None:
    assert native_finish_reason(value) is None
    assert native_finish_reason("Stop") == "Stop"


def test_an_answer_with_calls_that_just_stopped_ended_for_them() -> None:
    ends = {reason: after_calls(reason) for reason in FINISH_REASONS}
    assert ends == {**dict(zip(FINISH_REASONS, FINISH_REASONS, strict=True)), "stop": "tool_calls"}


def test_an_answer_in_which_the_model_refuses_was_held_back() -> None:
    ends = {reason: after_refusal(reason) for reason in FINISH_REASONS}
    assert ends == {**dict(zip(FINISH_REASONS, FINISH_REASONS, strict=True)), "stop": "content_filter"}
