"""Decodes requests and encodes responses by their content types; what was decoded is kept with the parameters."""

from collections.abc import Mapping
from typing import Any, ClassVar

from opensearch_ml_stream.runtimes.interface.codecs.base import (
    InputCodecLike,
    RequestCodec,
    RequestCodecLike,
    find_input_codec,
    find_input_codec_by_payload,
    find_request_codec,
    find_request_codec_by_payload,
)
from opensearch_ml_stream.runtimes.interface.codecs.errors import CodecError
from opensearch_ml_stream.runtimes.interface.settings import ModelSettings
from opensearch_ml_stream.runtimes.interface.types import (
    InferenceRequest,
    InferenceResponse,
    MetadataTensor,
    Parameters,
    RequestInput,
    RequestOutput,
    ResponseOutput,
)

DefaultOutputPrefix = "output-"
DefaultInputPrefix = "input-"
DecodedParameterName = "_decoded_payload"
InputOrOutput = RequestInput | ResponseOutput
Codec = InputCodecLike | RequestCodecLike
Parametrised = InferenceRequest | RequestInput | RequestOutput | ResponseOutput | InferenceResponse
Tagged = MetadataTensor | ModelSettings
_NO_TENSORS: Mapping[str, MetadataTensor] = {}


def inject_batch_dimension(shape: list[int]) -> list[int]:
    """Take a shape of one dimension as that of a batch of single values: [N] is [N, 1]."""
    return shape if len(shape) > 1 else [*shape, 1]


def encode_response_output(
    payload: Any, request_output: RequestOutput, metadata_outputs: Mapping[str, MetadataTensor] = _NO_TENSORS
) -> ResponseOutput | None:
    """Encode a value by the content type asked for, else by the metadata's, else by its type; None without a codec."""
    content_type = _content_type(request_output, metadata_outputs.get(request_output.name))
    codec = find_input_codec(content_type) if content_type else find_input_codec_by_payload(payload)
    return codec.encode_output(name=request_output.name, payload=payload) if codec else None


def encode_inference_response(payload: Any, model_settings: ModelSettings) -> InferenceResponse | None:
    """Encode a value as a response by its type; None without a codec."""
    codec = find_request_codec_by_payload(payload)
    return codec.encode_response(model_settings.name, payload, model_settings.version) if codec else None


def decode_request_input(
    request_input: RequestInput, metadata_inputs: Mapping[str, MetadataTensor] = _NO_TENSORS
) -> Any:
    """Decode a tensor by its content type, else by the metadata's, and keep the result; None without a codec."""
    content_type = _content_type(request_input, metadata_inputs.get(request_input.name))
    codec = find_input_codec(content_type)
    if codec is None:
        return None
    decoded = codec.decode_input(request_input)
    _keep(request_input, decoded)
    return decoded


def decode_inference_request(
    inference_request: InferenceRequest,
    model_settings: ModelSettings | None = None,
    metadata_inputs: Mapping[str, MetadataTensor] = _NO_TENSORS,
) -> Any:
    """Decode a request's tensors, then the request by its content type, else by the settings'.

    Without a codec of requests: the request itself.
    """
    for request_input in inference_request.inputs:
        decode_request_input(request_input, metadata_inputs)
    codec = find_request_codec(_content_type(inference_request, model_settings))
    if codec is None:
        return inference_request
    decoded = codec.decode_request(inference_request)
    _keep(inference_request, decoded)
    return decoded


def has_decoded(parametrised_obj: Parametrised) -> bool:
    """Tell whether something is decoded."""
    return hasattr(parametrised_obj.parameters, DecodedParameterName)


def get_decoded(parametrised_obj: Parametrised) -> Any:
    """Give what was decoded; None if nothing was."""
    return getattr(parametrised_obj.parameters, DecodedParameterName, None)


def get_decoded_or_raw(parametrised_obj: Parametrised) -> Any:
    """Give what was decoded, else a tensor's data, else the request or the response itself."""
    if has_decoded(parametrised_obj):
        return get_decoded(parametrised_obj)
    return parametrised_obj.data if isinstance(parametrised_obj, RequestInput | ResponseOutput) else parametrised_obj


def _content_type(tensor_or_request: Parametrised, metadata: Tagged | None) -> str | None:
    for parameters in (tensor_or_request.parameters, metadata.parameters if metadata else None):
        if parameters is not None and parameters.content_type:
            return parameters.content_type
    return None


def _keep(parametrised_obj: Parametrised, decoded: Any) -> None:
    if parametrised_obj.parameters is None:
        parametrised_obj.parameters = Parameters()
    setattr(parametrised_obj.parameters, DecodedParameterName, decoded)


class SingleInputRequestCodec(RequestCodec):
    """The base of codecs for requests and responses of one tensor, which `InputCodec` converts."""

    InputCodec: ClassVar[InputCodecLike | None] = None

    @classmethod
    def can_encode(cls, payload: Any) -> bool:
        """Tell whether the tensor's codec is for values such as this."""
        return cls.InputCodec is not None and cls.InputCodec.can_encode(payload)

    @classmethod
    def encode_response(
        cls, model_name: str, payload: Any, model_version: str | None = None, **kwargs: Any
    ) -> InferenceResponse:
        """Encode a value as a response of one tensor, `output-1`."""
        output = cls._codec().encode_output(f"{DefaultOutputPrefix}1", payload, **kwargs)
        return InferenceResponse(
            model_name=model_name,
            model_version=model_version,
            parameters=Parameters(content_type=cls.ContentType),
            outputs=[output],
        )

    @classmethod
    def decode_response(cls, response: InferenceResponse) -> Any:
        """Decode a response's one tensor; CodecError if there are more, or none."""
        output = cls._single(response.outputs, "output")
        if not has_decoded(output) and cls.InputCodec is not None:
            _keep(output, cls.InputCodec.decode_output(output))
        return get_decoded_or_raw(output)

    @classmethod
    def encode_request(cls, payload: Any, **kwargs: Any) -> InferenceRequest:
        """Encode a value as a request of one tensor, `input-1`."""
        tensor = cls._codec().encode_input(f"{DefaultInputPrefix}1", payload, **kwargs)
        return InferenceRequest(inputs=[tensor], parameters=Parameters(content_type=cls.ContentType))

    @classmethod
    def decode_request(cls, request: InferenceRequest) -> Any:
        """Decode a request's one tensor; CodecError if there are more, or none."""
        tensor = cls._single(request.inputs, "input")
        if not has_decoded(tensor) and cls.InputCodec is not None:
            _keep(tensor, cls.InputCodec.decode_input(tensor))
        return get_decoded_or_raw(tensor)

    @classmethod
    def _codec(cls) -> InputCodecLike:
        if cls.InputCodec is None:
            raise NotImplementedError(f"No input codec found for {cls} request codec")
        return cls.InputCodec

    @classmethod
    def _single(cls, tensors: list[Any], kind: str) -> Any:
        if len(tensors) != 1:
            raise CodecError(
                f"The '{cls.ContentType}' codec only supports a single {kind} tensor ({len(tensors)} were received)"
            )
        return tensors[0]
