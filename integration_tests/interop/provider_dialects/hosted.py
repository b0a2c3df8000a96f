"""Anthropic, Google and Cohere."""

from integration_tests.interop.provider_dialects.dialect import (
    QUESTION,
    SECRET,
    Dialect,
    Way,
    Whole,
    bearer,
    chat,
    vector,
    vectors,
)

MESSAGES = [{"role": "user", "content": QUESTION}]
CONTENTS = [{"role": "user", "parts": [{"text": QUESTION}]}]
TEXTS = ["hello", "wörld!"]
COHERE = {**bearer(), "Request-Source": "unspecified:opensearch"}
MESSAGE = {"type": "message", "content": [{"type": "text", "text": "42"}], "stop_reason": "end_turn"}
CANDIDATES = {"candidates": [{"content": {"parts": [{"text": "42"}], "role": "model"}, "finishReason": "STOP"}]}
COHERE_MESSAGE = {"id": "1", "finish_reason": "COMPLETE", "message": {"content": [{"type": "text", "text": "42"}]}}


def gemini_stream(path: str) -> str:
    return path.replace(":generateContent", ":streamGenerateContent?alt=sse")


_VERTEX = "/v1/projects/my-project/locations"
_CLAUDE = f"{_VERTEX}/us-east5/publishers/anthropic/models/claude-sonnet-4-5@20250929"
_GEMINI = f"{_VERTEX}/us-central1/publishers/google/models/gemini-2.5-flash"
_STREAM = {"stream": True}

DIALECTS = {
    "anthropic-messages": chat(
        "/v1/messages",
        {"model": "claude-sonnet-4-5", "max_tokens": 1024, "messages": MESSAGES},
        MESSAGE,
        Way("anthropic", body=_STREAM),
        {"messages": MESSAGES},
        headers={"x-api-key": SECRET, "anthropic-version": "2023-06-01"},
    ),
    "vertex-anthropic-messages": chat(
        f"{_CLAUDE}:rawPredict",
        {"anthropic_version": "vertex-2023-10-16", "max_tokens": 1024, "messages": MESSAGES},
        MESSAGE,
        Way("anthropic", body=_STREAM, path=lambda path: path.replace(":rawPredict", ":streamRawPredict")),
        {"messages": MESSAGES},
        headers=bearer(),
    ),
    "gemini-chat": chat(
        "/v1beta/models/gemini-2.5-flash:generateContent",
        {"contents": CONTENTS},
        CANDIDATES,
        Way("gemini", path=gemini_stream),
        {"contents": CONTENTS},
        headers={"x-goog-api-key": SECRET},
    ),
    "vertex-gemini-chat": chat(
        f"{_GEMINI}:generateContent",
        {"contents": CONTENTS},
        CANDIDATES,
        Way("gemini", path=gemini_stream),
        {"contents": CONTENTS},
        headers=bearer(),
    ),
    "cohere-chat": chat(
        "/v2/chat",
        {"model": "command-a-03-2025", "messages": MESSAGES},
        COHERE_MESSAGE,
        Way("cohere v2", body=_STREAM),
        {"messages": MESSAGES},
        headers=COHERE,
    ),
    "cohere-chat-v1": chat(
        "/v1/chat",
        {"model": "command-r-08-2024", "message": QUESTION},
        {"text": "42", "finish_reason": "COMPLETE"},
        Way("cohere v1", "ndjson", _STREAM),
        {"message": QUESTION},
        headers=COHERE,
    ),
    "cohere-embedding": vectors(
        "/v1/embed",
        [{"model": "embed-multilingual-v3.0", "texts": TEXTS, "truncate": "END", "input_type": "search_document"}],
        [{"embeddings": [vector(text) for text in TEXTS], "response_type": "embeddings_floats"}],
        TEXTS,
        headers=COHERE,
    ),
    "cohere-rerank": Dialect(
        (
            Whole(
                "/v1/rerank",
                {"model": "rerank-v3.5", "query": QUESTION, "documents": TEXTS, "top_n": 2},
                {"results": [{"index": 1, "relevance_score": 0.9}, {"index": 0, "relevance_score": 0.25}]},
            ),
        ),
        {"query_text": QUESTION, "text_docs": TEXTS},
        [
            [
                {"name": "similarity", "data_type": "FLOAT32", "shape": [1], "data": [0.25]},
                {"name": "similarity", "data_type": "FLOAT32", "shape": [1], "data": [0.9]},
            ]
        ],
        headers=COHERE,
    ),
}
