"""What the runtime for llama.cpp uses of llama-cpp-python."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from jinja2 import Environment
from words import END, decode, encode, next_token

_TEMPLATE = "{% for message in messages %}{{ message.role }} {{ message.content }} {% endfor %}assistant"


class Llama:
    def __init__(self, model_path: str, *, n_ctx: int = 512, verbose: bool = True) -> None:
        if not Path(model_path).is_file():
            raise ValueError(f"Model path does not exist: {model_path}")
        self._n_ctx = n_ctx
        self.is_closed = False

    def eval(self, tokens: list[int]) -> None:
        """Do a step of the model."""

    def close(self) -> None:
        self.is_closed = True

    def generate(self, tokens: list[int], top_k: int = 40, **sampling: Any) -> Iterator[int]:
        tokens = list(tokens)
        while True:
            self.eval(tokens)
            tokens.append(next_token(tokens))
            yield tokens[-1]

    def create_chat_completion(
        self, messages: list[dict[str, str]], *, stream: bool, max_tokens: int | None = None, **more: Any
    ) -> Iterator[dict[str, Any]]:
        prompt = Environment(autoescape=False).from_string(_TEMPLATE).render(messages=messages)
        is_first = True
        for chunk in self.create_completion(prompt, stream=stream, max_tokens=max_tokens, **more):
            choice = chunk["choices"][0]
            if is_first:
                yield {"choices": [{"index": 0, "delta": {"role": "assistant"}, "finish_reason": None}]}
                is_first = False
            delta = {} if choice["finish_reason"] else {"content": choice["text"]}
            yield {"choices": [{"index": 0, "delta": delta, "finish_reason": choice["finish_reason"]}]}

    def create_completion(
        self, prompt: str, *, stream: bool, max_tokens: int | None = 16, stop: list[str] | None = None, **sampling: Any
    ) -> Iterator[dict[str, Any]]:
        known = {"temperature", "top_p", "top_k", "min_p", "seed", "presence_penalty", "frequency_penalty"}
        assert stream
        assert set(sampling) <= {*known, "repeat_penalty"}
        begin = encode(prompt)
        if len(begin) >= self._n_ctx:
            raise ValueError(f"Requested tokens ({len(begin)}) exceed context window of {self._n_ctx}")
        return self._chunks(begin, max_tokens, stop or [], sampling)

    def _chunks(
        self, begin: list[int], max_tokens: int | None, stops: list[str], sampling: dict[str, Any]
    ) -> Iterator[dict[str, Any]]:
        new: list[int] = []
        shown, reason = 0, ""
        for token in self.generate(begin, **sampling):
            if token == END:
                reason = "stop"
                break
            new.append(token)
            text = " " + decode(new)
            if found := [text.find(stop) for stop in stops if stop in text]:
                reason, text = "stop", text[: min(found)]
            elif len(new) == max_tokens or len(begin) + len(new) >= self._n_ctx:
                reason = "length"
            if reason:
                yield _chunk(text[shown:], None)
                break
            safe = max(shown, len(text) - max(map(len, stops or [" "])) + 1)
            if safe > shown:
                yield _chunk(text[shown:safe], None)
                shown = safe
        yield _chunk("", reason)


def _chunk(text: str, reason: str | None) -> dict[str, Any]:
    return {"choices": [{"index": 0, "text": text, "logprobs": None, "finish_reason": reason}]}
