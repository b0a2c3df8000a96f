"""The recorded provider streams that the tests replay, each with what it says.

Those of `transcripts/` have the providers' own bytes; event streams are written here, frame by frame.
"""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from opensearch_ml_stream.connectors.chunks import Chunk, Ending, to_chunk_list
from opensearch_ml_stream.connectors.decoding.contract import Outcome
from opensearch_ml_stream.connectors.decoding.decoder import Decoder
from opensearch_ml_stream.connectors.decoding.fast_path import FastPathDecoder
from opensearch_ml_stream.connectors.known_providers import SHIPPED
from tests.providers.eventstream_frames import METRICS, event, invoke_chunk

_FOLDER = Path(__file__).parent / "transcripts"


@dataclass(frozen=True, slots=True)
class Recorded:
    """`cut_at`: what ends an event, for truncation; None where the end of the body is a good end anywhere."""

    name: str
    preset: str
    data: bytes
    text: str
    finish: str
    native: str | None
    reasoning: str = ""
    tools: list[dict[str, Any]] = field(default_factory=list)
    usage: dict[str, int] | None = None
    model: str | None = None
    good_from: int | None = None  # from which event on the body may end; None: only after the last

    def decoder(self) -> Decoder | FastPathDecoder:
        return SHIPPED.presets[self.preset].decoder()


def play(decoder: Decoder | FastPathDecoder, pieces: list[bytes]) -> tuple[list[Chunk], Outcome]:
    """All the chunks and the outcome of a body that comes in these pieces."""
    chunks: list[Chunk] = []
    for piece in pieces:
        chunks += to_chunk_list(decoder.feed(piece))
    chunks += to_chunk_list(decoder.close())
    assert decoder.outcome is not None
    return chunks, decoder.outcome


def join_chunks(chunks: list[Chunk]) -> tuple[str, str, list[dict[str, Any]]]:
    """The whole text, the whole reasoning, and the tool calls put together."""
    calls: dict[int, dict[str, Any]] = {}
    for call in (call for chunk in chunks for call in chunk.tool_calls):
        known = calls.setdefault(call.index, {"id": None, "name": None, "arguments": ""})
        known["id"] = known["id"] or call.id
        known["name"] = known["name"] or call.name
        known["arguments"] += call.arguments
    text = "".join(chunk.text for chunk in chunks)
    return text, "".join(chunk.reasoning for chunk in chunks), [calls[index] for index in sorted(calls)]


def ending_fields(outcome: Outcome) -> tuple[str, str | None, dict[str, int] | None, str | None]:
    assert isinstance(outcome, Ending), outcome
    usage = None if outcome.usage is None else outcome.usage.as_dict()
    return outcome.finish_reason, outcome.native_finish_reason, usage, outcome.model


def outcome_fields(outcome: Outcome) -> tuple[object, ...]:
    """An outcome as a value that compares: errors have no equality of their own."""
    if isinstance(outcome, Ending):
        return ending_fields(outcome)
    return type(outcome), outcome.reason, outcome.status, outcome.provider_status


def _file(name: str) -> bytes:
    return (_FOLDER / name).read_bytes()


def tool(id: str | None, name: str, arguments: str) -> dict[str, Any]:
    return {"id": id, "name": name, "arguments": arguments}


def tokens(input: int, output: int, total: int | None = None, **more: int) -> dict[str, int]:
    return {
        "input_tokens": input,
        "output_tokens": output,
        "total_tokens": input + output if total is None else total,
        **more,
    }


