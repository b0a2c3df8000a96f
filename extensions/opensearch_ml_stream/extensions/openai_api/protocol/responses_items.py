"""The JSON of a response of `/v1/responses` and of the items of its output."""

from collections.abc import Mapping, Sequence
from typing import Any

import orjson

from opensearch_ml_stream.connectors.chunks import Chunk, Ending, Usage
from opensearch_ml_stream.connectors.conversation.answer import WholeAnswer, whole_calls
from opensearch_ml_stream.connectors.conversation.conversation import JSONObject
from opensearch_ml_stream.connectors.errors import MLStreamError
from opensearch_ml_stream.connectors.syntax.jsontext import to_json
from opensearch_ml_stream.extensions.openai_api.protocol.envelope import OWN_MEMBER, own_fields, with_refusal
from opensearch_ml_stream.extensions.openai_api.protocol.responses_tools import (
    ClientTool,
    client_tools,
    free_form_input,
)

_SIGNATURE = "signature:"

_DEFAULTS: Mapping[str, Any] = {
    "instructions": None,
    "max_output_tokens": None,
    "max_tool_calls": None,
    "metadata": {},
    "parallel_tool_calls": True,
    "prompt_cache_key": None,
    "reasoning": {"effort": None, "summary": None},
    "safety_identifier": None,
    "service_tier": None,
    "temperature": None,
    "text": {"format": {"type": "text"}},
    "tool_choice": "auto",
    "tools": [],
    "top_logprobs": 0,
    "top_p": None,
    "truncation": "disabled",
    "user": None,
}
"""Members that a response repeats from its request, and their defaults: None where the model decides."""

_NOT_KEPT = {"background": False, "previous_response_id": None, "store": False}
_INCOMPLETE = {"length": "max_output_tokens", "content_filter": "content_filter"}
_ERROR_CODES = {400: "invalid_prompt", 429: "rate_limit_exceeded"}


def signature_in(encrypted: str) -> str:
    """Return the signature in an item's `encrypted_content`, "" if the content is a provider's own."""
    return encrypted.removeprefix(_SIGNATURE) if encrypted.startswith(_SIGNATURE) else ""


def message(id: bytes, status: str, parts: bytes) -> bytes:
    """Return a message of the model with these parts."""
    return b'{"id":"%b","type":"message","status":"%b","role":"assistant","content":[%b]}' % (
        id,
        status.encode(),
        parts,
    )


def reasoning(id: bytes, text: bytes, signature: str) -> bytes:
    """Return reasoning; clients send its signature back unread, as they do with encrypted reasoning."""
    summary = summary_text(text) if text else b""
    proof = b',"encrypted_content":' + orjson.dumps(_SIGNATURE + signature) if signature else b""
    return b'{"id":"%b","type":"reasoning","summary":[%b]%b}' % (id, summary, proof)


def call(id: bytes, status: str, call_id: str, tool: ClientTool, arguments: bytes) -> bytes:
    """Return a call of a tool; the arguments of a free-form tool are its input text."""
    kind, input_member = (b"custom_tool_call", b"input") if tool.is_free_form else (b"function_call", b"arguments")
    namespace = b'"namespace":%b,' % orjson.dumps(tool.namespace) if tool.namespace else b""
    return b'{"id":"%b","type":"%b","status":"%b","call_id":%b,%b"name":%b,"%b":"%b"}' % (
        id,
        kind,
        status.encode(),
        orjson.dumps(call_id),
        namespace,
        orjson.dumps(tool.name),
        input_member,
        arguments,
    )


def free_form_text(arguments: bytes) -> bytes:
    """Return the input of a free-form tool from the arguments of its function, both encoded for JSON strings."""
    return orjson.dumps(free_form_input(orjson.loads(b'"%b"' % arguments)))[1:-1]


def output_text(text: bytes) -> bytes:
    """Return the part of a message that is its text."""
    return b'{"type":"output_text","annotations":[],"logprobs":[],"text":"%b"}' % text


def refusal(text: bytes) -> bytes:
    """Return the part of a message in which the model refuses."""
    return b'{"type":"refusal","refusal":"%b"}' % text


def summary_text(text: bytes) -> bytes:
    """Return the part of reasoning that is its text."""
    return b'{"type":"summary_text","text":"%b"}' % text


