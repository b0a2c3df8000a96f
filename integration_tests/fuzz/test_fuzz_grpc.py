"""Messages of the gRPC port, random and damaged: read or refused by its functions, and by a running server."""

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import grpc
import pytest
from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import DecodeError, Message
from grpc_health.v1.health_pb2 import HealthCheckRequest
from grpc_reflection.v1alpha.reflection_pb2 import ServerReflectionRequest
from hypothesis import given
from hypothesis import strategies as st
from integration_tests.fuzz.bounds import TIMEOUT_SECONDS, corpus, is_well, show, tries
from integration_tests.fuzz.mutations import edited, edits
from integration_tests.server.grpc_port.grpc_clients import grpc_address
from integration_tests.support.connector_bodies import openai
from integration_tests.support.sidecars import Sidecar

from opensearch_ml_stream.connectors import protobuf_wire
from opensearch_ml_stream.connectors.errors import InvalidRequest
from opensearch_ml_stream.extensions.ml_service.ml_service import ML_SERVICE, message_class
from opensearch_ml_stream.extensions.ml_service.predict_messages import read_predict_request
from opensearch_ml_stream.extensions.v2.grpc import inference_messages as messages
from opensearch_ml_stream.extensions.v2.grpc.request_messages import inference_request, read_head, read_request
from opensearch_ml_stream.extensions.v2.protocol.messages import DATATYPES
from opensearch_ml_stream.plugin.grpc_port.health_service import HEALTH_SERVICE
from opensearch_ml_stream.plugin.grpc_port.messages import parse
from opensearch_ml_stream.plugin.grpc_port.reflection_service import REFLECTION_SERVICE

pytestmark = pytest.mark.timeout(TIMEOUT_SECONDS)

MODEL = "fuzzed-over-grpc"
PIECES = [
    b"", b"\x0b", b"\x0c", b"\xa3\x3f\xa4\x3f", b"\x2a\x00" * 200, b"\x3a\x00" * 200, b"\x2a\x80", b"\xff" * 11,
    b"\x3a\x04\x00\x00\x00\x00", b"\x8a\x80\x80\x80\x00", b"\xff\xff\xff\xff\x0f", b"\x22\x00", b"\x0a\x01\xff",
    b"\x1a\x0a" + b"\xff" * 9 + b"\x01", b"\x0d", b"\x09",
]  # fmt: skip
TEXTS = st.sampled_from(["", "a", MODEL, *DATATYPES]) | st.text(st.characters(exclude_categories=["Cs"]), max_size=6)
ELEMENTS = st.sampled_from([b"", b"a", b"\xff", b"\0\0\0\0", b"\1\0\0\0a", b"\0" * 8]) | st.binary(max_size=9)
KINDS: dict[int, st.SearchStrategy[Any]] = {
    FieldDescriptor.CPPTYPE_BOOL: st.booleans(),
    FieldDescriptor.CPPTYPE_INT32: st.integers(-(2**31), 2**31 - 1),
    FieldDescriptor.CPPTYPE_INT64: st.sampled_from([-1, 0, 1, 2]) | st.integers(-(2**63), 2**63 - 1),
    FieldDescriptor.CPPTYPE_UINT32: st.integers(0, 2**32 - 1),
    FieldDescriptor.CPPTYPE_UINT64: st.integers(0, 2**64 - 1),
    FieldDescriptor.CPPTYPE_FLOAT: st.floats(width=32),
    FieldDescriptor.CPPTYPE_DOUBLE: st.floats(),
}
PREDICTION = message_class("org.opensearch.protobufs.MlPredictModelStreamRequest")
SMALL = [
    messages.ModelReadyRequest, messages.ModelMetadataRequest, messages.RepositoryIndexRequest,
    messages.RepositoryModelLoadRequest, messages.RepositoryModelUnloadRequest, ServerReflectionRequest,
    HealthCheckRequest,
]  # fmt: skip
METHODS = {
    f"/{messages.INFERENCE_SERVICE}/ModelInfer": messages.ModelInferRequest,
    f"/{messages.INFERENCE_SERVICE}/ModelStreamInfer": messages.ModelInferRequest,
    f"/{messages.INFERENCE_SERVICE}/ModelMetadata": messages.ModelMetadataRequest,
    f"/{messages.INFERENCE_SERVICE}/RepositoryModelLoad": messages.RepositoryModelLoadRequest,
    f"/{ML_SERVICE}/PredictModelStream": PREDICTION,
    f"/{REFLECTION_SERVICE}/ServerReflectionInfo": ServerReflectionRequest,
    f"/{HEALTH_SERVICE}/Check": HealthCheckRequest,
}


def values(descriptor: Descriptor) -> st.SearchStrategy[dict[str, Any]]:
    """Arguments that a message can be made of: some of its fields, one of them, or what makes a tensor whole."""
    fields = {field.name: _value(field) for field in descriptor.fields}
    some = st.fixed_dictionaries({}, optional=fields)
    if "datatype" in fields:
        shapes = st.lists(st.sampled_from([-1, 0, 1, 2, 3]), min_size=1, max_size=2)
        return some | st.fixed_dictionaries({**fields, "shape": shapes})
    return some | st.one_of([st.fixed_dictionaries({name: value}) for name, value in fields.items()])