_CHAT = "openai/v1/chat/completions"
_ANTHROPIC = "anthropic/v1/messages"
_CONVERSE = b"".join([
    event("messageStart", {"role": "assistant", "p": "abc"}),
    event("contentBlockDelta", {"contentBlockIndex": 0, "delta": {"reasoningContent": {"text": "Er"}}}),
    event("contentBlockDelta", {"contentBlockIndex": 0, "delta": {"reasoningContent": {"signature": "x"}}}),
    event("contentBlockStop", {"contentBlockIndex": 0}),
    event("contentBlockDelta", {"contentBlockIndex": 1, "delta": {"text": "H\u00e9"}, "p": "abcd"}),
    event("contentBlockDelta", {"contentBlockIndex": 1, "delta": {"text": "llo"}}),
    event("contentBlockStart", {"contentBlockIndex": 2, "start": {"toolUse": {"toolUseId": "t1", "name": "f"}}}),
    event("contentBlockStart", {"contentBlockIndex": 3, "start": {"toolUse": {"toolUseId": "t2", "name": "g"}}}),
    event("contentBlockDelta", {"contentBlockIndex": 2, "delta": {"toolUse": {"input": '{"a":'}}}),
    event("contentBlockDelta", {"contentBlockIndex": 3, "delta": {"toolUse": {"input": "{}"}}}),
    event("contentBlockDelta", {"contentBlockIndex": 2, "delta": {"toolUse": {"input": "1}"}}}),
    event("messageStop", {"stopReason": "tool_use"}),
    event("metadata", {
        "usage": {"inputTokens": 3, "outputTokens": 4, "totalTokens": 7, "cacheReadInputTokens": 2},
        "metrics": {"latencyMs": 5},
    }),
])  # fmt: skip
_INVOKE_ANTHROPIC = b"".join([
    invoke_chunk({"type": "message_start", "message": {"model": "claude", "usage": {"input_tokens": 11}}}),
    invoke_chunk({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}),
    invoke_chunk({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Hi"}}),
    invoke_chunk({"type": "message_delta", "delta": {"stop_reason": "max_tokens"}, "usage": {"output_tokens": 5}}),
    invoke_chunk({"type": "message_stop", **METRICS}),
])  # fmt: skip
_INVOKE_TITAN = b"".join([
    invoke_chunk({"outputText": "One", "index": 0, "completionReason": None, "inputTextTokenCount": 3}),
    invoke_chunk({"outputText": " two", "completionReason": "FINISH", "totalOutputTextTokenCount": 2, **METRICS}),
])  # fmt: skip
_INVOKE_LLAMA = b"".join([
    invoke_chunk({"generation": "a", "prompt_token_count": 9, "generation_token_count": 1, "stop_reason": None}),
    invoke_chunk({"generation": "b", "prompt_token_count": None, "generation_token_count": 2, "stop_reason": None}),
    invoke_chunk({"generation": "", "generation_token_count": 3, "stop_reason": "length", **METRICS}),
])  # fmt: skip
_INVOKE_MISTRAL = b"".join([
    invoke_chunk({"outputs": [{"text": "x", "stop_reason": None}]}),
    invoke_chunk({"outputs": [{"text": "y", "stop_reason": "stop"}], **METRICS}),
])  # fmt: skip
_INVOKE_COHERE = b"".join([
    invoke_chunk({"event_type": "stream-start", "is_finished": False}),
    invoke_chunk({"event_type": "text-generation", "text": "q", "is_finished": False}),
    invoke_chunk({"event_type": "stream-end", "finish_reason": "COMPLETE", "is_finished": True, **METRICS}),
])  # fmt: skip
_INVOKE_COMMAND = b"".join([
    invoke_chunk({"text": "r", "is_finished": False}),
    invoke_chunk({"text": "", "is_finished": True, "finish_reason": "MAX_TOKENS", **METRICS}),
])  # fmt: skip
_INVOKE_NOVA = b"".join([
    invoke_chunk({"messageStart": {"role": "assistant"}}),
    invoke_chunk({"contentBlockDelta": {"delta": {"text": "no"}, "contentBlockIndex": 0}}),
    invoke_chunk({"contentBlockDelta": {"delta": {"text": "va"}, "contentBlockIndex": 0}}),
    invoke_chunk({"messageStop": {"stopReason": "end_turn"}}),
    invoke_chunk({"metadata": {"usage": {"inputTokens": 1, "outputTokens": 2}, "metrics": {}}, **METRICS}),
])  # fmt: skip
_INVOKE_OPENAI = b"".join([
    invoke_chunk({"model": "gpt-oss", "choices": [{"index": 0, "delta": {"content": "os"}, "finish_reason": None}]}),
    invoke_chunk({"model": "gpt-oss", "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}], **METRICS}),
])  # fmt: skip
_SAGEMAKER_TGI = b"".join(
    event("PayloadPart", part) for part in (_file("tgi.sse")[:50], _file("tgi.sse")[50:333], _file("tgi.sse")[333:])
)
_SAGEMAKER_NDJSON = b"".join([
    event("PayloadPart", b'{"token": {"id": 1, "text": "dj", "log_prob": -0.1}}\n{"token": {"id": 2, "te'),
    event("PayloadPart", b'xt": "l"}, "details": {"finish_reason": "length", "generated_tokens": 2}, '),
    event("PayloadPart", b'"generated_text": "djl"}\n'),
])  # fmt: skip
_SAGEMAKER_PLAIN = b"".join([
    event("PayloadPart", "pl\u00e4".encode()[:3]),
    event("PayloadPart", "pl\u00e4".encode()[3:]),
    event("PayloadPart", b"in text"),
])  # fmt: skip

RECORDED = (
    Recorded("openai chat", _CHAT, _file("openai_chat.sse"), "Grüße 世界 😀\u2028x", "stop", "stop",
             usage=tokens(9, 12, cached_tokens=4, reasoning_tokens=2), model="gpt-4o-mini",
             good_from=5),
    Recorded("openai tool calls", _CHAT, _file("openai_tools.sse"), "", "tool_calls", "tool_calls",
             tools=[tool("call_a", "weather", '{"city":"Ulm"}'), tool("call_b", "time", "{}")], model="gpt-4o",
             good_from=4),
    Recorded("deepseek", "deepseek/v1/chat/completions", _file("deepseek.sse"), "42", "error",
             "insufficient_system_resource", reasoning="Let me think", usage=tokens(5, 3, cached_tokens=5),
             model="deepseek-reasoner",
             good_from=4),
    Recorded("mistral", "mistral/v1/chat/completions", _file("mistral.sse"), "Yes.", "length", "model_length",
             reasoning="hm", usage=tokens(4, 3), model="magistral",
             good_from=4),
    Recorded("azure", "azure/openai/chat/completions", _file("azure.sse"), "Hi", "content_filter", "content_filter",
             model="gpt-4o-2024-08-06",
             good_from=5),
    Recorded("vllm", "vllm/v1/chat/completions", _file("vllm.sse"), "ok", "stop", "stop", reasoning="so",
             usage=tokens(3, 1), model="q",
             good_from=2),
    Recorded("openrouter", "openrouter/v1/chat/completions", _file("openrouter.sse"), "A", "stop", "stop",
             model="x/y",
             good_from=2),
    Recorded("openai completions", "openai/v1/completions", _file("openai_completions.sse"), "Once upon", "length",
             "length", usage=tokens(1, 2), model="davinci",
             good_from=2),
    Recorded("openai responses", "openai/v1/responses", _file("openai_responses.sse"), "Hello", "tool_calls",
             "completed", reasoning="Thinking", tools=[tool("call_1", "look", '{"a":1}')],
             usage=tokens(10, 20, cached_tokens=1, reasoning_tokens=5), model="gpt-5-mini"),
    Recorded("anthropic", _ANTHROPIC, _file("anthropic.sse"), "Olé !", "tool_calls", "tool_use", reasoning="Hmm",
             tools=[tool("toolu_1", "get", '{"q":2}'), tool("toolu_2", "put", "{}")],
             usage=tokens(32, 15, cached_tokens=7), model="claude-sonnet-4-5",
             good_from=21),
    Recorded("gemini", "gemini/v1beta/generatecontent", _file("gemini.sse"), "One two", "tool_calls", "STOP",
             reasoning="Planning", tools=[tool(None, "f", '{"b":[1,2]}'), tool(None, "g", "{}")],
             usage=tokens(8, 7, 15, cached_tokens=1, reasoning_tokens=3), model="gemini-2.5-flash"),
    Recorded("gemini array", "gemini/v1beta/generatecontent/json-array", _file("gemini.json"),
             'brackets ] } " \\ [ { énd', "length", "MAX_TOKENS", usage=tokens(2, 3), model="gemini-2.5-flash"),
    Recorded("cohere v2", "cohere/v2/chat", _file("cohere_v2.sse"), "Bonjour", "stop", "COMPLETE",
             reasoning="I will search.mm", tools=[tool("s0", "search", '{"q":1}')], usage=tokens(70, 2)),
    Recorded("cohere v1", "cohere/v1/chat", _file("cohere_v1.ndjson"), "Salut", "length", "MAX_TOKENS",
             usage=tokens(6, 2)),
    Recorded("ollama chat", "ollama/api/chat", _file("ollama_chat.ndjson"), "naïve", "tool_calls", "stop",
             reasoning="well", tools=[tool(None, "f", '{"x":1}')], usage=tokens(26, 3), model="llama3.2"),
    Recorded("ollama generate", "ollama/api/generate", _file("ollama_generate.ndjson"), "AB", "length", "length",
             usage=tokens(1, 2), model="llama3.2"),
    Recorded("tgi", "huggingface/generate_stream", _file("tgi.sse"), "Deep sea", "stop", "eos_token",
             usage=tokens(4, 3)),
    Recorded("mlserver", "v2/models/infer_stream", _file("mlserver.sse"), "What is", "stop", None,
             model="text-model", good_from=0),
    Recorded("open inference", "v2/models/generate_stream", _file("oip.sse"), "Paris", "length", "length", model="m",
             good_from=0),
    Recorded("cumulative", "text/cumulative", _file("cumulative.sse"), "The cat 猫", "stop", None),
    Recorded("converse", "bedrock/converse", _CONVERSE, "Héllo", "tool_calls", "tool_use", reasoning="Er",
             tools=[tool("t1", "f", '{"a":1}'), tool("t2", "g", "{}")], usage=tokens(5, 4, cached_tokens=2),
             good_from=12),
    Recorded("invoke anthropic", "bedrock/invoke", _INVOKE_ANTHROPIC, "Hi", "length", "max_tokens",
             usage=tokens(11, 5), model="claude",
             good_from=4),
    Recorded("invoke titan", "bedrock/invoke", _INVOKE_TITAN, "One two", "stop", "FINISH", usage=tokens(3, 2)),
    Recorded("invoke llama", "bedrock/invoke", _INVOKE_LLAMA, "ab", "length", "length", usage=tokens(9, 3)),
    Recorded("invoke mistral", "bedrock/invoke", _INVOKE_MISTRAL, "xy", "stop", "stop", usage=tokens(11, 5)),
    Recorded("invoke cohere", "bedrock/invoke", _INVOKE_COHERE, "q", "stop", "COMPLETE", usage=tokens(11, 5)),
    Recorded("invoke command", "bedrock/invoke", _INVOKE_COMMAND, "r", "length", "MAX_TOKENS", usage=tokens(11, 5)),
    Recorded("invoke nova", "bedrock/invoke", _INVOKE_NOVA, "nova", "stop", "end_turn", usage=tokens(1, 2),
             good_from=4),
    Recorded("invoke openai", "bedrock/invoke", _INVOKE_OPENAI, "os", "stop", "stop", usage=tokens(11, 5),
             model="gpt-oss"),
    Recorded("sagemaker tgi", "sagemaker/invocations", _SAGEMAKER_TGI, "Deep sea", "stop", "eos_token",
             usage=tokens(4, 3)),
    Recorded("sagemaker ndjson", "sagemaker/invocations", _SAGEMAKER_NDJSON, "djl", "length", "length"),
    Recorded("sagemaker plain", "sagemaker/invocations", _SAGEMAKER_PLAIN, "pl\u00e4in text", "stop", None,
             good_from=2),
)  # fmt: skip
