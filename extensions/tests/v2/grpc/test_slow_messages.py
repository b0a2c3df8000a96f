"""Search for messages of the gRPC port that take longer to read than their size allows."""

import re
from collections.abc import Callable

import pytest

from opensearch_ml_stream.connectors.documents import Action
from opensearch_ml_stream.connectors.errors import MLStreamError
from opensearch_ml_stream.connectors.predict.model_inputs import find_model_inputs
from opensearch_ml_stream.connectors.protobuf_wire import varint
from opensearch_ml_stream.connectors.rendering.template import ConnectorParameters
from opensearch_ml_stream.extensions.ml_service.predict_messages import read_predict_request
from opensearch_ml_stream.extensions.v2.grpc import inference_messages as messages
from opensearch_ml_stream.extensions.v2.grpc.request_messages import inference_request, read_head, read_request
from opensearch_ml_stream.extensions.v2.protocol.predict_inputs import predict_inputs
from opensearch_ml_stream.extensions.v2.service.stored_inference_models import MAX_BYTES_AT_ONCE
from opensearch_ml_stream.plugin.grpc_port.messages import parse
from tests.slow_inputs.derivations import Grammar
from tests.slow_inputs.search import Subject, check

pytestmark = pytest.mark.slow

_THREAD_SECONDS = 0.4  # for each MiB: streams go on meanwhile, and other large requests wait
_TOKEN = re.compile(r"(\d+)(?:\{|=(\d+)|\"([^\"]*)\")|\}|%([0-9a-f]{2})")
# `1"x"` is a string in field 1, `2=7 ` a number, `3{...}` a message, `%ff` a byte as it is.
_FIELDS: Grammar = {
    "request": ["<field>", "<request><request>"],
    "field": ['1"m"', '2"<chars>"', '3"<chars>"', "4{<parameter>}", "5{<tensor>}", "6{<output>}", '7"<chars>"',
              '5{1"<chars>"2"BYTES"3=1}7"<text>"', '5{2"<datatype>"3=<number> 5{<contents>}}', "<odd>"],
    "tensor": ['1"<chars>"', '2"<datatype>"', "3=<number> ", '3"<chars>"', "4{<parameter>}", "5{<contents>}", "<odd>",
               "<tensor><tensor>"],
    "output": ['1"<chars>"', "2{<parameter>}", "<output><output>"],
    "parameter": ['1"<chars>"', '1"<chars>"2{<choice>}', "2{<choice>}", "<parameter><parameter>"],
    "choice": ["1=1 ", "2=<number> ", '3"<chars>"', "4=<number> ", "<choice><choice>"],
    "contents": ['<number>"<chars>"', "<number>=<number> ", '8"<chars>"', "<contents><contents>"],
    "text": ["\1\0\0\0a", "\0\0\0\0", "<text><text>"],
    "datatype": ["BYTES", "INT64", "FP32", "BOOL", "UINT8", "FP16"],
    "number": ["0", "1", "3", "7", "9223372036854775808", "18446744073709551615"],
    "odd": ["%0b", "%0c", "99{<request>}", '536870911"<chars>"', "%ff", "15=<number> "],
    "chars": ["", "a", "é", "\0", "\1", "\2", "<chars><chars>"],
}  # fmt: skip
_PREDICTION: Grammar = {
    **_FIELDS,
    "request": ['1"m"3{<body>}', "<request><request>", "3{<body>}", "<odd>"],
    "body": ["1{<parameters>}", "<body><body>"],
    "parameters": ["1{<message>}", '2"<chars>"', '3"<chars>"', '4"<chars>"', "<parameters><parameters>", "<odd>"],
    "message": ['1"<chars>"', '2"<chars>"', "<message><message>"],
}
_ACTION = Action("PREDICT", "POST", "https://h/", request_body='{"inputs":${parameters.tensors}}')
_INPUTS = find_model_inputs(_ACTION, ConnectorParameters.compile({}))


def _bytes(text: str) -> bytes:
    """Return the message that is written as above."""
    open_messages = [(b"", bytearray())]
    for token in _TOKEN.finditer(text):
        number, value, chars, byte = token.groups()
        inner = open_messages[-1][1]
        if byte is not None:
            inner += bytes.fromhex(byte)
        elif number is None:  # the end of a message
            tag, content = open_messages.pop()
            open_messages[-1][1].extend(tag + varint(len(content)) + content)
        elif value is not None:
            inner += varint(int(number) << 3) + varint(int(value))
        elif chars is not None:
            content = bytearray(chars.encode("utf-8", "surrogatepass"))
            inner += varint(int(number) << 3 | 2) + varint(len(content)) + content
        else:
            open_messages.append((varint(int(number) << 3 | 2), bytearray()))
    return bytes(open_messages[0][1])


def _infer(data: bytes) -> None:
    predict_inputs(inference_request(read_request(data), {}), _INPUTS)


def _infer_in_the_event_loop(data: bytes) -> None:
    read_head(data)
    if len(data) <= MAX_BYTES_AT_ONCE:
        _infer(data)


def _predict_in_the_event_loop(data: bytes) -> None:
    if len(data) <= MAX_BYTES_AT_ONCE:
        read_predict_request(data)


def _load(data: bytes) -> None:
    parse(messages.RepositoryModelLoadRequest, data)


@pytest.mark.parametrize(
    ("name", "grammar", "read", "seconds"),
    [
        ("requests", _FIELDS, _infer_in_the_event_loop, 0.05),
        ("large requests", _FIELDS, _infer, _THREAD_SECONDS),
        ("predictions", _PREDICTION, _predict_in_the_event_loop, 0.05),
        ("large predictions", _PREDICTION, read_predict_request, _THREAD_SECONDS),
        ("loads", {**_FIELDS, "field": ["3{<parameter>}", '1"<chars>"']}, _load, 0.05),
    ],
)
def test_no_message_takes_more_than_its_time(
    name: str, grammar: Grammar, read: Callable[[bytes], object], seconds: float
) -> None:
    check(Subject(name, grammar, ("request",), read, (MLStreamError,), _bytes, seconds))
