"""Read a whole JSON response to a stream request: it was paid for, so it is delivered as a stream of one chunk.

Servers that do not know `stream`, gateways and caches respond like this. The response is written as the events in which
its provider would have streamed it, and these are decoded as any stream is.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import orjson

from opensearch_ml_stream.connectors.chunks import Chunk, Ending
from opensearch_ml_stream.connectors.decoding.contract import Event, Finishing, Outcome
from opensearch_ml_stream.connectors.decoding.event_fields import mapping
from opensearch_ml_stream.connectors.errors import StreamTruncated
from opensearch_ml_stream.connectors.providers.model_hosts.detected_dialect import DetectedDialect

_Object = Mapping[str, Any]


def read_whole_response(body: bytes) -> tuple[Chunk, Ending] | None:
    """Return the one chunk and the ending of a whole response, None if it is not one of a known shape."""
    try:
        value: Any = orjson.loads(body)
    except ValueError:
        return None
    value = value[0] if isinstance(value, list) and len(value) == 1 else value
    return decode_whole_response(value) if isinstance(value, dict) else None


def decode_whole_response(value: _Object) -> tuple[Chunk, Ending] | None:
    """Return what `read_whole_response` does, of a response that was parsed."""
    try:
        return _decode(_events(value))
    except (ValueError, KeyError, TypeError, IndexError, AttributeError):
        return None


def _decode(events: Iterable[_Object]) -> tuple[Chunk, Ending] | None:
    """Decode events of any dialect. Raises as `Provider.read` for an event of no known shape."""
    dialect = DetectedDialect()
    chunks: list[Chunk] = []
    outcome: Outcome | Finishing | None = None
    for event in events:
        outcome = dialect.read(Event("", orjson.dumps(event)), chunks)
    if outcome is None or isinstance(outcome, Finishing):
        outcome = dialect.end_of_input()
    if isinstance(outcome, StreamTruncated):  # some leave the finish reason out; a JSON object cannot be cut off
        outcome = Ending()
    if not chunks or not isinstance(outcome, Ending):
        return None
    calls = tuple(call for chunk in chunks for call in chunk.tool_calls)
    text, reasoning = "".join(chunk.text for chunk in chunks), "".join(chunk.reasoning for chunk in chunks)
    return Chunk(text, reasoning, calls), outcome


def _events(response: _Object) -> Iterable[_Object]:
    """Return the events in which the response would have been streamed; itself, if that is its event's shape too."""
    for has_shape, to_events in _SHAPES:
        if has_shape(response):
            return to_events(response)
    return [response]


def _chat(response: _Object) -> Iterable[_Object]:
    """OpenAI chat completions: a message is a delta with everything in it."""
    choices = [{**choice, "delta": choice.get("message")} for choice in response["choices"]]
    return [{**response, "choices": choices}]


def _responses(response: _Object) -> Iterable[_Object]:
    """OpenAI Responses: items of output, each with its parts."""
    for number, item in enumerate(response["output"]):
        parts = [*(item.get("summary") or ()), *(item.get("content") or ())]
        for part in parts:
            kind = {"output_text": "output_text", "refusal": "refusal"}.get(part["type"], "reasoning_text")
            yield {"type": f"response.{kind}.delta", "delta": part.get("text") or part.get("refusal")}
        yield {"type": "response.output_item.added", "output_index": number, "item": item}
        for kind, field in (("function_call_arguments", "arguments"), ("custom_tool_call_input", "input")):
            if item["type"] in ("function_call", "custom_tool_call") and field in item:
                yield {"type": f"response.{kind}.done", "output_index": number, field: item[field]}
        yield {"type": "response.output_item.done", "output_index": number, "item": item}
    yield {"type": f"response.{response['status']}", "response": response}


def _anthropic(response: _Object) -> Iterable[_Object]:
    """Anthropic messages: the event that begins a message may hold all of it."""
    return [{"type": "message_start", "message": response}, {"type": "message_stop"}]


def _converse(response: _Object) -> Iterable[_Object]:
    """Bedrock Converse: content blocks, each of one kind."""
    for number, block in enumerate(response["output"]["message"]["content"]):
        delta: dict[str, Any] = {"text": block.get("text")}
        if tool := mapping(block.get("toolUse")):
            yield {"contentBlockStart": {"start": {"toolUse": tool}, "contentBlockIndex": number}}
            delta = {"toolUse": {"input": orjson.dumps(tool.get("input") or {}).decode()}}
        elif "reasoningContent" in block:
            delta = {"reasoningContent": mapping(block["reasoningContent"]).get("reasoningText")}
        yield {"contentBlockDelta": {"delta": delta, "contentBlockIndex": number}}
    yield {"messageStop": {"stopReason": response["stopReason"]}}
    yield {"metadata": {"usage": response.get("usage")}}


def _cohere_v2(response: _Object) -> Iterable[_Object]:
    message = response["message"]
    if plan := message.get("tool_plan"):
        yield {"type": "tool-plan-delta", "delta": {"message": {"tool_plan": plan}}}
    for part in message.get("content") or ():
        yield {"type": "content-delta", "delta": {"message": {"content": part}}}
    for number, call in enumerate(message.get("tool_calls") or ()):
        yield {"type": "tool-call-start", "index": number, "delta": {"message": {"tool_calls": call}}}
    yield {"type": "message-end", "delta": response}


def _text_generation_inference(response: _Object) -> Iterable[_Object]:
    return [{**response, "token": {"text": response["generated_text"]}}]


def _interaction(response: _Object) -> Iterable[_Object]:
    """Gemini Interactions: whole steps; without steps, the parts of the output."""
    for number, step in enumerate(response.get("steps") or ()):
        yield {"event_type": "step.start", "index": number, "step": step}
        yield {"event_type": "step.stop", "index": number}
    for number, part in enumerate(response.get("outputs") or ()):
        yield {"event_type": "content.delta", "index": number, "delta": part}
    yield {"event_type": "interaction.completed", "interaction": response}


def _workers_ai(response: _Object) -> Iterable[_Object]:
    """Cloudflare Workers AI: the result in Cloudflare's envelope, in its own form or in OpenAI's."""
    result = response["result"]
    return _events(result) if "choices" in result else [{"finish_reason": "stop", **result}]


_SHAPES: tuple[tuple[Callable[[_Object], bool], Callable[[_Object], Iterable[_Object]]], ...] = (
    (lambda response: any("message" in choice for choice in response.get("choices") or ()), _chat),
    (lambda response: isinstance(response.get("output"), list), _responses),
    (lambda response: response.get("object") == "interaction" or "steps" in response, _interaction),
    (lambda response: "success" in response and bool(mapping(response.get("result"))), _workers_ai),
    (lambda response: response.get("type") == "message", _anthropic),
    (lambda response: "message" in mapping(response.get("output")), _converse),
    (lambda response: "finish_reason" in response and "message" in response, _cohere_v2),
    (lambda response: "generated_text" in response and "token" not in response, _text_generation_inference),
)
