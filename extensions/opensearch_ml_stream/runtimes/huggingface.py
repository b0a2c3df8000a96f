"""Models that generate text with Hugging Face's transformers (read: 5.23; torch 2.15).

`parameters.extra`: `model` (or MLServer's `pretrained_model`, or `parameters.uri`), `pretrained_tokenizer`, `device`
(auto, cpu, cuda, a number), `dtype`, `load_kwargs` (arguments of `from_pretrained`), `concurrency` (generations at
once, 4), `llm_parameters` (for requests that do not say).
"""

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import torch
from jinja2.exceptions import TemplateError
from transformers import (
    AutoModelForCausalLM,
    AutoTokenizer,
    LogitsProcessorList,
    MinPLogitsWarper,
    StoppingCriteriaList,
    TemperatureLogitsWarper,
    TopKLogitsWarper,
    TopPLogitsWarper,
)
from transformers.utils.logging import disable_progress_bar

from opensearch_ml_stream.runtimes.text_models import (
    DEFAULT_MAX_TOKENS,
    InferenceError,
    Piece,
    TextModel,
    TextRequest,
)
from opensearch_ml_stream.runtimes.threads import in_thread

_TASK = "text-generation"
_CONCURRENCY = 4
_ARGUMENTS = {"max_tokens": "max_new_tokens", "min_tokens": "min_new_tokens"}
_SAMPLING = ("temperature", "top_p", "top_k", "min_p")
_PENALTIES = ("presence_penalty", "frequency_penalty")
_WARPERS: Mapping[str, Callable[[Any], Callable[..., Any]]] = {
    "temperature": TemperatureLogitsWarper,
    "top_k": TopKLogitsWarper,
    "top_p": TopPLogitsWarper,
    "min_p": MinPLogitsWarper,
}
_NO_WARPING: Mapping[str, tuple[Any, ...]] = {
    "temperature": (None, 1), "top_k": (0,), "top_p": (None, 1), "min_p": (None, 0),
}  # fmt: skip
_TOP_K = 50  # transformers' own default
_UNDECODED = "\ufffd"
_MOST_UNDECODED = 16  # tokens of which one character may consist; what is longer is no text