class ResponseObject:
    """The object of one response: the members that it repeats from its request are encoded once.

    `token` is part of all its ids.
    """

    def __init__(self, token: str, created_at: int, model: str, request: JSONObject) -> None:
        self.token = token
        # Not the request itself, which would keep the conversation in memory.
        given = {name: request[name] for name in request if name in _DEFAULTS and request[name] is not None}
        own = {"id": f"resp_{token}", "object": "response", "created_at": created_at, "model": model}
        self._known = {**own, **_DEFAULTS, **given, **_NOT_KEPT}
        self._head = b""  # these members, encoded on first use
        self._tools = client_tools(request)

    def tool(self, function: str) -> ClientTool:
        """Return the client's tool that a function stands for."""
        return self._tools.get(function) or ClientTool(function)

    def begun(self) -> bytes:
        """Return the response at its beginning."""
        return self._object(b"in_progress", b"", {"error": None, "incomplete_details": None, "usage": None})

    def ended(self, items: Sequence[bytes], ending: Ending, extra: Mapping[str, Any]) -> bytes:
        """Return the whole response."""
        members = {
            "error": _error_at_end(ending),
            "incomplete_details": incomplete_details(ending),
            "usage": usage_object(ending.usage),
            **own_member(ending, extra),
        }
        return self._object(status(ending).encode(), b",".join(items), members)

    def failed(self, items: Sequence[bytes], error: MLStreamError) -> bytes:
        """Return the response that ended with an error."""
        members = {"error": response_error(error), "incomplete_details": None, "usage": None}
        return self._object(b"failed", b",".join(items), members)

    def _object(self, status: bytes, output: bytes, members: Mapping[str, Any]) -> bytes:
        rest = orjson.dumps(members)[1:]
        if not self._head:
            self._head = to_json(self._known)[:-1]
            self._known = {}
        return b"".join([self._head, b',"status":"', status, b'","output":[', output, b"],", rest])


def own_member(ending: Ending, extra: Mapping[str, Any]) -> dict[str, Any]:
    """Return OWN_MEMBER with its content, empty if there is none."""
    fields = own_fields(ending, extra)
    return {OWN_MEMBER: fields} if fields else {}


def status(ending: Ending) -> str:
    """Return the status of a response with this ending."""
    if ending.finish_reason == "error":
        return "failed"
    return "incomplete" if ending.finish_reason in _INCOMPLETE else "completed"


def incomplete_details(ending: Ending) -> dict[str, str] | None:
    """Return why a response is incomplete, None if it is not."""
    reason = _INCOMPLETE.get(ending.finish_reason)
    return None if reason is None else {"reason": reason}


def _error_at_end(ending: Ending) -> dict[str, str] | None:
    """Return the error of a response that the provider itself calls failed, None for any other."""
    if ending.finish_reason != "error":
        return None
    word = ending.native_finish_reason or "error"
    return {"code": "server_error", "message": f"The provider broke the answer off: {word}"}


def response_error(error: MLStreamError) -> dict[str, str]:
    """Return an error as the member `error` of a response has it."""
    return {"code": error.provider.code or _ERROR_CODES.get(error.status, "server_error"), "message": error.reason}


def usage_object(usage: Usage | None) -> dict[str, Any] | None:
    """Return the token counts; those that the provider does not report are 0, since each must be a number."""
    if usage is None:
        return None
    inputs, outputs = usage.input_tokens or 0, usage.output_tokens or 0
    return {
        "input_tokens": inputs,
        "input_tokens_details": {
            "cached_tokens": usage.cached_tokens or 0,
            "cache_write_tokens": usage.cache_write_tokens or 0,
        },
        "output_tokens": outputs,
        "output_tokens_details": {"reasoning_tokens": usage.reasoning_tokens or 0},
        "total_tokens": inputs + outputs if usage.total_tokens is None else usage.total_tokens,
    }


def whole_response(answer: WholeAnswer, response: ResponseObject) -> bytes:
    """Return an answer of a provider with another API as a response."""
    ending = with_refusal(answer.ending) if answer.chunk.refusal else answer.ending
    last = "completed" if status(ending) == "completed" else "incomplete"
    return response.ended(_output(answer.chunk, response, last), ending, answer.extra)


def _output(chunk: Chunk, response: ResponseObject, last: str) -> list[bytes]:
    """Return the items: reasoning, a message, calls. The last item of an incomplete answer may be cut off."""
    output: list[bytes] = []

    def new_id(prefix: str) -> bytes:
        return f"{prefix}_{response.token}_{len(output)}".encode()

    calls = whole_calls(chunk.tool_calls)
    if chunk.reasoning or chunk.signature:
        output.append(reasoning(new_id("rs"), _inside(chunk.reasoning), chunk.signature))
    if text := chunk.text.removesuffix(chunk.refusal):
        own = "completed" if calls or chunk.refusal else last
        output.append(message(new_id("msg"), own, output_text(_inside(text))))
    if chunk.refusal:
        own = "completed" if calls else last
        output.append(message(new_id("msg"), own, refusal(_inside(chunk.refusal))))
    for one in calls:
        own = "completed" if one is not calls[-1] else last
        arguments = _inside(one.arguments or ("{}" if own == "completed" else ""))
        call_id, tool = one.id or new_id("call").decode(), response.tool(one.name or "")
        input_text = free_form_text(arguments) if tool.is_free_form else arguments
        output.append(call(new_id("fc"), own, call_id, tool, input_text))
    return output


def _inside(text: str) -> bytes:
    """Encode a text for a JSON string, without its quotes."""
    return orjson.dumps(text)[1:-1]
