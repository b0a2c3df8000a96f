"""Codecs, and methods that are called by their type hints. Arrays and data frames: see the tests with MLServer."""

from collections.abc import AsyncIterator
from datetime import datetime, timezone
from typing import Any, ClassVar, List, Optional  # noqa: UP035  # as models write it

import pytest

from opensearch_ml_stream.runtimes.interface import MLModel, ModelSettings
from opensearch_ml_stream.runtimes.interface.codecs import (
    Base64Codec,
    DatetimeCodec,
    InputCodec,
    NumpyCodec,
    StringCodec,
    StringRequestCodec,
    decode_args,
    get_decoded_or_raw,
    has_decoded,
    register_input_codec,
)
from opensearch_ml_stream.runtimes.interface.codecs.errors import (
    CodecError,
    CodecNotFound,
    InputsNotFound,
    OutputNotFound,
)
from opensearch_ml_stream.runtimes.interface.codecs.lazy import needed
from opensearch_ml_stream.runtimes.interface.types import (
    InferenceRequest,
    InferenceResponse,
    Parameters,
    RequestInput,
    RequestOutput,
    ResponseOutput,
    TensorData,
)

SETTINGS = ModelSettings(
    name="m",
    implementation="a.B",
    inputs=[{"name": "described", "datatype": "BYTES", "shape": [-1], "parameters": {"content_type": "str"}}],
    outputs=[{"name": "b64", "datatype": "BYTES", "shape": [-1], "parameters": {"content_type": "base64"}}],
    parameters={"version": "v1"},
)


def text(name: str = "names", *texts: str, content_type: str | None = "str") -> RequestInput:
    parameters = Parameters(content_type=content_type)
    return RequestInput(name=name, shape=[len(texts)], datatype="BYTES", data=list(texts), parameters=parameters)


@pytest.mark.parametrize(
    ("codec", "values", "wire"),
    [
        (StringCodec, ["a", "ü"], [b"a", b"\xc3\xbc"]),
        (Base64Codec, [b"\x00\xff"], [b"AP8="]),
        (DatetimeCodec, [datetime(2024, 1, 2, tzinfo=timezone.utc)], [b"2024-01-02T00:00:00+00:00"]),  # noqa: UP017
    ],
)
@pytest.mark.parametrize("use_bytes", [True, False])
def test_values_go_into_tensors_and_out_again(codec: Any, values: Any, wire: list[bytes], use_bytes: bool) -> None:
    assert codec.can_encode(values)
    output, tensor = codec.encode_output("x", values, use_bytes), codec.encode_input("x", values, use_bytes)
    assert output.data.root == tensor.data.root == (wire if use_bytes else [element.decode() for element in wire])
    assert (output.shape, output.datatype) == ([len(values), 1], "BYTES")
    assert output.parameters == tensor.parameters == Parameters(content_type=codec.ContentType)
    assert codec.decode_output(output) == codec.decode_input(tensor) == values


def test_a_single_text_is_a_list_of_it_and_what_is_not_base64_stays() -> None:
    assert StringCodec.decode_input(RequestInput(name="x", shape=[1], datatype="BYTES", data="abc")) == ["abc"]
    assert Base64Codec.decode_input(text("x", "not base64!")) == [b"not base64!"]


def test_a_model_decodes_by_content_type_then_by_metadata_then_by_default() -> None:
    model = MLModel(SETTINGS)
    assert model.decode(text("x", "YQ==", content_type="base64")) == [b"a"]
    assert model.decode(text("described", "YQ==", content_type=None)) == ["YQ=="]
    assert model.decode(text("x", "YQ==", content_type=None), default_codec=Base64Codec) == [b"a"]
    assert model.decode(text("x", "a", content_type="unknown")) == TensorData(["a"])


def test_what_is_decoded_is_kept_and_not_dumped() -> None:
    tensor = text("x", "a")
    assert not has_decoded(tensor)
    assert get_decoded_or_raw(tensor) == TensorData(["a"])
    assert MLModel(SETTINGS).decode(tensor) == ["a"]
    assert get_decoded_or_raw(tensor) == ["a"]
    assert tensor.model_dump()["parameters"] == {"content_type": "str"}


def test_a_model_decodes_requests_of_one_tensor() -> None:
    model = MLModel(SETTINGS)
    request = InferenceRequest(inputs=[text("x", "a")])
    assert model.decode_request(request) is request
    assert model.decode_request(request, default_codec=StringRequestCodec) == ["a"]
    assert model.decode_request(InferenceRequest(inputs=[text("x", "b")], parameters={"content_type": "str"})) == ["b"]
    two = InferenceRequest(inputs=[text(), text()], parameters={"content_type": "str"})
    with pytest.raises(CodecError, match=r"single input tensor \(2 were received\)"):
        model.decode_request(two)


def test_a_model_encodes_by_what_is_asked_for_then_by_metadata_then_by_type() -> None:
    model = MLModel(SETTINGS)
    assert model.encode([b"a"], RequestOutput(name="b64")).data.root == [b"YQ=="]
    assert model.encode(["a"], RequestOutput(name="o")).data.root == [b"a"]
    asked = RequestOutput(name="o", parameters={"content_type": "base64"})
    assert model.encode(["a"], asked).data.root == [b"YQ=="]
    assert model.encode((1,), RequestOutput(name="o"), default_codec=Anything).data.root == (1,)
    with pytest.raises(CodecNotFound, match="output field with name 'o'"):
        model.encode(object(), RequestOutput(name="o"))


