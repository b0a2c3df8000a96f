"""Make the response of a V2 inference from whole predictions, `{"inference_results": [{"output": [...]}]}`.

Texts become one tensor of strings, embeddings one of floats; tensors of a provider with V2 stay as they are. Any other
JSON becomes a tensor of JSON texts.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import orjson

from opensearch_ml_stream.connectors.chunks import Chunk, Ending
from opensearch_ml_stream.connectors.errors import InvalidBody, InvalidRequest
from opensearch_ml_stream.connectors.syntax.jsontext import to_json
from opensearch_ml_stream.connectors.unstreamed_response import decode_whole_response
from opensearch_ml_stream.connectors.wire_format import ending_fields
from opensearch_ml_stream.extensions.v2.protocol.json_requests import read_tensor
from opensearch_ml_stream.extensions.v2.protocol.json_responses import STRING
from opensearch_ml_stream.extensions.v2.protocol.messages import InferenceResponse, ResponseShape, Tensor
from opensearch_ml_stream.extensions.v2.protocol.request_members import as_list, optional_object
from opensearch_ml_stream.extensions.v2.protocol.stream_events import further_tensors, text_tensors

_JSON = {"content_type": "json"}
_DATATYPES = {
    "FLOAT32": "FP32",
    "FLOAT64": "FP64",
    "INT8": "INT8",
    "UINT8": "UINT8",
    "INT32": "INT32",
    "INT64": "INT64",
}

_Output = Mapping[str, Any]
_Text = tuple[Chunk, Ending | None]


def inference_response(shape: ResponseShape, predictions: Sequence[Mapping[str, Any]]) -> InferenceResponse:
    """Return the response to a request that asked for these predictions, in their order.

    Of several texts, `parameters` has the usage of all together, the first finish reason that is not `stop`, and each
    warning once.
    """
    outputs = [output for one in predictions for result in one["inference_results"] for output in result["output"]]
    response = _response(shape, outputs)
    fields: dict[str, Any] = {}
    if answered_by := [one["model_id"] for one in predictions if "model_id" in one]:
        fields["model_id"] = answered_by[-1]
    if warnings := dict.fromkeys(warning for one in predictions for warning in one.get("warnings", ())):
        fields["warnings"] = list(warnings)
    return replace(response, parameters={**response.parameters, **fields}) if fields else response


def _response(shape: ResponseShape, outputs: Sequence[_Output]) -> InferenceResponse:
    if (vectors := _vectors(shape, outputs)) is not None:
        return InferenceResponse(shape, [vectors])
    if len(outputs) == 1 and (own := _own_tensors(shape, outputs[0])) is not None:
        return own
    texts = [text for output in outputs if (text := _text(output)) is not None]
    if len(texts) < len(outputs) or not texts:
        return InferenceResponse(shape, _of_strings(shape, [_json(output) for output in outputs], _JSON))
    strings = _of_strings(shape, [chunk.text for chunk, _ in texts], STRING)
    return InferenceResponse(shape, [*strings, *_further(texts)], _parameters(texts))


def _vectors(shape: ResponseShape, outputs: Sequence[_Output]) -> Tensor | None:
    """Return the tensor [n, d] of n embeddings or scores; None if they differ in kind, or are something else."""
    kinds: set[tuple[str, tuple[int, ...]]] = {
        (str(output.get("data_type")), tuple(output.get("shape") or ())) for output in outputs
    }
    if len(kinds) != 1:
        return None
    data_type, lengths = kinds.pop()
    if data_type not in _DATATYPES or len(lengths) != 1:
        return None
    values: list[Any] = []
    for output in outputs:
        if not isinstance(output.get("data"), list):
            return None
        values += output["data"]
    return Tensor(shape.output, _DATATYPES[data_type], [len(outputs), *lengths], values)


def _own_tensors(shape: ResponseShape, output: _Output) -> InferenceResponse | None:
    """Return the response of a provider with V2, under our name and id; None for any other."""
    body = output.get("dataAsMap")
    if not isinstance(body, dict) or "outputs" not in body:
        return None
    try:
        tensors = [read_tensor(value, ()) for value in as_list(body["outputs"], ())]
        parameters = optional_object(body, "parameters", ())
    except (InvalidBody, InvalidRequest):
        return None
    return InferenceResponse(shape, tensors, {name: value for name, value in parameters.items() if name != "headers"})


def _text(output: _Output) -> _Text | None:
    """Return the text of a provider's response, whole or after a `response_filter`; None if it has none."""
    body = output.get("dataAsMap")
    if not isinstance(body, dict):
        return None
    if body.keys() == {"response"}:
        return (Chunk(body["response"]), None) if isinstance(body["response"], str) else None
    return decode_whole_response(body)


def _json(output: _Output) -> str:
    body = output.get("dataAsMap", output)
    if isinstance(body, dict) and body.keys() == {"response"}:
        body = body["response"]
    return to_json(body).decode()


def _of_strings(shape: ResponseShape, strings: Sequence[str], parameters: Mapping[str, Any]) -> list[Tensor]:
    tensors = text_tensors(shape, "")
    return [
        replace(one, shape=[len(strings), 1], data=strings, parameters=parameters) if one.name == shape.output else one
        for one in tensors
    ]


def _further(texts: Sequence[_Text]) -> list[Tensor]:
    """Return reasoning and tool calls: for one text as in a stream, for several an element for each."""
    chunks = [chunk for chunk, _ in texts]
    if len(chunks) == 1:
        return further_tensors(chunks[0])
    calls = [[call.as_dict() for call in chunk.tool_calls] for chunk in chunks]
    columns = {
        "reasoning": [chunk.reasoning for chunk in chunks],
        "tool_calls": [orjson.dumps(one).decode() if one else "" for one in calls],
    }
    return [Tensor(name, "BYTES", [len(chunks), 1], data, STRING) for name, data in columns.items() if any(data)]


def _parameters(texts: Sequence[_Text]) -> dict[str, Any]:
    fields = [ending_fields(ending, {}) for _, ending in texts if ending is not None]
    if len(fields) <= 1:
        return fields[0] if fields else {}
    ending = next((one for one in fields if one["finish_reason"] != "stop"), fields[0])
    usage: dict[str, int] = {}
    for one in fields:
        for name, count in one.get("usage", {}).items():
            usage[name] = usage.get(name, 0) + count
    return {**ending, **({"usage": usage} if usage else {})}
