"""Models that generate text with vLLM's AsyncLLM, its engine of version 1 (read: vLLM 0.33).

`parameters.extra`: `model` (or `parameters.uri`), `llm_parameters` (for requests that do not say), and any argument of
vLLM's AsyncEngineArgs, such as `max_model_len`, `dtype`, `tensor_parallel_size`, `gpu_memory_utilization`.
"""

import inspect
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any
from uuid import uuid4

from vllm import SamplingParams
from vllm.engine.arg_utils import AsyncEngineArgs
from vllm.sampling_params import RequestOutputKind
from vllm.v1.engine.async_llm import AsyncLLM

from opensearch_ml_stream.runtimes.text_models import (
    DEFAULT_MAX_TOKENS,
    InferenceError,
    Piece,
    TextModel,
    TextRequest,
)

# Of 0.33; its errors of a request were ValueErrors in versions before.
_REQUEST_ERRORS = ("VLLMClientError", "ValueError")


class VLLMRuntime(TextModel):
    """A model in vLLM's engine, which runs in a process of its own and batches all requests continuously."""

    takes = frozenset(
        {"temperature", "top_p", "top_k", "min_p", "seed", "stop", "max_tokens", "min_tokens", "presence_penalty",
         "frequency_penalty", "repetition_penalty"}
    )  # fmt: skip

    async def load(self) -> bool:
        """Start the engine."""
        arguments = AsyncEngineArgs(model=self.engine_settings.model, **self.engine_settings.arguments)
        self._engine = AsyncLLM.from_engine_args(arguments)
        tokenizer = self._engine.get_tokenizer()
        self._tokenizer: Any = await tokenizer if inspect.isawaitable(tokenizer) else tokenizer
        return True

    async def unload(self) -> bool:
        """End the engine's process."""
        self._engine.shutdown()
        return True

    async def generate(self, request: TextRequest) -> AsyncGenerator[Piece, None]:
        """Generate text; closing the generator aborts the request in the engine, which does so itself."""
        prompt_tokens = completion_tokens = 0
        try:
            outputs = self._engine.generate(self._prompt(request), _sampling(request), str(uuid4()))
            async with aclosing(outputs):
                async for output in outputs:
                    prompt_tokens = len(output.prompt_token_ids or ()) or prompt_tokens
                    completion = output.outputs[0]
                    completion_tokens += len(completion.token_ids)
                    reason = completion.finish_reason or ("stop" if output.finished else "")
                    yield Piece(completion.text, reason, prompt_tokens, completion_tokens)
        except Exception as error:
            if {base.__name__ for base in type(error).__mro__} & set(_REQUEST_ERRORS):
                raise InferenceError(f"vLLM refused the request: {error}") from error
            raise

    def _prompt(self, request: TextRequest) -> dict[str, Any]:
        """Return the prompt as the engine takes it: a chat as the token ids that the model's template makes of it."""
        if not request.messages:
            return {"prompt": request.prompt}
        tokens = self._tokenizer.apply_chat_template(
            list(request.messages), add_generation_prompt=True, tokenize=True, return_dict=False
        )
        return {"prompt_token_ids": tokens}


def _sampling(request: TextRequest) -> SamplingParams:
    given: dict[str, Any] = {"max_tokens": DEFAULT_MAX_TOKENS, **request.parameters}
    return SamplingParams(**given, output_kind=RequestOutputKind.DELTA)