def _value(field: FieldDescriptor) -> st.SearchStrategy[Any]:
    inner = field.message_type
    if field.name == "datatype":
        return st.sampled_from(DATATYPES)
    if inner is not None and inner.GetOptions().map_entry:
        value = inner.fields_by_name["value"].message_type
        assert value is not None
        return st.dictionaries(TEXTS, values(value), max_size=2)
    if inner is not None:
        one: st.SearchStrategy[Any] = values(inner)
    elif field.cpp_type == FieldDescriptor.CPPTYPE_STRING:
        one = ELEMENTS if field.type == FieldDescriptor.TYPE_BYTES else TEXTS
    else:
        one = KINDS.get(field.cpp_type, st.just(0))
    return st.lists(one, max_size=3) if field.is_repeated else one


def serialized(message_class: Any) -> st.SearchStrategy[bytes]:
    """Messages as protobuf writes them, whole and damaged, and bytes of any kind."""
    whole = values(message_class.DESCRIPTOR).map(lambda fields: bytes(message_class(**fields).SerializeToString()))
    pieces = st.lists(st.sampled_from(PIECES) | st.binary(max_size=9), max_size=6).map(b"".join)
    return whole | st.builds(edited, whole, edits(PIECES)) | pieces


def refused(read: Callable[[], object]) -> bool:
    try:
        read()
    except InvalidRequest as error:
        assert error.reason
        return True
    return False


def understood(message_class: Any, data: bytes) -> Any:
    """The message as protobuf reads it; None where it does not."""
    with suppress(DecodeError):
        return message_class.FromString(data)
    return None


def parts(message: Message) -> int:
    """How many objects protobuf has made of the fields of a message, the numbers aside."""
    count = 0
    for field, value in message.ListFields():
        if field.message_type is not None and field.message_type.GetOptions().map_entry:
            count += sum(1 + parts(entry) for entry in value.values())
        elif field.message_type is not None:
            count += sum(1 + parts(each) for each in (value if field.is_repeated else [value]))
        elif field.cpp_type == FieldDescriptor.CPPTYPE_STRING:
            count += len(value) if field.is_repeated else 1
    return count


def read_inference(data: bytes) -> None:
    """Whatever is read is what protobuf reads, and refused before it has more parts than it may have."""
    refused(lambda: inference_request(read_request(data), {}))
    whole = understood(messages.ModelInferRequest, data)
    if not refused(lambda: read_head(data)) and whole is not None:
        head = read_head(data)
        assert (head.model_name, head.model_version) == (whole.model_name, whole.model_version)
        assert head.is_raw == bool(whole.raw_input_contents)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(protobuf_wire, "MAX_FIELDS", 8)
        if whole is not None and not refused(lambda: read_request(data)):
            assert parts(whole) <= max(8, len(data) // 8)


def read_prediction(data: bytes) -> None:
    if not refused(lambda: read_predict_request(data)) and (whole := understood(PREDICTION, data)) is not None:
        request = read_predict_request(data)
        assert request.model_id == whole.model_id
        assert all(isinstance(value, str) for value in request.parameters.values())


@pytest.mark.parametrize("case", corpus("grpc"))
def test_a_message_that_once_failed_is_read_or_refused(case: dict[str, str]) -> None:
    data = case["message"].encode("latin-1")
    read_inference(data)
    read_prediction(data)


@tries(400)
@given(serialized(messages.ModelInferRequest))
def test_an_inference_is_read_or_refused(data: bytes) -> None:
    show("grpc", message=data.decode("latin-1"))
    read_inference(data)


@tries(300)
@given(serialized(PREDICTION))
def test_a_prediction_is_read_or_refused(data: bytes) -> None:
    show("grpc", message=data.decode("latin-1"))
    read_prediction(data)


@pytest.mark.parametrize("message_class", SMALL, ids=lambda message_class: message_class.DESCRIPTOR.name)
def test_a_message_without_tensors_is_read_or_refused(message_class: Any) -> None:
    @tries(60)
    @given(serialized(message_class))
    def read(data: bytes) -> None:
        show("grpc", message=data.decode("latin-1"))
        refused(lambda: parse(message_class, data))

    read()


@pytest.fixture(scope="module")
def channel(fuzzed: Sidecar) -> Any:
    fuzzed.create_model(openai("http://127.0.0.1:1"), name=MODEL)
    with grpc.insecure_channel(grpc_address(fuzzed)) as opened:
        yield opened


@pytest.mark.parametrize("method", METHODS)
def test_a_port_serves_or_refuses_any_message(fuzzed: Sidecar, channel: Any, method: str) -> None:
    call = channel.stream_stream(method, None, None)  # on the wire a unary call looks the same
    message_class: Any = METHODS[method]
    good = st.just(bytes(message_class(**{message_class.DESCRIPTOR.fields[0].name: MODEL}).SerializeToString()))

    @tries(30)
    @given(st.builds(bytes.__add__, good, serialized(message_class)))
    def send(data: bytes) -> None:
        show("grpc", message=data.decode("latin-1"))
        responses = call(iter([data]), timeout=30)
        with suppress(grpc.RpcError):
            list(responses)
        assert responses.code() not in (grpc.StatusCode.UNKNOWN, grpc.StatusCode.DEADLINE_EXCEEDED)

    send()
    assert is_well(fuzzed)
