"""The stream of a conversation whose client speaks its provider's dialect."""

import orjson
import pytest

from opensearch_ml_stream.connectors.chunks import to_chunk_list
from opensearch_ml_stream.connectors.conversation.conversation import Conversation
from opensearch_ml_stream.connectors.conversation.dialect import OPENAI_CHAT, ClientRequest
from opensearch_ml_stream.connectors.decoding.contract import StreamDecoder
from opensearch_ml_stream.connectors.documents import read_connector, read_model
from opensearch_ml_stream.connectors.errors import UpstreamError
from opensearch_ml_stream.plugin.predictions.compiled_model import CompiledModel
from opensearch_ml_stream.plugin.predictions.conversation_calls import read_answer, stream_request
from tests.predictions.prediction_setup import SECRET, connector_body

REQUEST = ClientRequest(OPENAI_CHAT, {"messages": [{"role": "user", "content": "hi"}]}, lambda body: Conversation(()))


def model() -> CompiledModel:
    stored = read_connector(connector_body(action={"request_body": '{"messages": ${parameters.messages}}'}))
    return CompiledModel("m", read_model({}), stored, {"key": SECRET})


def decoder() -> StreamDecoder:
    return stream_request(REQUEST, model())[1]()


def test_a_whole_response_without_an_answer_is_no_empty_one() -> None:
    for body in (b'{"id":"x","choices":[]}', b'{"id":"x","choices":null,"object":"chat.completion"}'):
        with pytest.raises(UpstreamError, match="of no form that is known here"):
            read_answer(body, REQUEST, model(), names_model=False)
    empty = b'{"choices":[{"message":{"content":""},"finish_reason":"length"}]}'
    assert read_answer(empty, REQUEST, model(), names_model=False).ending.finish_reason == "length"


@pytest.mark.parametrize(
    "body", [{"detail": f"no {SECRET}"}, {"code": 7, "message": f"no {SECRET}"}, [{"message": f"no {SECRET}"}]]
)
def test_a_whole_response_of_no_known_form_is_the_error_that_it_tells_of(body: object) -> None:
    with pytest.raises(UpstreamError, match=r"^Error from remote service: no \*\*\*$"):
        read_answer(orjson.dumps(body), REQUEST, model(), names_model=False)


def test_no_event_that_goes_on_as_it_was_sent_has_the_model_s_credential_in_it() -> None:
    call = {"index": 0, "id": "1", "function": {"name": "f", "arguments": SECRET}}
    choice = {"index": 0, "delta": {"tool_calls": [call]}, "finish_reason": None}
    [chunk] = to_chunk_list(decoder().feed(b"data: " + orjson.dumps({"id": "c", "choices": [choice]}) + b"\n\n"))
    assert chunk.event is not None
    assert SECRET.encode() not in chunk.event.data
    assert chunk.event.payload["id"] == "c"
