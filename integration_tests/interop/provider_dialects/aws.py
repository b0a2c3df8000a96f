"""Amazon Bedrock and SageMaker: signed requests, responses in binary frames."""

from collections.abc import Mapping
from typing import Any

from integration_tests.interop.provider_dialects.dialect import QUESTION, Dialect, Way, chat, vector, vectors

from tests.providers.recorded_streams import Recorded

CLAUDE = "us.anthropic.claude-sonnet-4-20250514-v1%3A0"
MESSAGES = [{"role": "user", "content": QUESTION}]
PARTS = [{"role": "user", "content": [{"text": QUESTION}]}]


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


def frames(recorded: str | Recorded, **body: Any) -> Way:
    """A stream in AWS's binary frames."""
    return Way(recorded, "aws", body, _pushed)


def bedrock(
    model: str, recorded: str, body: Mapping[str, Any], response: Any, own: Mapping[str, Any] | None
) -> Dialect:
    """A text model behind InvokeModel; streaming is a matter of the path, not of the body."""
    return chat(f"/model/{model}/invoke", body, response, frames(recorded), own, aws="bedrock")


_PROMPT = "<|begin_of_text|><|start_header_id|>user<|end_header_id|>\n\n"
_LLAMA = f"{_PROMPT}{QUESTION}<|eot_id|><|start_header_id|>assistant<|end_header_id|>\n\n"
_MISTRAL = f"<s>[INST] {QUESTION} [/INST]"
_TEXTS = ["hello", "wörld!"]

DIALECTS = {
    "bedrock-converse": chat(
        f"/model/{CLAUDE}/converse",
        {"messages": PARTS, "inferenceConfig": {"maxTokens": 1024}},
        {"output": {"message": {"role": "assistant", "content": [{"text": "42"}]}}, "stopReason": "end_turn"},
        frames("converse"),
        {"messages": PARTS},
        aws="bedrock",
    ),
    "bedrock-invoke-anthropic": bedrock(
        CLAUDE,
        "invoke anthropic",
        {"anthropic_version": "bedrock-2023-05-31", "max_tokens": 1024, "messages": MESSAGES},
        {"type": "message", "content": [{"type": "text", "text": "42"}], "stop_reason": "end_turn"},
        {"messages": MESSAGES},
    ),
    "bedrock-invoke-cohere": bedrock(
        "cohere.command-r-plus-v1%3A0",
        "invoke cohere",
        {"message": QUESTION, "max_tokens": 512},
        {"text": "42", "finish_reason": "COMPLETE"},
        None,
    ),
    "bedrock-invoke-llama": bedrock(
        "us.meta.llama3-2-3b-instruct-v1%3A0",
        "invoke llama",
        {"prompt": _LLAMA, "max_gen_len": 512},
        {"generation": "42", "stop_reason": "stop"},
        {"prompt": _LLAMA},
    ),
    "bedrock-invoke-mistral": bedrock(
        "mistral.mistral-large-2402-v1%3A0",
        "invoke mistral",
        {"prompt": _MISTRAL, "max_tokens": 512},
        {"outputs": [{"text": "42", "stop_reason": "stop"}]},
        {"prompt": _MISTRAL},
    ),
    "bedrock-invoke-nova": bedrock(
        "us.amazon.nova-lite-v1%3A0",
        "invoke nova",
        {"schemaVersion": "messages-v1", "messages": PARTS, "inferenceConfig": {"maxTokens": 512}},
        {"output": {"message": {"role": "assistant", "content": [{"text": "42"}]}}, "stopReason": "end_turn"},
        {"messages": PARTS},
    ),
    "bedrock-invoke-titan": bedrock(
        "amazon.titan-text-express-v1",
        "invoke titan",
        {"inputText": QUESTION, "textGenerationConfig": {"maxTokenCount": 512}},
        {"inputTextTokenCount": 3, "results": [{"outputText": "42", "completionReason": "FINISH"}]},
        None,
    ),
    "bedrock-titan-embedding": vectors(
        "/model/amazon.titan-embed-text-v2%3A0/invoke",
        [{"inputText": text} for text in _TEXTS],
        [{"embedding": vector(text), "inputTextTokenCount": 1} for text in _TEXTS],
        _TEXTS,
        aws="bedrock",
    ),
    "bedrock-cohere-embedding": vectors(
        "/model/cohere.embed-multilingual-v3/invoke",
        [{"texts": _TEXTS, "truncate": "END", "input_type": "search_document"}],
        [{"embeddings": [vector(text) for text in _TEXTS], "id": "1", "response_type": "embeddings_floats"}],
        _TEXTS,
        aws="bedrock",
    ),
    "sagemaker-chat": chat(
        "/endpoints/my-endpoint/invocations",
        {"messages": MESSAGES, "max_tokens": 512},
        {"choices": [{"message": {"role": "assistant", "content": "42"}, "finish_reason": "stop"}]},
        frames("sagemaker tgi", stream=True),
        {"messages": MESSAGES},
        aws="sagemaker",
    ),
    "sagemaker-embedding": vectors(
        "/endpoints/my-endpoint/invocations",
        [_TEXTS],
        [[vector(text) for text in _TEXTS]],
        _TEXTS,
        aws="sagemaker",
    ),
}
