"""Models that generate text with llama.cpp, by llama-cpp-python (read: 0.3.36).

`parameters.extra`: `model` (or `parameters.uri`), the path of a GGUF file, `llm_parameters` (for requests that do not
say), and any argument of llama_cpp.Llama, such as `n_ctx` (4096), `n_gpu_layers`, `n_threads`, `chat_format`.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

from llama_cpp import Llama

from opensearch_ml_stream.runtimes.text_models import (
    DEFAULT_MAX_TOKENS,
    InferenceError,
    Piece,
    TextModel,
    TextRequest,
)
from opensearch_ml_stream.runtimes.threads import in_thread

_DEFAULTS = {"n_ctx": 4096, "verbose": False}
_ARGUMENTS = {"repetition_penalty": "repeat_penalty"}


class LlamaCppRuntime(TextModel):
    """A model in a GGUF file. One text is generated at a time; several processes generate several."""

    takes = frozenset(
        {"temperature", "top_p", "top_k", "min_p", "seed", "stop", "max_tokens", "presence_penalty",
         "frequency_penalty", "repetition_penalty"}
    )  # fmt: skip

    async def load(self) -> bool:
        """Load the file."""
        arguments = {**_DEFAULTS, **self.engine_settings.arguments}
        self._thread = ThreadPoolExecutor(1, "generate")  # a Llama has one state, and no lock
        self._llama: Any = await asyncio.to_thread(partial(Llama, self.engine_settings.model, **arguments))
        self._tokens = CountedTokens(self._llama.generate)
        self._llama.generate = self._tokens.generate  # both of its ways to complete call it
        return True

    async def unload(self) -> bool:
        """Start no further generation; free the model once the last has ended."""
        self._thread.submit(self._llama.close)
        self._thread.shutdown(wait=False)
        return True

    def generate(self, request: TextRequest) -> AsyncGenerator[Piece, None]:
        """Generate text in the thread, when those before have ended."""
        return in_thread(partial(self._generate, request), self._thread)

    def _generate(self, request: TextRequest, put: Callable[[Piece], None]) -> None:
        given = {"max_tokens": DEFAULT_MAX_TOKENS, **request.parameters}
        arguments = {_ARGUMENTS.get(name, name): value for name, value in given.items()}
        self._tokens.begin(lambda: put(Piece("")))
        finish_reason = "stop"
        try:
            for text, reason in self._chunks(request, arguments):
                put(Piece(text))
                finish_reason = reason or finish_reason
        except ValueError as error:  # a prompt that is longer than the context
            raise InferenceError(str(error)) from error
        put(Piece("", finish_reason, self._tokens.prompt, self._tokens.completion))

    def _chunks(self, request: TextRequest, arguments: dict[str, Any]) -> Iterator[tuple[str, str]]:
        """Yield texts and, with the last, the finish reason."""
        if request.messages:
            chunks = self._llama.create_chat_completion(list(request.messages), stream=True, **arguments)
        else:
            chunks = self._llama.create_completion(request.prompt, stream=True, **arguments)
        for chunk in chunks:
            choice = chunk["choices"][0]
            text = choice["delta"].get("content") if request.messages else choice["text"]
            yield text or "", choice["finish_reason"] or ""


class CountedTokens:
    """Counts the tokens of one generation, of which the chunks say nothing."""

    def __init__(self, generate: Callable[..., Iterator[int]]) -> None:
        self._generate = generate
        self._on_token: Callable[[], None] = lambda: None
        self.prompt = self.completion = 0

    def begin(self, on_token: Callable[[], None]) -> None:
        """Count anew, and call this at each token: chunks may hold several, and what it raises ends the generation."""
        self._on_token = on_token
        self.prompt = self.completion = 0

    def generate(self, tokens: Any, *arguments: Any, **named: Any) -> Iterator[int]:
        """Do what Llama.generate does."""
        self.prompt = len(tokens)
        for token in self._generate(tokens, *arguments, **named):
            self.completion += 1
            self._on_token()
            yield token
