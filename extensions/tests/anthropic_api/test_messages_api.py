"""The API of `/v1/messages`: what it reads of a request before any model is looked for."""

from itertools import count
from typing import Any

import pytest

from opensearch_ml_stream.connectors.chunks import Chunk, Ending
from opensearch_ml_stream.connectors.errors import InvalidRequest
from opensearch_ml_stream.extensions.anthropic_api.messages_api import MessagesAPI
from tests.counted_work import steps

MESSAGES = [{"role": "user", "content": "Hi"}]


def api() -> MessagesAPI:
    ids = count(1)
    return MessagesAPI(lambda: str(next(ids)))


def test_the_model_and_the_stream_are_the_routes_and_all_else_the_conversations() -> None:
    asked = api().read({"model": "m", "stream": True, "max_tokens": 9, "messages": MESSAGES, "new": 1})
    assert (asked.model, asked.is_stream, asked.request.dialect) == ("m", True, "anthropic")
    assert asked.request.body == {"max_tokens": 9, "messages": MESSAGES, "new": 1}
    assert asked.request.conversation.unknown == {"new": 1}


@pytest.mark.parametrize("members", [{}, {"stream": False}, {"stream": None}])
def test_a_stream_is_asked_for(members: dict[str, Any]) -> None:
    assert not api().read({"model": "m", **members}).is_stream


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ({}, "model: Field required"),
        ({"model": None}, "model: Field required"),
        ({"model": 1}, "model: Input should be a valid string"),
        ({"model": "m", "stream": "yes"}, "stream: Input should be a valid boolean"),
    ],
)
def test_a_wrong_member_is_named(body: dict[str, Any], reason: str) -> None:
    with pytest.raises(InvalidRequest, match=reason):
        api().read(body)


def test_a_conversation_is_read_when_it_is_needed() -> None:
    asked = api().read({"model": "m", "messages": 1})
    with pytest.raises(InvalidRequest, match="messages: Input should be a valid list"):
        _ = asked.request.conversation


def test_each_message_has_an_id_of_its_own_and_the_models_name() -> None:
    one = api()
    body = {"model": "my-model"}
    first, second = [one.read(body).wire().last([Chunk("a")], Ending(), {}) for _ in range(2)]
    assert b'"id":"msg_1"' in first and b'"id":"msg_2"' in second
    assert b'"model":"my-model"' in first


def test_a_body_is_read_in_work_linear_in_its_size() -> None:
    def work(size: int) -> int:
        blocks: list[Any] = [{"type": "tool_use", "id": f"t{place}", "name": "n", "input": {}} for place in range(size)]
        blocks += [{"type": "tool_result", "tool_use_id": f"t{place}", "content": "x"} for place in range(size)]
        nested: Any = {"type": "text", "text": "x"}
        for _ in range(size // 10):
            nested = {"type": "document", "source": {"type": "content", "content": [nested]}}
        messages = [{"role": "user", "content": [*blocks, nested]}]
        asked = api().read({"model": "m", "max_tokens": 1, "messages": messages})
        return steps(lambda: asked.request.conversation)

    assert work(400) < 2.2 * work(200)
