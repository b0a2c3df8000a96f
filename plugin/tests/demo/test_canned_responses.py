"""The demo provider's texts, and the questions that they respond to."""

from itertools import islice, pairwise

import pytest

from opensearch_ml_stream.plugin.demo.canned_responses import (
    MAX_PACE_SECONDS,
    MIN_PACE_SECONDS,
    canned_response,
    paces,
)
from opensearch_ml_stream.plugin.demo.request_parsing import Refused, last_question


@pytest.mark.parametrize(
    ("question", "words"),
    [
        ("What is the meaning of life?", "The meaning of life"),
        ("what is OpenSearch", "search and analytics engine"),
        ("Does it STREAM?", "Streaming sends each token"),
        ("Who are you?", "I am the demo provider"),
        ("Tell me a joke", "A query walks into a bar"),
        ("  hello there", "Hello!"),
        ("Why is the sky {blue}?", 'You asked: "Why is the sky {blue}?"'),
        ("", "You asked nothing"),
    ],
)
def test_a_response_has_to_do_with_the_question_and_is_always_the_same(question: str, words: str) -> None:
    assert words in canned_response(question).text
    assert canned_response(question) == canned_response(question)


def test_a_long_question_is_repeated_in_part_and_on_one_line() -> None:
    text = canned_response("why\n" * 200).text
    assert 'You asked: "why why ' in text
    assert len(text) < 400


def test_tokens_are_short_and_joined_they_are_the_text() -> None:
    response = canned_response("Tell me a joke")
    assert all(len(token.strip()) <= 6 for token in response.tokens)
    assert response.text == "A query walks into a bar, orders one beer, and gets ten, sorted by relevance."
    assert response.prompt_tokens == 4
    assert not response.cut


@pytest.mark.parametrize(("limit", "cut"), [(3, True), (10_000, False)])
def test_a_limit_cuts_only_a_longer_response(limit: int, cut: bool) -> None:
    whole, limited = canned_response("Tell me a joke"), canned_response("Tell me a joke", limit)
    assert limited.cut is cut
    assert limited.tokens == whole.tokens[:limit]


def test_paces_vary_within_their_bounds_and_are_the_same_for_the_same_text() -> None:
    first = list(islice(paces("a"), 50))
    assert first == list(islice(paces("a"), 50)) != list(islice(paces("b"), 50))
    assert all(MIN_PACE_SECONDS <= pace <= MAX_PACE_SECONDS for pace in first)
    assert all(one != other for one, other in pairwise(first))


@pytest.mark.parametrize(
    ("messages", "question"),
    [
        ([{"role": "user", "content": "a"}], "a"),
        ([{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}], "a"),
        ([{"role": "user", "content": "a"}, {"role": "user", "content": "b"}], "b"),
        ([{"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "image"}, "x"]}], "a "),
        ([{"role": "system", "content": "s"}], ""),
    ],
)
def test_the_question_is_the_users_last_message(messages: object, question: str) -> None:
    assert last_question({"messages": messages}) == question


@pytest.mark.parametrize("messages", [None, [], "x", ["x"], [{"role": "user"}], [{"role": "user", "content": 1}]])
def test_messages_of_another_shape_are_refused_with_the_parameters_name(messages: object) -> None:
    with pytest.raises(Refused, match="messages: ") as raised:
        last_question({"messages": messages})
    assert raised.value.parameter == "messages"
