"""Events of a stream, and the answer that they come to."""

from typing import Any

import pytest

from opensearch_ml_stream.extensions.openai_api.cli.chat_answer import AnswerFigures, ChatAnswer, Piece, read_events
from opensearch_ml_stream.plugin.cli.command_errors import CommandFailed, RequestFailed
from tests.openai_api.cli.chat_events import DONE, END, call, delta, end, sent


def answer_of(*events: dict[str, Any]) -> ChatAnswer:
    answer = ChatAnswer()
    for event in events:
        answer.add(event)
    return answer


def test_events_are_read_wherever_the_bytes_are_cut() -> None:
    told = {"opensearch_ml_stream": {"model_id": "x"}}
    body = b": ping\n\n" + sent(delta(content="a\u2028é")) + b': opensearch_ml_stream {"model_id":"x"}\n\n' + DONE
    for size in (1, 2, 7, len(body)):
        pieces = [body[place : place + size] for place in range(0, len(body), size)]
        assert list(read_events(pieces)) == [delta(content="a\u2028é"), told]


def test_an_error_within_a_stream_is_raised_behind_what_came_before() -> None:
    error = {"error": {"message": "Slow down", "provider_status": 429}}
    events = read_events([sent(delta(content="a"), error)])
    assert next(events) == delta(content="a")
    with pytest.raises(RequestFailed, match=r"Slow down \(status 429\)"):
        next(events)


@pytest.mark.parametrize(
    ("body", "words"), [(b"", "broke off"), (sent(END), "broke off"), (b"data: <html>\n", "not a stream of events")]
)
def test_a_stream_that_breaks_off_or_is_none_is_an_error(body: bytes, words: str) -> None:
    with pytest.raises(CommandFailed, match=words):
        list(read_events([body]))


def test_pieces_become_a_message() -> None:
    answer = ChatAnswer()
    assert answer.add(delta(role="assistant", content="")) == Piece()
    assert answer.add(delta(reasoning_content="thi")) == Piece(reasoning="thi")
    assert answer.add(delta(reasoning_content="nk", reasoning_signature="s")) == Piece(reasoning="nk")
    assert answer.add(delta(content="Hel")) == Piece("Hel")
    answer.add(delta(content="lo"))
    answer.add(END)
    assert answer.message() == {
        "role": "assistant",
        "content": "Hello",
        "reasoning_content": "think",
        "reasoning_signature": "s",
    }
    assert list(answer.notes()) == []


def test_tool_calls_are_kept_once_they_are_complete() -> None:
    begun = [call(0, "a", name="f", arguments='{"x"'), call(1, "b", name="g", arguments=""), call(0, arguments=":1}")]
    assert "tool_calls" not in answer_of(*begun).message()
    whole = answer_of(*begun, end("tool_calls"))
    assert whole.message()["tool_calls"] == [
        {"id": "a", "type": "function", "function": {"name": "f", "arguments": '{"x":1}'}},
        {"id": "b", "type": "function", "function": {"name": "g", "arguments": ""}},
    ]
    assert list(whole.notes()) == ['tool call: f({"x":1})', "tool call: g()"]


def test_an_early_end_and_what_the_sidecar_tells_are_noted() -> None:
    told = {"opensearch_ml_stream": {"model_id": "m2", "warnings": ["did you mean b?"]}}
    assert list(answer_of(end("length"), told).notes()) == [
        "the model stopped early: length",
        "answered by the model m2",
        "warning: did you mean b?",
    ]


def test_figures_are_of_the_first_piece_the_pace_the_counts_and_the_cost() -> None:
    times = iter([10.0, 10.5, 12.5])
    figures = AnswerFigures(lambda: next(times))
    figures.add(Piece())
    assert figures.line(ChatAnswer()) == ""
    figures.add(Piece(reasoning="a"))
    figures.add(Piece("b"))
    usage = {"choices": [], "usage": {"prompt_tokens": 7, "completion_tokens": 5}}
    known = "first token 0.50 s, 2.5 tokens/s, 7 tokens in, 5 out"
    assert figures.line(answer_of(usage)) == known
    spent = {"opensearch_ml_stream": {"spent": {"tokens": 12, "cost": 0.00012}}}
    assert figures.line(answer_of(usage, spent)) == f"{known}, cost 0.00012"
