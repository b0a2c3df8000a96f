"""The base class of the shipped text models: it reads requests, writes responses, and finds settings.

A request has a text (a BYTES tensor, `prompt` or `inputs` or the only one) or a chat (BYTES tensors `role` and
`content`, of one element a message), and parameters of the generation, in `parameters.llm_parameters` or among the
other parameters. A response has a BYTES tensor of shape [1, 1], `output`, or `content` for a chat, whose first response
also has `role` and `type`. The last response has `finish_reason` and `usage` in its parameters.
"""

import json
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import aclosing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from opensearch_ml_stream.runtimes.engine_settings import ALIASES, EMBEDDINGS, EngineSettings, read_engine_settings

if TYPE_CHECKING:
    from opensearch_ml_stream.runtimes.interface import MLModel, ModelSettings
    from opensearch_ml_stream.runtimes.interface.codecs import StringCodec
    from opensearch_ml_stream.runtimes.interface.errors import InferenceError as InferenceError
    from opensearch_ml_stream.runtimes.interface.types import (
        InferenceRequest,
        InferenceResponse,
        Parameters,
        RequestInput,
        ResponseOutput,
    )
else:  # MLServer's own if it is installed, else ours under its name
    from mlserver import MLModel, ModelSettings
    from mlserver.codecs import StringCodec
    from mlserver.errors import InferenceError as InferenceError
    from mlserver.types import InferenceRequest, InferenceResponse, Parameters, RequestInput, ResponseOutput

DEFAULT_MAX_TOKENS = 512  # if neither the request nor the model's settings have one

_TEXT_TENSORS = ("prompt", "inputs")
_INTEGERS = ("max_tokens", "min_tokens", "seed", "top_k")
_BOUNDS: Mapping[str, tuple[float, float | None]] = {
    "frequency_penalty": (-2, 2),
    "max_tokens": (1, None),
    "min_p": (0, 1),
    "min_tokens": (0, None),
    "presence_penalty": (-2, 2),
    "repetition_penalty": (0.01, None),
    "seed": (0, 2**63 - 1),
    "temperature": (0, None),
    "top_k": (0, None),
    "top_p": (0, 1),
}
_OF_TOOLS = ("tools", "tool_choice", "functions", "function_call", "tool_calls", "tool_call_id")
_WITHOUT_EFFECT = ("model", "stream", "stream_options", "user")  # clients of OpenAI send them along


@dataclass(frozen=True, slots=True)
class TextRequest:
    """A prompt, or the messages of a chat, and the parameters of the generation by the names in `_BOUNDS`."""

    prompt: str
    messages: tuple[dict[str, str], ...]
    parameters: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Piece:
    """A piece of generated text. The last one has a `finish_reason`, and the numbers of tokens."""

    text: str
    finish_reason: str = ""
    prompt_tokens: int = 0
    completion_tokens: int = 0


class TextModel(MLModel):
    """A model that generates text; a subclass implements `load`, `unload` and `generate`."""

    takes: ClassVar[frozenset[str]]  # the parameters that the engine knows

    def __init__(self, settings: ModelSettings) -> None:
        super().__init__(settings)
        self.engine_settings = _engine_settings(settings)
        if self.engine_settings.model_type == EMBEDDINGS:
            raise ValueError(f"parameters.extra.model_type [{EMBEDDINGS}] is not supported by this runtime")
        self._defaults = _checked(self.engine_settings.llm_parameters, self.takes)

    def generate(self, request: TextRequest) -> AsyncGenerator[Piece, None]:
        """Generate text; the last piece has a finish reason. Closing the generator ends the work."""
        raise NotImplementedError

    async def predict(self, payload: InferenceRequest) -> InferenceResponse:
        """Return the whole text."""
        request = self.read_request(payload)
        texts, last = [], Piece("")
        async with aclosing(self.generate(request)) as pieces:
            async for piece in pieces:
                texts.append(piece.text)
                last = piece
        return self._response(payload, request, "".join(texts), last, is_first=True)

    async def predict_stream(self, payloads: AsyncIterator[InferenceRequest]) -> AsyncIterator[InferenceResponse]:
        """Yield the texts as they come, for one request after the other."""
        async for payload in payloads:
            request = self.read_request(payload)
            is_first = True
            async with aclosing(self.generate(request)) as pieces:
                async for piece in pieces:
                    if piece.text or piece.finish_reason:
                        yield self._response(payload, request, piece.text, piece, is_first=is_first)
                        is_first = False

    def read_request(self, payload: InferenceRequest) -> TextRequest:
        """Read a request; InferenceError (400) says what is wrong with it."""
        given = payload.parameters.model_dump() if payload.parameters is not None else {}
        own = given.get("llm_parameters") or {}
        if not isinstance(own, Mapping):
            raise InferenceError("parameters.llm_parameters must be an object")
        others = {name: value for name, value in given.items() if ALIASES.get(name, name) in self.takes}
        parameters = {**self._defaults, **_checked(others, self.takes), **_checked(own, self.takes)}
        tensors = {tensor.name: tensor for tensor in payload.inputs}
        _refuse_what_it_cannot({**given, **own}, tensors)
        if "content" in tensors:
            return TextRequest("", _messages(tensors), parameters)
        return TextRequest(_prompt(tensors), (), parameters)

    def _response(
        self, payload: InferenceRequest, request: TextRequest, text: str, piece: Piece, *, is_first: bool
    ) -> InferenceResponse:
        if request.messages:
            outputs = [_text_output("content", text)]
            if is_first:
                outputs += [_text_output("role", "assistant"), _text_output("type", "text")]
        else:
            outputs = [_text_output("output", text)]
        response = InferenceResponse(model_name=self.name, model_version=self.version, id=payload.id, outputs=outputs)
        if piece.finish_reason:
            response.parameters = Parameters(**{"finish_reason": piece.finish_reason, "usage": _usage(piece)})
        return response


