"""Search for slow requests of the V2 protocol, and for slow responses to make its tensors of."""

from functools import partial

import pytest

from opensearch_ml_stream.connectors.documents import Action
from opensearch_ml_stream.connectors.errors import MLStreamError
from opensearch_ml_stream.connectors.predict import post_process
from opensearch_ml_stream.connectors.predict.model_inputs import find_model_inputs
from opensearch_ml_stream.connectors.rendering.template import ConnectorParameters
from opensearch_ml_stream.extensions.v2.protocol.json_requests import Dialect, read_request
from opensearch_ml_stream.extensions.v2.protocol.json_responses import response_body
from opensearch_ml_stream.extensions.v2.protocol.messages import ResponseShape
from opensearch_ml_stream.extensions.v2.protocol.predict_inputs import predict_inputs
from opensearch_ml_stream.extensions.v2.protocol.predict_outputs import inference_response
from tests.slow_inputs.derivations import Grammar
from tests.slow_inputs.search import Subject, check

pytestmark = pytest.mark.slow

_JSON: Grammar = {
    "json": ["<atom>", "[<items>]", "[]", "{<members>}", "{}", '"<chars>"'],
    "items": ["<json>", "<items>,<items>"],
    "members": ['"<chars>":<json>', "<members>,<members>"],
    "atom": ["1", "-0.5", "1e400", "99999999999999999999", "true", "null"],
    "chars": ["", "<chars><char>"],
    "char": ["a", "é", r"\n", r"\"", r"\\", "😀", "[", "{", ",", "SGk="],
}
_REQUEST: Grammar = {
    **_JSON,
    "body": [
        '{"inputs":[<tensors>]}', '{"inputs":[<tensors>],"parameters":{<parameters>}}', '{"text_input":[<texts>]}',
        '{"text_input":"<chars>",<parameters>}', '{"inputs":[<chat>]}', '{"inputs":[<chat>,<tensors>]}', "<json>",
    ],
    "tensors": ["<tensor>", "<tensors>,<tensors>"],
    "tensor": [
        '{"name":"<name>","shape":[<shape>],"datatype":"<datatype>","data":[<data>]}',
        '{"name":"<name>","shape":[-1],"datatype":"BYTES","data":[<texts>],"parameters":{"content_type":"base64"}}',
        '{"name":"<name>","shape":[-1],"datatype":"INT8","data":[<numbers>]}',
    ],
    "chat": [
        '{"name":"role","shape":[-1],"datatype":"BYTES","data":[<texts>]},'
        '{"name":"content","shape":[-1],"datatype":"BYTES","data":[<texts>]},'
        '{"name":"<aligned>","shape":[-1],"datatype":"BYTES","data":[<texts>]}'
    ],
    "aligned": ["type", "tool_calls", "tool_call_id", "name"],
    "name": ["inputs", "role", "content", "tools", "n", "<chars>"],
    "datatype": ["BYTES", "INT64", "FP32", "BOOL"],
    "shape": ["1", "-1", "0", "9223372036854775807", "<shape>,<shape>"],
    "data": ["<texts>", "<numbers>", "[<data>]", "[<data>],[<data>]"],
    "texts": ['"<chars>"', '"[\\"text\\"]"', "<texts>,<texts>"],
    "numbers": ["1", "0.5", "null", "<numbers>,<numbers>"],
    "parameters": ['"<name>":<json>', '"llm_parameters":{<parameters>}', '"llm_parameters":"<chars>"',
                   "<parameters>,<parameters>"],
}  # fmt: skip
_RESPONSE: Grammar = {
    **_REQUEST,
    "response": [
        '{"outputs":[<tensors>]}', '{"data":[<embeddings>]}', '{"choices":[{"message":{"content":"<chars>"}}]}',
        '{"choices":[{"message":{"tool_calls":[<items>]}}]}', "<json>",
    ],
    "embeddings": ['{"embedding":[<numbers>]}', "<embeddings>,<embeddings>"],
}  # fmt: skip
_CHAT = '[{"role":"user","content":[{"text":"${parameters.inputs}"}]}]'
_TEMPLATES: tuple[tuple[str, dict[str, str]], ...] = (
    ('{"a":"${parameters.inputs}","n":${parameters.n}}', {}),
    ('{"messages":${parameters.messages},"tools":${parameters.tools:-null}}', {"messages": _CHAT}),
    ('{"messages":${parameters.messages}}', {}),
    ('{"inputs":${parameters.tensors}}', {}),
)
_SHAPE = ResponseShape("m", None, "1")


def _read(body: str) -> None:
    request, _ = read_request(body.encode("utf-8", "surrogatepass"))
    for template, values in _TEMPLATES:
        action = Action("PREDICT", "POST", "https://h/", request_body=template)
        try:
            predict_inputs(request, find_model_inputs(action, ConnectorParameters.compile(values)))
        except MLStreamError:
            continue


def _respond(body: str, post_process_function: str | None, dialect: Dialect) -> None:
    action = Action("PREDICT", "POST", "https://h/", post_process_function=post_process_function)
    output = post_process.read_response(action, {}, body.encode("utf-8", "surrogatepass"))
    prediction = {"inference_results": [{"output": output, "status_code": 200}]}
    response_body(inference_response(_SHAPE, [prediction]), dialect)


def test_no_request_takes_more_than_its_time() -> None:
    check(Subject("V2 requests", _REQUEST, ("body",), _read, refusals=(MLStreamError,)))


@pytest.mark.parametrize("dialect", Dialect)
@pytest.mark.parametrize("function", ["connector.post_process.openai.embedding", None])
def test_no_response_takes_more_than_its_time(function: str | None, dialect: Dialect) -> None:
    respond = partial(_respond, post_process_function=function, dialect=dialect)
    check(Subject(f"V2 responses of {function}", _RESPONSE, ("response",), respond, refusals=(MLStreamError,)))
