"""`decode_args`: methods that take and return values, by their type hints, in place of requests and responses."""

import collections.abc
import functools
import inspect
import types
import typing
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from typing import Any

from opensearch_ml_stream.runtimes.interface.codecs.base import (
    InputCodec,
    RequestCodec,
    find_input_codec_by_type_hint,
    find_request_codec_by_type_hint,
)
from opensearch_ml_stream.runtimes.interface.codecs.decoded import Codec
from opensearch_ml_stream.runtimes.interface.codecs.errors import CodecNotFound, InputsNotFound, OutputNotFound
from opensearch_ml_stream.runtimes.interface.types import InferenceRequest, InferenceResponse, ResponseOutput

_STREAMS = (collections.abc.AsyncIterator, collections.abc.AsyncIterable, collections.abc.AsyncGenerator)


def decode_args(predict: Callable[..., Any]) -> Callable[..., Any]:
    """Let a method of a model take each tensor of a request by its name, and return one value for each output.

    The type hints say which codecs convert them. The method may be a coroutine, a plain function, or an asynchronous
    generator, whose first request has its arguments and each of whose values becomes a response.
    """
    codec = SignatureCodec(predict)

    def encoded(model: Any, payload: Any) -> InferenceResponse:
        return codec.encode_response(model.name, payload, model.version)

    if inspect.isasyncgenfunction(predict):

        @functools.wraps(predict)
        async def stream(
            self: Any, payloads: AsyncIterator[InferenceRequest]
        ) -> AsyncGenerator[InferenceResponse, None]:
            values = predict(self, **codec.decode_request(await payloads.__anext__()))
            try:
                async for value in values:
                    yield encoded(self, value)
            finally:
                await values.aclose()

        return stream

    @functools.wraps(predict)
    async def call(self: Any, request: InferenceRequest) -> InferenceResponse:
        returned = predict(self, **codec.decode_request(request))
        return encoded(self, await returned if inspect.isawaitable(returned) else returned)

    return call


class SignatureCodec(RequestCodec):
    """Converts requests to a method's arguments and what it returns to responses, by its type hints."""

    def __init__(self, predict: Callable[..., Any]) -> None:
        hints = {name: _without_none(hint) for name, hint in typing.get_type_hints(predict).items()}
        returned = hints.pop("return", None)
        if typing.get_origin(returned) in _STREAMS:
            returned = _without_none(typing.get_args(returned)[0])
        self._output_hints = _each(returned)
        self._input_codecs = {name: _codec(name, hint, is_input=True) for name, hint in hints.items()}
        self._output_codecs = [_codec(None, hint, is_input=False) for hint in self._output_hints]

    def decode_request(self, request: InferenceRequest) -> dict[str, Any]:  # type: ignore[override]
        """Make the arguments; tensors that are none are together the argument of a codec of whole requests."""
        arguments: dict[str, Any] = {}
        others = [tensor for tensor in request.inputs if tensor.name not in self._input_codecs]
        for tensor in request.inputs:
            codec = self._input_codecs.get(tensor.name)
            if codec is not None:
                if not _is(codec, InputCodec):
                    raise CodecNotFound(name=tensor.name, is_input=True)
                arguments[tensor.name] = codec.decode_input(tensor)  # type: ignore[union-attr]
        if others:
            codecs = ((name, codec) for name, codec in self._input_codecs.items() if _is(codec, RequestCodec))
            name, whole = next(codecs, (None, None))
            if name is None or whole is None:
                raise InputsNotFound(others, self._input_codecs)
            arguments[name] = whole.decode_request(InferenceRequest(inputs=others))  # type: ignore[union-attr]
        return arguments

    def encode_response(  # type: ignore[override]
        self, model_name: str, payload: Any, model_version: str | None = None
    ) -> InferenceResponse:
        """Make a response of what was returned: of each member of a tuple one output, or several."""
        outputs: list[ResponseOutput] = []
        for position, value in enumerate(_each(payload)):
            outputs += self._outputs(position, value)
        return InferenceResponse(model_name=model_name, model_version=model_version, outputs=outputs)

    def _outputs(self, position: int, value: Any) -> list[ResponseOutput]:
        codec = self._output_codecs[position] if position < len(self._output_codecs) else None
        if codec is None or not codec.can_encode(value):
            raise OutputNotFound(position, type(value), self._output_hints)
        if _is(codec, InputCodec):
            return [codec.encode_output(name=f"output-{position}", payload=value)]  # type: ignore[union-attr]
        return codec.encode_response(model_name="", payload=value).outputs  # type: ignore[union-attr]


def _codec(name: str | None, hint: Any, *, is_input: bool) -> Codec:
    codec = find_input_codec_by_type_hint(hint) or find_request_codec_by_type_hint(hint)
    if codec is None:
        raise CodecNotFound(name=name, payload_type=str(hint), is_input=is_input)
    return codec


def _is(codec: Codec, kind: type[Any]) -> bool:
    return isinstance(codec, kind) or (isinstance(codec, type) and issubclass(codec, kind))


def _each(value: Any) -> list[Any]:
    """List a tuple's members, or a tuple type's; nothing for None."""
    if value is None:
        return []
    if isinstance(value, tuple):
        return list(value)
    return list(typing.get_args(value)) if typing.get_origin(value) is tuple else [value]


def _without_none(hint: Any) -> Any:
    """Take `Optional[X]` as X."""
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        arguments = [argument for argument in typing.get_args(hint) if argument is not type(None)]
        return arguments[0] if len(arguments) == 1 else hint
    return hint