class HuggingFaceRuntime(TextModel):
    """A causal language model of transformers; its generations run in threads."""

    takes = frozenset({*_SAMPLING, *_PENALTIES, "max_tokens", "min_tokens", "repetition_penalty", "seed", "stop"})

    async def load(self) -> bool:
        """Load model and tokenizer; ValueError for a task that is not text generation."""
        arguments = self.engine_settings.arguments
        if (task := arguments.get("task", _TASK)) != _TASK:
            raise ValueError(f"parameters.extra.task [{task}] is not supported; it must be {_TASK}")
        self._threads = ThreadPoolExecutor(int(arguments.get("concurrency", _CONCURRENCY)), "generate")
        self._model, self._tokenizer = await asyncio.to_thread(_load, self.engine_settings.model, arguments)
        return True

    async def unload(self) -> bool:
        """Start no further generation, and let the model go."""
        self._threads.shutdown(wait=False, cancel_futures=True)
        del self._model
        return True

    def generate(self, request: TextRequest) -> AsyncGenerator[Piece, None]:
        """Generate text in a thread."""
        return in_thread(partial(self._generate, request), self._threads)

    def _generate(self, request: TextRequest, put: Callable[[Piece], None]) -> None:
        inputs = self._encode(request)
        prompt_tokens = int(inputs["input_ids"].shape[-1])
        arguments = self._arguments(request, prompt_tokens)
        text = UntilStop(request.parameters.get("stop", ()))

        def is_over(input_ids: Any, scores: Any, **_: Any) -> Any:
            return torch.full((input_ids.shape[0],), text.is_over, dtype=torch.bool, device=input_ids.device)

        # An empty piece, too, for `put` ends the generation once nobody reads.
        streamer = Detokenizer(self._decode, lambda new: put(Piece(text.feed(new))))
        criteria = StoppingCriteriaList([is_over])
        if processors := self._processors(request.parameters, arguments, prompt_tokens):
            arguments["logits_processor"] = LogitsProcessorList(processors)
        tokens = self._model.generate(**inputs, **arguments, streamer=streamer, stopping_criteria=criteria)[0].tolist()
        completion_tokens = len(tokens) - prompt_tokens
        is_whole = text.is_over or tokens[-1] in self._end_tokens()
        is_cut = not is_whole and completion_tokens >= arguments["max_new_tokens"]
        put(Piece(text.flush(), "length" if is_cut else "stop", prompt_tokens, completion_tokens))

    def _encode(self, request: TextRequest) -> Any:
        """Return token ids [1, n] and attention mask on the model's device; InferenceError without a chat template."""
        try:
            if request.messages:
                inputs = self._tokenizer.apply_chat_template(
                    list(request.messages), add_generation_prompt=True, return_tensors="pt", return_dict=True
                )
            else:
                inputs = self._tokenizer(request.prompt, return_tensors="pt")
        except (TemplateError, ValueError) as error:  # no template, or one that refuses these roles
            raise InferenceError(f"The messages do not fit the model's chat template: {error}") from None
        if inputs["input_ids"].shape[-1] == 0:
            raise InferenceError("The prompt is empty")
        return {name: inputs[name].to(self._model.device) for name in ("input_ids", "attention_mask")}

    def _arguments(self, request: TextRequest, prompt_tokens: int) -> dict[str, Any]:
        """Return the arguments of `generate`; InferenceError if the model's context has no room for the prompt."""
        apart = ("stop", "seed", *_PENALTIES)
        given = {name: value for name, value in request.parameters.items() if name not in apart}
        own = self._model.generation_config
        given.setdefault("max_tokens", own.max_new_tokens or DEFAULT_MAX_TOKENS)
        if context := getattr(self._model.config, "max_position_embeddings", None):
            if prompt_tokens >= context:
                raise InferenceError(f"The prompt has {prompt_tokens} tokens; the model's context has {context}")
            given["max_tokens"] = min(given["max_tokens"], context - prompt_tokens)
        if given.get("temperature") == 0:
            given = {name: value for name, value in given.items() if name not in _SAMPLING}
            given["do_sample"] = False
        elif any(name in given for name in _SAMPLING):
            given["do_sample"] = True
        if self._tokenizer.pad_token_id is None:
            given["pad_token_id"] = self._tokenizer.eos_token_id
        return {_ARGUMENTS.get(name, name): value for name, value in given.items()}

    def _processors(
        self, parameters: Mapping[str, Any], arguments: dict[str, Any], prompt_tokens: int
    ) -> list[Callable[..., Any]]:
        """Return what changes the tokens' scores; a seed takes the sampling out of the arguments."""
        processors: list[Callable[..., Any]] = []
        presence, frequency = (parameters.get(name, 0.0) for name in _PENALTIES)
        if presence or frequency:
            processors.append(CountPenalty(prompt_tokens, presence, frequency))
        own = self._model.generation_config
        if "seed" in parameters and arguments.get("do_sample", own.do_sample):
            named = {name: arguments.pop(name, getattr(own, name, None)) for name in _SAMPLING}
            named["top_k"] = _TOP_K if named["top_k"] is None else named["top_k"]
            arguments["do_sample"] = False
            warpers = [_WARPERS[name](value) for name, value in named.items() if value not in _NO_WARPING[name]]
            processors.append(SeededChoice(parameters["seed"], warpers, self._model.device))
        return processors

    def _end_tokens(self) -> Sequence[int]:
        end = self._model.generation_config.eos_token_id
        return end if isinstance(end, list) else [end]

    def _decode(self, tokens: list[int]) -> str:
        return str(self._tokenizer.decode(tokens, skip_special_tokens=True, clean_up_tokenization_spaces=False))


def _load(name: str, arguments: dict[str, Any]) -> tuple[Any, Any]:
    disable_progress_bar()  # progress bars would go to the log
    more = {**arguments.get("model_kwargs", {}), **arguments.get("load_kwargs", {})}
    tokenizer = AutoTokenizer.from_pretrained(arguments.get("pretrained_tokenizer") or name)
    model = AutoModelForCausalLM.from_pretrained(name, dtype=arguments.get("dtype", "auto"), **more)
    device = arguments.get("device", "auto")
    if device == "auto":
        device = "cuda" if torch.cuda.is_available() else "cpu"
    if device in (-1, "-1"):  # MLServer's value for it
        device = "cpu"
    return model.to(device).eval(), tokenizer


