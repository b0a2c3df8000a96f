"""Servers that one runs oneself, by their own interfaces."""

from tests.selection import caller_values as values
from tests.selection.provider_requests.rows import (
    ASKS,
    COUNT,
    FLAG,
    MESSAGES,
    MODEL,
    STREAM,
    TEXT,
    TRUE,
    Place,
    ProviderRequest,
    array,
    members,
    prompt,
    vectors,
)

ROWS = {
    # Ollama streams unless it is told not to, so the whole request says `"stream": false`.
    "ollama-chat": ProviderRequest(
        "https://docs.ollama.com/api/chat",
        members("model messages stream", model=TEXT, messages=MESSAGES, stream=FLAG), ASKS, MODEL, STREAM,
    ),
    "ollama-generate": prompt(
        "https://docs.ollama.com/api/generate",
        members("model prompt stream", model=TEXT, prompt=TEXT, stream=FLAG), takes=MODEL, streams=STREAM,
    ),
    "tgi-generate": prompt(
        "https://huggingface.github.io/text-generation-inference/",
        members("inputs", inputs=TEXT, parameters=members("", max_new_tokens=COUNT, details=FLAG), stream=TRUE),
        ("inputs",),
        takes={"max_new_tokens": Place(("parameters", "max_new_tokens"), values.COUNTS)},
        streams=STREAM,
    ),
    "open-inference-generate": prompt(
        "https://github.com/triton-inference-server/server/blob/main/docs/protocol/extension_generate.md",
        members("text_input", text_input=TEXT, parameters={"type": "object"}),
        ("text_input",),
        takes={"max_tokens": Place(("parameters", "max_tokens"), values.COUNTS)},
    ),
    "mlserver-infer": prompt(
        "https://github.com/kserve/open-inference-protocol/blob/main/specification/protocol/inference_rest.md",
        members(
            "inputs",
            inputs=array(members(
                "name shape datatype data", name=TEXT, shape={"const": [1]}, datatype={"const": "BYTES"},
                data=array(TEXT), parameters={"type": "object"},
            )),
            outputs=array(members("name", name=TEXT)),
        ),
        ("inputs", 0, "data", 0),
    ),
    "text-server": prompt(
        "the server's own, as the blueprint describes it", members("prompt", prompt=TEXT, stream=TRUE), streams=STREAM
    ),
    "tei-embedding": vectors(
        "https://huggingface.github.io/text-embeddings-inference/", members("inputs", inputs=array(TEXT)), ("inputs",)
    ),
}  # fmt: skip
