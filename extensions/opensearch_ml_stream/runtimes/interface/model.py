"""The class that models subclass."""

from collections.abc import AsyncIterator
from typing import Any

from opensearch_ml_stream.runtimes.interface.codecs import (
    InputCodecLike,
    RequestCodecLike,
    decode_inference_request,
    decode_request_input,
    encode_inference_response,
    encode_response_output,
    get_decoded,
    has_decoded,
)
from opensearch_ml_stream.runtimes.interface.codecs.errors import CodecNotFound
from opensearch_ml_stream.runtimes.interface.settings import ModelSettings
from opensearch_ml_stream.runtimes.interface.types import (
    InferenceRequest,
    InferenceResponse,
    MetadataModelResponse,
    MetadataTensor,
    Parameters,
    RequestInput,
    RequestOutput,
    ResponseOutput,
)


class MLModel:
    """A model: how it is loaded, its predictions, its metadata.

    A subclass has `load` and `predict` and, if it streams, `predict_stream`.
    """

    def __init__(self, settings: ModelSettings) -> None:
        self._settings = settings
        self._inputs_index = _by_name(settings.inputs)
        self._outputs_index = _by_name(settings.outputs)
        self.ready = False

    async def load(self) -> bool:
        """Load the model; tell whether it is ready then."""
        return True

    async def predict(self, payload: InferenceRequest) -> InferenceResponse:
        """Answer a request."""
        raise NotImplementedError("predict() method not implemented")

    async def predict_stream(self, payloads: AsyncIterator[InferenceRequest]) -> AsyncIterator[InferenceResponse]:
        """Answer requests with any number of responses, each sent as it comes. Without a subclass's own: with one."""
        yield await self.predict(await payloads.__anext__())

    async def unload(self) -> bool:
        """Free what the model holds; tell whether it is unloaded."""
        return True

    @property
    def name(self) -> str:
        """The model's name, of its settings."""
        return self._settings.name

    @property
    def version(self) -> str | None:
        """The model's version, of its settings."""
        return self._settings.version

    @property
    def settings(self) -> ModelSettings:
        """The model's settings."""
        return self._settings

    @property
    def inputs(self) -> list[MetadataTensor] | None:
        """The tensors that the model takes; `load` may set them."""
        return self._settings.inputs

    @inputs.setter
    def inputs(self, value: list[MetadataTensor]) -> None:
        self._settings.inputs = value
        self._inputs_index = _by_name(value)

    @property
    def outputs(self) -> list[MetadataTensor] | None:
        """The tensors that the model gives; `load` may set them."""
        return self._settings.outputs

    @outputs.setter
    def outputs(self, value: list[MetadataTensor]) -> None:
        self._settings.outputs = value
        self._outputs_index = _by_name(value)

    def decode(self, request_input: RequestInput, default_codec: InputCodecLike | None = None) -> Any:
        """Decode a tensor by its content type, else by that of the model's metadata, else by the default codec.

        Without any of them: the data as it came.
        """
        decode_request_input(request_input, self._inputs_index)
        if has_decoded(request_input):
            return get_decoded(request_input)
        return default_codec.decode_input(request_input) if default_codec else request_input.data

    def decode_request(self, inference_request: InferenceRequest, default_codec: RequestCodecLike | None = None) -> Any:
        """Decode a request by its content type, else by that of the model's settings, else by the default codec.

        Without any of them: the request itself, whose tensors are decoded.
        """
        decode_inference_request(inference_request, self._settings, self._inputs_index)
        if has_decoded(inference_request):
            return get_decoded(inference_request)
        return default_codec.decode_request(inference_request) if default_codec else inference_request

    def encode_response(self, payload: Any, default_codec: RequestCodecLike | None = None) -> InferenceResponse:
        """Encode a value by the codec of its type, else by the default codec; CodecNotFound without either."""
        response = encode_inference_response(payload, self._settings)
        if response is not None:
            return response
        if default_codec:
            return default_codec.encode_response(self.name, payload, self.version)
        raise CodecNotFound(payload_type=str(type(payload)), is_input=False, is_request=True)

    def encode(
        self, payload: Any, request_output: RequestOutput, default_codec: InputCodecLike | None = None
    ) -> ResponseOutput:
        """Encode a value as a tensor by the content type asked for, else by the metadata's, else by its own type.

        Else by the default codec; CodecNotFound without one.
        """
        output = encode_response_output(payload, request_output, self._outputs_index)
        if output is not None:
            return output
        if default_codec:
            return default_codec.encode_output(request_output.name, payload)
        raise CodecNotFound(name=request_output.name, is_input=False, is_request=False)

    async def metadata(self) -> MetadataModelResponse:
        """Return the model's metadata."""
        settings = self._settings
        metadata = MetadataModelResponse(
            name=self.name,
            platform=settings.platform,
            versions=settings.versions,
            inputs=settings.inputs,
            outputs=settings.outputs,
        )
        if settings.parameters:
            metadata.parameters = Parameters(content_type=settings.parameters.content_type)
        return metadata


def _by_name(tensors: list[MetadataTensor] | None) -> dict[str, MetadataTensor]:
    return {tensor.name: tensor for tensor in tensors or []}
