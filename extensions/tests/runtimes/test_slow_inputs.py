"""Search for slow parameters of runtimes, and for slow responses of theirs."""

from functools import partial

import pytest

from opensearch_ml_stream.connectors.chunks import to_chunk_list
from opensearch_ml_stream.connectors.errors import MLStreamError
from opensearch_ml_stream.connectors.predict.inputs import read_predict_input
from opensearch_ml_stream.connectors.wire_format import NDJSON
from opensearch_ml_stream.extensions.runtimes.protocol.runtime_request import readable_body, request_body
from opensearch_ml_stream.extensions.runtimes.protocol.runtime_stream import RUNTIME_STREAM
from opensearch_ml_stream.extensions.v2.protocol.json_requests import Dialect
from opensearch_ml_stream.extensions.v2.protocol.messages import ResponseShape
from opensearch_ml_stream.extensions.v2.protocol.stream_events import stream_format
from tests.slow_inputs.derivations import Grammar
from tests.slow_inputs.search import Subject, check

pytestmark = pytest.mark.slow

READ_BYTES = 64 * 1024

_JSON: Grammar = {
    "json": ["<atom>", "[<items>]", "[]", "{<members>}", "{}", '"<chars>"'],
    "items": ["<json>", "<items>,<items>"],
    "members": ['"<chars>":<json>', "<members>,<members>"],
    "atom": ["1", "-0.5", "1e400", "99999999999999999999", "true", "null"],
    "chars": ["", "<chars><char>"],
    "char": ["a", "é", r"\n", r"\"", r"\\", "😀", "[", "{", ",", "SGk=", r"\u0000"],
    "tensors": ["<tensor>", "<tensors>,<tensors>"],
    "tensor": [
        '{"name":"<chars>","shape":[1],"datatype":"BYTES","data":[<texts>]}',
        '{"name":"role","shape":[1],"datatype":"BYTES","data":<json>}',
        '{"name":"n","shape":[-1],"datatype":"FP32","data":[<numbers>]}',
        '{"name":"x","shape":[1],"datatype":"BYTES","data":<nested>}',
    ],
    "texts": ['"<chars>"', "<texts>,<texts>"],
    "numbers": ["1", "0.5", "null", "<numbers>,<numbers>"],
    "nested": ['"<chars>"', "[<nested>]", "[<nested>,<nested>]"],
}
_REQUEST: Grammar = {
    **_JSON,
    "body": ['{"parameters":{<parameters>}}', '{"text_docs":[<texts>],"parameters":{<parameters>}}'],
    "parameters": ["<parameter>", "<parameters>,<parameters>"],
    "parameter": [
        '"inputs":"<chars>"', '"inputs":[<tensors>]', '"inputs":[<texts>]', '"prompt":"<chars>"', '"<chars>":<json>',
        '"messages":[<messages>]', '"inference_request":{"inputs":[<tensors>]}', '"<chars>":"<chars>"',
        '"<chars>":"[<digits>]"',
    ],
    "digits": ["7", "<digits>1", "<digits>,<digits>"],
    "messages": ['{"role":"user","content":<json>}', '{"role":"<chars>","content":[<parts>],"tool_calls":<json>}',
                 "<messages>,<messages>"],
    "parts": ['"<chars>"', '{"type":"text","text":"<chars>"}', '{"type":<json>}', "<parts>,<parts>"],
}  # fmt: skip
_STREAM: Grammar = {
    **_JSON,
    "stream": ["<response>\0", "<stream><stream>", "<response>"],
    "response": [
        '{"outputs":[<tensors>]}',
        '{"outputs":[<tensors>],"parameters":{<told>}}',
        '{"error":<json>}',
        "<json>",
    ],
    "told": ['"finish_reason":"<chars>"', '"usage":<json>', '"usage":{"input_tokens":<json>}', "<told>,<told>"],
}

_SHAPE = ResponseShape("m", None, "1", is_local=True)


def _ask(body: str) -> None:
    predict_input = read_predict_input(body.encode("utf-8", "surrogatepass"))
    readable_body(request_body(predict_input.parameters))


def _stream(body: str, dialect: Dialect | None) -> None:
    decoder = RUNTIME_STREAM.decoder()
    wire = NDJSON if dialect is None else stream_format(_SHAPE, dialect)
    data = body.encode("utf-8", "surrogatepass")
    for start in range(0, len(data), READ_BYTES):
        if chunks := decoder.feed(data[start : start + READ_BYTES]):
            wire.chunks(chunks)
            to_chunk_list(chunks)
    decoder.close()


def _trickle(body: str) -> None:
    """Feed a stream in pieces so small that whatever is done again for each shows."""
    decoder = RUNTIME_STREAM.decoder()
    data = body.encode("utf-8", "surrogatepass")
    for start in range(0, len(data), 7):
        decoder.feed(data[start : start + 7])
    decoder.close()


def test_no_parameters_take_more_than_their_time() -> None:
    check(Subject("parameters of runtimes", _REQUEST, ("body",), _ask, refusals=(MLStreamError,)))


@pytest.mark.parametrize("dialect", [None, *Dialect])
def test_no_stream_takes_more_than_its_time(dialect: Dialect | None) -> None:
    check(Subject(f"streams of runtimes as {dialect}", _STREAM, ("stream",), partial(_stream, dialect=dialect)))


def test_no_stream_in_small_pieces_takes_more_than_its_time() -> None:
    check(Subject("streams of runtimes in pieces", _STREAM, ("stream",), _trickle))
