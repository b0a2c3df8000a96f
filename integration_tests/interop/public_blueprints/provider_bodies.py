"""What the providers of the public blueprints are asked and respond, where several pages have the same."""

from typing import Any

from integration_tests.interop.provider_dialects.dialect import Way, vector

from tests.providers.recorded_streams import QUESTION, Recorded

MESSAGES = [{"role": "user", "content": QUESTION}]
STREAM = {"stream": True}
STREAM_WITH_USAGE = {"stream": True, "stream_options": {"include_usage": True}}
CANDIDATES = {"candidates": [{"content": {"parts": [{"text": "42"}], "role": "model"}, "finishReason": "STOP"}]}
COHERE_MESSAGE = {"id": "1", "finish_reason": "COMPLETE", "message": {"content": [{"type": "text", "text": "42"}]}}


def completion(model: str) -> dict[str, Any]:
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "model": model,
        "choices": [{"index": 0, "message": {"role": "assistant", "content": "42"}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 9, "completion_tokens": 1, "total_tokens": 10},
    }


def embedded(texts: list[str]) -> dict[str, Any]:
    data = [{"object": "embedding", "index": index, "embedding": vector(text)} for index, text in enumerate(texts)]
    return {"object": "list", "data": data, "model": "m", "usage": {"prompt_tokens": 4, "total_tokens": 4}}


def gemini_stream(path: str) -> str:
    return path.replace(":generateContent", ":streamGenerateContent?alt=sse")


def frames(recorded: str | Recorded, **body: Any) -> Way:
    """A stream in AWS's binary frames."""
    return Way(recorded, "aws", body, _pushed)


def _pushed(path: str) -> str:
    """Where the same call streams."""
    for end, stream in (
        ("/converse", "/converse-stream"),
        ("/invoke", "/invoke-with-response-stream"),
        ("/invocations", "/invocations-response-stream"),
    ):
        if path.endswith(end):
            return path.removesuffix(end) + stream
    raise ValueError(path)
