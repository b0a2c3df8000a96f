"""The engine: generates in the event loop, gives deltas or cumulative texts, aborts what nobody reads."""

import asyncio
from collections.abc import AsyncGenerator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from jinja2 import Environment
from words import END, decode, encode, next_token

from vllm.engine.arg_utils import AsyncEngineArgs
from vllm.exceptions import VLLMValidationError
from vllm.sampling_params import RequestOutputKind, SamplingParams


class Tokenizer:
    def __init__(self, folder: str) -> None:
        self._template = Environment(autoescape=False).from_string((Path(folder) / "chat_template.jinja").read_text())

    def apply_chat_template(
        self, conversation: list[dict[str, str]], *, add_generation_prompt: bool, tokenize: bool, return_dict: bool
    ) -> list[int]:
        assert tokenize
        assert not return_dict
        text = self._template.render(messages=conversation, add_generation_prompt=add_generation_prompt)
        tokens: list[int] = encode(text)
        return tokens


class AsyncLLM:
    def __init__(self, arguments: AsyncEngineArgs) -> None:
        self._arguments = arguments
        self.steps = 0
        self.aborted: list[str] = []
        self.is_shut_down = False

    @classmethod
    def from_engine_args(cls, engine_args: AsyncEngineArgs) -> "AsyncLLM":
        return cls(engine_args)

    def get_tokenizer(self) -> Tokenizer:
        return Tokenizer(self._arguments.model)

    def shutdown(self) -> None:
        self.is_shut_down = True

    async def generate(
        self, prompt: dict[str, Any], sampling_params: SamplingParams, request_id: str
    ) -> AsyncGenerator[Any, None]:
        begin = prompt["prompt_token_ids"] if "prompt_token_ids" in prompt else encode(prompt["prompt"])
        if len(begin) >= (self._arguments.max_model_len or 256):
            raise VLLMValidationError(f"The prompt (length {len(begin)}) is longer than the maximum model length")
        tokens, text, given, given_tokens = list(begin), "", 0, 0
        reason = None
        try:
            while reason is None:
                await asyncio.sleep(0)
                self.steps += 1
                tokens.append(next_token(tokens))
                new = tokens[len(begin) :]
                text = decode(new)
                stops = [text.find(stop) for stop in sampling_params.stop or () if stop in text]
                if stops or tokens[-1] == END:
                    reason, text = "stop", text[: min(stops)] if stops else text
                elif len(new) == sampling_params.max_tokens:
                    reason = "length"
                # What may be the beginning of a stop text is held back, as by vLLM's detokenizer.
                shown = text if reason else text[: len(text) - max(map(len, sampling_params.stop or [" "])) + 1]
                if sampling_params.output_kind is RequestOutputKind.DELTA:
                    delta, ids = shown[given:], new[given_tokens:]
                    given, given_tokens = max(given, len(shown)), len(new)
                else:
                    delta, ids = shown, new
                output = SimpleNamespace(text=delta, token_ids=ids, finish_reason=reason)
                yield SimpleNamespace(prompt_token_ids=list(begin), outputs=[output], finished=reason is not None)
        except (asyncio.CancelledError, GeneratorExit):
            self.aborted.append(request_id)
            raise