class CountPenalty:
    """OpenAI's two penalties: lowers the score of a token for having been generated, and for each time."""

    def __init__(self, prompt_tokens: int, presence: float, frequency: float) -> None:
        self._prompt_tokens = prompt_tokens
        self._presence = presence
        self._frequency = frequency

    def __call__(self, input_ids: Any, scores: Any) -> Any:
        """Return the scores [1, n] of the token that comes next."""
        counts = torch.bincount(input_ids[0, self._prompt_tokens :], minlength=scores.shape[-1])
        return scores - self._frequency * counts - self._presence * (counts > 0)


class SeededChoice:
    """Samples a token with its own random numbers, and excludes all others.

    transformers uses the random numbers of the whole process, which other generations use, too.
    """

    def __init__(self, seed: int, warpers: Sequence[Callable[..., Any]], device: Any) -> None:
        self._warpers = warpers
        self._numbers = torch.Generator(device).manual_seed(seed)

    def __call__(self, input_ids: Any, scores: Any) -> Any:
        """Return the scores [1, n], all but one of them infinitely small."""
        for warper in self._warpers:
            scores = warper(input_ids, scores)
        chosen = torch.multinomial(scores.softmax(-1), 1, generator=self._numbers)
        return torch.full_like(scores, -torch.inf).scatter(1, chosen, 0.0)


class Detokenizer:
    """Decodes tokens as they come; fits transformers' `BaseStreamer`.

    The text of a token depends on those before it, so each is decoded together with the last ones. (The streamers of
    transformers wait for a space, which some languages do not have.)
    """

    def __init__(self, decode: Callable[[list[int]], str], on_text: Callable[[str], None]) -> None:
        self._decode = decode
        self._on_text = on_text
        self._tokens: list[int] = []
        self._context = self._read = 0  # where the tokens decoded last begin and end
        self._has_prompt = False

    def put(self, value: Any) -> None:
        """Take the prompt's tokens [1, n] first, then those generated, [1] each."""
        self._tokens += value.reshape(-1).tolist()
        if not self._has_prompt:
            self._has_prompt = True
            self._read = len(self._tokens)
            self._context = max(0, self._read - 5)
            return
        self._on_text(self._new_text(is_end=False))

    def end(self) -> None:
        """Pass on the rest, also an incomplete character."""
        self._on_text(self._new_text(is_end=True))

    def _new_text(self, *, is_end: bool) -> str:
        before = self._decode(self._tokens[self._context : self._read])
        text = self._decode(self._tokens[self._context :])
        is_long = len(self._tokens) - self._read > _MOST_UNDECODED
        if text.endswith(_UNDECODED) and not is_end and not is_long:
            return ""
        self._context, self._read = self._read, len(self._tokens)
        return text[len(before) :]


class UntilStop:
    """Passes on text up to the first stop text, and holds back what may be the beginning of one."""

    def __init__(self, stops: Sequence[str]) -> None:
        self._stops = stops
        self._held = ""
        self.is_over = False

    def feed(self, text: str) -> str:
        """Return what can be passed on."""
        if self.is_over:
            return ""
        self._held += text
        found = [position for stop in self._stops if (position := self._held.find(stop)) >= 0]
        if found:
            self.is_over = True
            return self._cut(min(found))
        return self._cut(len(self._held) - self._doubtful())

    def flush(self) -> str:
        """Return what was held back, if no stop text came."""
        return "" if self.is_over else self._cut(len(self._held))

    def _doubtful(self) -> int:
        """Return the length of the longest end that a stop text begins with."""
        longest = max((len(stop) for stop in self._stops), default=1) - 1
        ends = range(min(longest, len(self._held)), 0, -1)
        return next((end for end in ends if any(stop.startswith(self._held[-end:]) for stop in self._stops)), 0)

    def _cut(self, position: int) -> str:
        text, self._held = self._held[:position], self._held[position:]
        return text
