"""Servers that people run themselves: Ollama, Hugging Face's, MLServer and its like, a plain one."""

from integration_tests.interop.provider_dialects.dialect import QUESTION, Way, bearer, chat, vector, vectors

_MESSAGES = [{"role": "user", "content": QUESTION}]
_TEXTS = ["hello", "wörld!"]
_PROMPT = {"prompt": QUESTION}
_STREAM = {"stream": True}


def _generate_stream(path: str) -> str:
    return f"{path}_stream"


DIALECTS = {
    "ollama-chat": chat(
        "/api/chat",
        {"model": "llama3.2", "messages": _MESSAGES, "stream": False},
        {"model": "llama3.2", "message": {"role": "assistant", "content": "42"}, "done": True},
        Way("ollama chat", "ndjson", _STREAM),
        {"messages": _MESSAGES},
        headers=bearer(),
    ),
    "ollama-generate": chat(
        "/api/generate",
        {"model": "llama3.2", "prompt": QUESTION, "stream": False},
        {"model": "llama3.2", "response": "42", "done": True},
        Way("ollama generate", "ndjson", _STREAM),
        _PROMPT,
        headers=bearer(),
    ),
    "ollama-embedding": vectors(
        "/api/embed",
        [{"model": "nomic-embed-text", "input": _TEXTS}],
        [{"model": "nomic-embed-text", "embeddings": [vector(text) for text in _TEXTS]}],
        _TEXTS,
        headers=bearer(),
    ),
    "tgi-generate": chat(
        "/generate",
        {"inputs": QUESTION, "parameters": {"max_new_tokens": 512, "details": True}},
        {"generated_text": "42", "details": {"finish_reason": "length", "generated_tokens": 1}},
        Way("tgi", body=_STREAM, path=_generate_stream),
        _PROMPT,
        headers=bearer(),
    ),
    "tei-embedding": vectors(
        "/embed", [{"inputs": _TEXTS}], [[vector(text) for text in _TEXTS]], _TEXTS, headers=bearer()
    ),
    "mlserver-infer": chat(
        "/v2/models/text-model/infer",
        {
            "inputs": [
                {
                    "name": "prompt",
                    "shape": [1],
                    "datatype": "BYTES",
                    "data": [QUESTION],
                    "parameters": {"content_type": "str"},
                }
            ],
            "outputs": [{"name": "output"}],
        },
        {
            "model_name": "text-model",
            "outputs": [{"name": "output", "shape": [1], "datatype": "BYTES", "data": ["42"]}],
        },
        Way("mlserver", path=_generate_stream),
        _PROMPT,
        headers=bearer(),
    ),
    "open-inference-generate": chat(
        "/v2/models/text-model/generate",
        {"text_input": QUESTION, "parameters": {"max_tokens": 512}},
        {"text_output": "42", "model_name": "text-model"},
        Way("open inference", path=_generate_stream),
        _PROMPT,
        headers=bearer(),
    ),
    "text-server": chat(
        "/generate_stream",
        {"prompt": QUESTION},
        {"text": "42"},
        Way("cumulative", body=_STREAM),
        _PROMPT,
        headers=bearer(),
    ),
}