def _engine_settings(settings: ModelSettings) -> EngineSettings:
    parameters, source = settings.parameters, getattr(settings, "_source", None)
    folder = Path(source).parent if source else None
    if parameters is None:
        return read_engine_settings(None, None, folder)
    return read_engine_settings(parameters.extra, parameters.uri, folder)


def _checked(given: Mapping[str, Any], takes: frozenset[str]) -> dict[str, Any]:
    """Return parameters by their main names; InferenceError for unknown ones and wrong values."""
    checked: dict[str, Any] = {}
    for name, value in given.items():
        own = ALIASES.get(name, name)
        if value is None or name in _WITHOUT_EFFECT:
            continue
        if own not in takes:
            raise InferenceError(f"The parameter [{name}] is not supported; these are: {', '.join(sorted(takes))}")
        checked[own] = _checked_value(name, own, value)
    return checked


def _checked_value(name: str, own: str, value: object) -> Any:
    if own == "stop":
        texts = [value] if isinstance(value, str) else value
        if not isinstance(texts, list) or not all(isinstance(text, str) and text for text in texts):
            raise InferenceError(f"The parameter [{name}] must be a string or a list of strings")
        return texts
    types = (int,) if own in _INTEGERS else (int, float)
    if isinstance(value, bool) or not isinstance(value, types):
        raise InferenceError(f"The parameter [{name}] must be {'an integer' if own in _INTEGERS else 'a number'}")
    low, high = _BOUNDS[own]
    if not low <= value <= (value if high is None else high):
        bounds = f"{low} or more" if high is None else f"from {low} to {high}"
        raise InferenceError(f"The parameter [{name}] must be {bounds}")
    return value


def _refuse_what_it_cannot(given: Mapping[str, Any], tensors: Mapping[str, RequestInput]) -> None:
    """Raise InferenceError for tools and answer formats: without them the answer would be another."""
    asked = [name for name in _OF_TOOLS if given.get(name) is not None or name in tensors]
    if asked:
        raise InferenceError(f"This runtime calls no tools: [{asked[0]}] is not supported; vllm and llama-cpp take it")
    form = given.get("response_format")
    if form is not None and form != {"type": "text"}:
        raise InferenceError("This runtime does not support formats of the answer: [response_format]")


def _messages(tensors: Mapping[str, RequestInput]) -> tuple[dict[str, str], ...]:
    contents = _texts(tensors["content"])
    roles = _texts(tensors["role"]) if "role" in tensors else ["user"] * len(contents)
    types = _texts(tensors["type"]) if "type" in tensors else ["text"] * len(contents)
    if not contents or not len(roles) == len(contents) == len(types):
        raise InferenceError("The tensors role, content and type must have one element for each message")
    read = [_message_text(content, type) for content, type in zip(contents, types, strict=True)]
    return tuple({"role": role, "content": content} for role, content in zip(roles, read, strict=True))


def _message_text(content: str, type: str) -> str:
    """Return the text of a message; one in parts has JSON arrays of these and of their types."""
    if not type.startswith("["):
        types, parts = [type], [content]
    else:
        types, parts = _json_array(type, "type"), _json_array(content, "content")
    if others := [one for one in types if one not in ("text", "")]:
        raise InferenceError(f"The tensor type may only hold text: this runtime reads no [{others[0]}]")
    return "".join(str(part) for part in parts)


def _json_array(text: str, name: str) -> list[Any]:
    try:
        value = json.loads(text)
    except ValueError:
        value = None
    if not isinstance(value, list):
        raise InferenceError(f"The tensor {name} must hold a JSON array for a message in parts")
    return value


def _prompt(tensors: Mapping[str, RequestInput]) -> str:
    names = [name for name in _TEXT_TENSORS if name in tensors] or list(tensors)
    if not names or (len(names) > 1 and names[0] not in _TEXT_TENSORS):
        raise InferenceError("The request must have a tensor prompt with a text, or role and content")
    texts = _texts(tensors[names[0]])
    if len(texts) != 1:
        raise InferenceError(f"The tensor {names[0]} must have one text, not {len(texts)}")
    return texts[0]


def _texts(tensor: RequestInput) -> list[str]:
    if str(getattr(tensor.datatype, "value", tensor.datatype)) != "BYTES":
        raise InferenceError(f"The tensor {tensor.name} must be of datatype BYTES")
    try:
        return [str(text) for text in StringCodec.decode_input(tensor)]
    except UnicodeDecodeError:
        raise InferenceError(f"The tensor {tensor.name} must hold text in UTF-8") from None


def _text_output(name: str, text: str) -> ResponseOutput:
    return ResponseOutput(
        name=name, shape=[1, 1], datatype="BYTES", data=[text], parameters=Parameters(content_type="str")
    )


def _usage(piece: Piece) -> dict[str, int]:
    return {
        "prompt_tokens": piece.prompt_tokens,
        "completion_tokens": piece.completion_tokens,
        "total_tokens": piece.prompt_tokens + piece.completion_tokens,
    }
