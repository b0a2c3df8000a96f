"""A response of `/v1/responses` in one piece."""

import orjson

from opensearch_ml_stream.connectors.chunks import Chunk
from opensearch_ml_stream.connectors.conversation.answer import WholeAnswer, whole_calls
from opensearch_ml_stream.connectors.syntax.compact_json import to_json
from opensearch_ml_stream.extensions.openai_api.protocol import responses_items as items
from opensearch_ml_stream.extensions.openai_api.protocol.envelope import with_refusal
from opensearch_ml_stream.extensions.openai_api.protocol.responses_items import ResponseObject
from opensearch_ml_stream.extensions.openai_api.protocol.well_formed import is_response


def whole_response(answer: WholeAnswer, response: ResponseObject) -> bytes:
    """Return an answer as a response; one of a provider of this dialect is as it was sent if it is well formed."""
    if answer.is_as_sent and is_response(answer.response):
        return to_json({**answer.response, **items.own_member(answer.ending, answer.extra)})
    ending = with_refusal(answer.ending) if answer.chunk.refusal else answer.ending
    status = "completed" if items.status(ending) == "completed" else "incomplete"
    return response.ended(_output(answer.chunk, response, status), ending, answer.extra)


def _output(chunk: Chunk, response: ResponseObject, status: str) -> list[bytes]:
    """Return the items: reasoning, a message, calls. The last of an answer that is not whole may be cut off."""
    output: list[bytes] = []

    def new_id(prefix: str) -> bytes:
        return f"{prefix}_{response.token}_{len(output)}".encode()

    calls = whole_calls(chunk.tool_calls)
    if chunk.reasoning or chunk.signature:
        output.append(items.reasoning(new_id("rs"), _inside(chunk.reasoning), chunk.signature))
    if text := chunk.text.removesuffix(chunk.refusal):
        own = "completed" if calls or chunk.refusal else status
        output.append(items.message(new_id("msg"), own, items.output_text(_inside(text))))
    if chunk.refusal:
        own = "completed" if calls else status
        output.append(items.message(new_id("msg"), own, items.refusal(_inside(chunk.refusal))))
    for call in calls:
        own = "completed" if call is not calls[-1] else status
        arguments = _inside(call.arguments or ("{}" if own == "completed" else ""))
        call_id, tool = call.id or new_id("call").decode(), response.tool(call.name or "")
        said = items.free_form_text(arguments) if tool.is_free_form else arguments
        output.append(items.call(new_id("fc"), own, call_id, tool, said))
    return output


def _inside(text: str) -> bytes:
    """Return the inside of the JSON string of a text."""
    return orjson.dumps(text)[1:-1]