def test_a_model_encodes_responses() -> None:
    response = MLModel(SETTINGS).encode_response(["a"])
    assert (response.model_name, response.model_version, response.outputs[0].name) == ("m", "v1", "output-1")
    with pytest.raises(CodecNotFound, match="output response with type <class 'int'>"):
        MLModel(SETTINGS).encode_response(3)


class Anything(InputCodec):
    ContentType: ClassVar[str] = "anything"
    TypeHint: ClassVar[Any] = complex

    @classmethod
    def can_encode(cls, payload: Any) -> bool:
        return isinstance(payload, complex)

    @classmethod
    def encode_output(cls, name: str, payload: Any, **kwargs: Any) -> ResponseOutput:
        return ResponseOutput(name=name, shape=[1], datatype="FP64", data=payload)

    @classmethod
    def decode_input(cls, request_input: RequestInput) -> Any:
        return complex(*request_input.data.root)


def test_a_model_may_register_codecs_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    registry = f"{InputCodec.__module__}._input_codecs"
    monkeypatch.setattr(registry, {"str": StringCodec})
    assert register_input_codec(Anything) is Anything
    tensor = RequestInput(name="x", shape=[2], datatype="FP64", data=[1, 2], parameters={"content_type": "anything"})
    assert MLModel(SETTINGS).decode(tensor) == 1 + 2j
    assert MLModel(SETTINGS).encode(1j, RequestOutput(name="o")).data.root == 1j


class Hinted(MLModel):
    @decode_args
    async def predict(self, names: List[str], suffixes: Optional[List[str]] = None) -> List[str]:  # noqa: UP006, UP045
        return [name + (suffixes or [""])[0] for name in names]

    @decode_args
    def plain(self, names: list[str]) -> tuple[list[str], list[bytes]]:
        return names, [name.encode() for name in names]

    @decode_args
    async def predict_stream(self, names: list[str]) -> AsyncIterator[list[str]]:
        for name in names:
            yield [name]

    @decode_args
    async def wrong(self, names: list[str]) -> list[str]:
        return 3  # type: ignore[return-value]


def request(*tensors: RequestInput) -> InferenceRequest:
    return InferenceRequest(inputs=list(tensors))


async def test_a_method_takes_tensors_by_name_and_returns_outputs() -> None:
    model = Hinted(SETTINGS)
    response = await model.predict(request(text("names", "a", "b"), text("suffixes", "!")))
    assert (response.model_name, response.model_version) == ("m", "v1")
    assert [(output.name, output.data.root) for output in response.outputs] == [("output-0", [b"a!", b"b!"])]
    assert (await model.predict(request(text("names", "a")))).outputs[0].data.root == [b"a"]


async def test_a_method_that_is_no_coroutine_may_return_a_tuple() -> None:
    outputs = (await Hinted(SETTINGS).plain(request(text("names", "a")))).outputs
    assert [(output.name, output.data.root) for output in outputs] == [("output-0", [b"a"]), ("output-1", [b"YQ=="])]


async def test_a_generator_takes_the_first_request_and_yields_responses() -> None:
    async def requests() -> AsyncIterator[InferenceRequest]:
        yield request(text("names", "a", "b"))

    responses: Any = Hinted(SETTINGS).predict_stream(requests())
    assert [response.outputs[0].data.root async for response in responses] == [[b"a"], [b"b"]]


async def test_a_generator_ends_with_the_stream_that_is_closed() -> None:
    ended: list[str] = []

    class Endless(MLModel):
        @decode_args
        async def predict_stream(self, names: list[str]) -> AsyncIterator[list[str]]:
            try:
                while True:
                    yield names
            finally:
                ended.append("closed")

    async def requests() -> AsyncIterator[InferenceRequest]:
        yield request(text("names", "a"))

    responses: Any = Endless(SETTINGS).predict_stream(requests())
    assert isinstance(await responses.__anext__(), InferenceResponse)
    await responses.aclose()
    assert ended == ["closed"]


async def test_a_method_says_what_it_does_not_take_and_should_return() -> None:
    model = Hinted(SETTINGS)
    with pytest.raises(InputsNotFound, match=r"Input .other. was not found\. Available inputs are 'names', 'suffixes'"):
        await model.predict(request(text("other", "a")))
    with pytest.raises(OutputNotFound, match="position '0'"):
        await model.wrong(request(text("names", "a")))


def test_a_hint_without_a_codec_is_refused_where_the_method_is_made() -> None:
    with pytest.raises(CodecNotFound, match="input field with name 'number' and type <class 'int'>"):

        @decode_args
        async def predict(number: int) -> list[str]:  # pyright: ignore[reportUnusedFunction]
            return [str(number)]


def test_a_package_that_a_codec_lacks_is_named() -> None:
    assert not NumpyCodec.can_encode([1])
    with pytest.raises(ImportError, match="SomeCodec needs no_such_package in the model's interpreter"):
        needed("no_such_package", "SomeCodec")
