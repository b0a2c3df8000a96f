"""Runs models and calls on MLServer's Python interface, and prints what came of each, as JSON.

Whoever runs it chooses what `mlserver` is: MLServer itself, or this project's own interface. Both must print the same.
"""

# mypy: ignore-errors

import asyncio
import json
import os
import sys
from collections.abc import Callable
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

import interface_models
import numpy as np
import pandas as pd
from mlserver import MLModel, ModelSettings, Settings, types
from mlserver.codecs import (
    Base64Codec,
    DatetimeCodec,
    NumpyCodec,
    NumpyRequestCodec,
    PandasCodec,
    StringCodec,
    StringRequestCodec,
)
from mlserver.codecs.json import encode_to_json, encode_to_json_bytes
from mlserver.handlers import get_custom_handlers
from mlserver.settings import ModelParameters

from opensearch_ml_stream.runtimes.interface import wire

OURS = MLModel.__module__ != "mlserver.model"
FOLDER = Path(__file__).parent
TENSOR = {"name": "x", "shape": [2, 2], "datatype": "FP32", "data": [1, 2, 3, 4]}
TEXT = {
    "name": "prompt",
    "shape": [1],
    "datatype": "BYTES",
    "data": ["Grüße an alle"],
    "parameters": {"content_type": "str"},
}
TABLE = [
    {"name": "x", "shape": [2, 1], "datatype": "INT64", "data": [1, 2]},
    {"name": "name", "shape": [2, 1], "datatype": "BYTES", "data": ["a", "b"]},
]
REQUESTS: list[tuple[str, dict[str, Any]]] = [
    ("Sum", {"inputs": [TENSOR]}),
    ("Sum", {"id": "r1", "inputs": [TENSOR], "parameters": {"explain": True, "headers": None}}),
    ("Sum", {"inputs": [{**TENSOR, "shape": [3, 3]}]}),
    ("Sum", {"inputs": [{**TENSOR, "data": [[1, 2], [3, None]], "parameters": {"content_type": "np"}}]}),
    ("HelloJson", {"inputs": [{"name": "j", "shape": [1], "datatype": "BYTES", "data": ['{"a": [1]}']}]}),
    ("HelloJson", {"inputs": [{"name": "j", "shape": [1], "datatype": "BYTES", "data": ["{"]}]}),
    ("Hinted", {"inputs": [{**TEXT, "name": "names"}]}),
    ("Hinted", {"inputs": [{**TEXT, "name": "names"}, {**TENSOR, "name": "factors"}]}),
    ("Hinted", {"inputs": [TEXT]}),
    ("HintedPair", {"inputs": TABLE}),
    ("Fitted", {"inputs": [TENSOR]}),
    ("Fitted", {"inputs": [TENSOR], "outputs": [{"name": "a"}, {"name": "b", "parameters": {"content_type": "np"}}]}),
    ("Fitted", {"inputs": [TENSOR], "outputs": [{"name": "impossible"}]}),
    ("Fitted", {"inputs": [TENSOR, {**TENSOR, "name": "y"}], "parameters": {"content_type": "np"}}),
    ("Fitted", {"inputs": [TABLE[0]], "parameters": {"content_type": "pd"}}),
    ("Frame", {"inputs": [TABLE[0], {**TABLE[0], "name": "y", "datatype": "FP32", "data": [1.5, None]}]}),
    ("Frame", {"inputs": [{**TABLE[1], "data": ['{"a":1}', "[2]"], "parameters": {"content_type": "pd_json"}}]}),
    ("Words", {"inputs": [TEXT]}),
    ("Words", {"inputs": [TEXT, TEXT]}),
    ("Words", {"inputs": []}),
]
MALFORMED: list[Any] = [
    {},
    [],
    {"inputs": None},
    {"inputs": [3]},
    {"inputs": [{}], "id": 3},
    {"inputs": [{**TENSOR, "datatype": "TEXT", "shape": [1, "x", 2.5]}], "parameters": 4},
    {"inputs": [{**TENSOR, "shape": "4", "name": None, "parameters": {"content_type": 3, "headers": []}}]},
    {"inputs": [], "outputs": [{"nome": "x"}]},
]
VALUES: list[tuple[Any, Any]] = [
    (StringCodec, ["a", "ü"]),
    (StringCodec, []),
    (Base64Codec, [b"\x00\xff", b"text"]),
    (DatetimeCodec, ["2024-01-02T03:04:05", datetime(2024, 1, 2, 3)]),
    (NumpyCodec, np.array([[1.5, np.nan]], dtype="float32")),
    (NumpyCodec, np.array([1, 2, 3])),
    (NumpyCodec, np.array(True).reshape(1)),
    (NumpyCodec, np.array(["a", "bc"])),
    (NumpyCodec, np.array([b"ab", b"cd"])),
    (NumpyCodec, np.array(["a", b"b"], dtype=object)),
    (NumpyCodec, np.zeros((2, 3, 4), dtype="uint8")),
    (NumpyCodec, np.array([1j])),
    (StringRequestCodec, ["a"]),
    (NumpyRequestCodec, np.array([1, 2])),
    (PandasCodec, pd.DataFrame({"a": [1, 2], "b": pd.Series(["x", "y"], dtype=object), "d": [{"k": 1}, [2]]})),
    (PandasCodec, pd.DataFrame({"a": [1.5, None], "b": [True, False]})),
]
CALLS: dict[str, Callable[[], Any]] = {
    "shape of anything": lambda: types.ResponseOutput(
        name="x", shape=(1, 2.0, "3", True), datatype="INT8", data=(1, 2)
    ),
    "data of a dictionary": lambda: types.TensorData({"a": 1}).model_dump(),
    "data alone": lambda: types.TensorData([b"a", types.Datatype.BYTES]).model_dump_json(),
    "data is copied": lambda: (lambda values: types.TensorData(values).root is values)([1]),
    "datatype is a value": lambda: types.MetadataTensor(name="a", datatype=types.Datatype.FP64, shape=[-1]).datatype,
    "other parameters": lambda: types.Parameters(a=1, _b=None, headers={"x": None}),
    "other parameters dumped": lambda: types.Parameters(a=1, _b=None, headers={"x": None}).model_dump(),
    "other parameters in full": lambda: types.Parameters(a=1, _b=None).dict(),
    "other parameters alone": lambda: types.Parameters(a=1, _b=None).model_extra,
    "parameters of bytes": lambda: types.Parameters(content_type=b"str").content_type,
    "text": lambda: str(types.InferenceRequest(inputs=[])),
    "json": lambda: types.InferenceRequest(inputs=[], id="a").json(),
    "json, short": lambda: types.InferenceRequest(inputs=[], id=None).model_dump_json(),
    "json mode": lambda: types.ResponseOutput(name="x", shape=[1], datatype="BYTES", data=[b"\xc3\xbc"]).model_dump(
        mode="json"
    ),
    "unset": lambda: types.InferenceRequest(inputs=[], id=None).model_dump(exclude_none=False),
    "chosen": lambda: types.RequestOutput(name="x", parameters={"a": 1}).model_dump(exclude={"parameters"}),
    "included": lambda: types.RequestOutput(name="x", parameters={"a": 1}).model_dump(include={"parameters"}),
    "equal": lambda: types.RequestOutput(name="x") == types.RequestOutput(name="x", parameters=None),
    "not equal": lambda: types.RequestOutput(name="x") == types.RequestOutput(name="y"),
    "copied": lambda: types.RequestOutput(name="x").model_copy(update={"name": "y"}),
    "pairs": lambda: dict(types.RequestOutput(name="x")),
    "given": lambda: sorted(types.RequestOutput(name="x", parameters=None).model_fields_set),
    "fields": lambda: list(types.InferenceResponse.model_fields),
    "unknown dropped": lambda: types.RequestOutput(name="x", other=1),
    "unknown refused": lambda: setattr(types.RequestOutput(name="x"), "other", 1),
    "missing": lambda: types.RequestOutput(name="x").other,
    "parsed": lambda: types.RequestOutput.parse_obj({"name": "x"}),
    "index": lambda: types.RepositoryIndexResponse([{"name": "a", "state": "READY", "reason": ""}]).model_dump(),
    "index item": lambda: (
        types.RepositoryIndexResponse([{"name": "a", "state": types.State.READY, "reason": ""}])[0].state
    ),
    "settings": lambda: interface_models.settings_of(name="m", max_batch_time=1, parameters={"zz": 1}),
    "settings as file": lambda: interface_models.settings_of(name="m", inputs=[TENSOR], max_batch_size="7").dict(),
    "settings in full": lambda: interface_models.settings_of(warm_workers="yes", unknown=1).model_dump(),
    "settings as JSON": lambda: interface_models.settings_of(parameters={"version": "v1", "extra": {"a": []}}).json(),
    "settings, no implementation": lambda: ModelSettings(name="m"),
    "settings, wrong": lambda: interface_models.settings_of(max_batch_size="x", warm_workers="7", versions=None),
    "settings, wrong version": lambda: interface_models.settings_of(parameters={"version": 1}),
    "settings, assigned": lambda: assigned(interface_models.settings_of(parameters={})),
    "class of a name": lambda: ModelSettings(implementation="interface_models.Sum").implementation.__name__,
    "server": lambda: Settings(),
    "server, wrong": lambda: Settings(http_port="80x", debug=7),
    "environment": lambda: in_environment(
        lambda: (ModelSettings(parameters={}), Settings(), ModelSettings(name="given"))
    ),
    "own defaults": lambda: (ModelParameters().extra.update(a=1), ModelParameters().extra),
    "handlers": lambda: [
        route for route, _ in get_custom_handlers(interface_models.Words(interface_models.settings_of()))
    ],
    "to JSON": lambda: encode_to_json_bytes({"a": [b"x", 1.5, None, True, "ü"], "b": (1, 2)}),
    "array to JSON": lambda: encode_to_json({"a": np.array([1.5]), "b": np.int64(3)}),
}


def assigned(settings: Any) -> Any:
    settings.name = "other"
    settings.implementation = interface_models.Words
    settings.parameters.foo = 3
    settings.parameters.extra = {"a": 1}
    return settings.dict()


def in_environment(call: Callable[[], Any]) -> Any:
    variables = {
        "MLSERVER_MODEL_NAME": "of-environment",
        "MLSERVER_MODEL_IMPLEMENTATION": "a.B",
        "mlserver_model_platform": "lower",
        "MLSERVER_MODEL_URI": "./weights",
        "MLSERVER_MODEL_EXTRA": '{"a": 1}',
        "MLSERVER_MODEL_INPUTS": json.dumps([TENSOR]),
        "MLSERVER_EXTENSIONS": '["a"]',
        "MLSERVER_DEBUG": "false",
        "MLSERVER_PARALLEL_WORKERS": "3",
        "MLSERVER_CORS_SETTINGS": '{"allow_origins": ["*"]}',
        "MLSERVER_LOGGING_SETTINGS": "a.ini",
    }
    os.environ.update(variables)
    try:
        return call()
    finally:
        for name in variables:
            del os.environ[name]


def model(name: str) -> Any:
    folder = FOLDER / name
    folder.mkdir(exist_ok=True)
    (folder / "weights.json").write_text('{"factor": 3}')
    inputs = [{"name": "x", "datatype": "FP32", "shape": [-1], "parameters": {"content_type": "np"}}]
    parameters = {"uri": ".", "version": "v7"}
    settings = {"name": name.lower(), "implementation": f"interface_models.{name}", "parameters": parameters}
    (folder / "model-settings.json").write_text(json.dumps({**settings, "inputs": inputs if name == "Fitted" else []}))
    loaded = ModelSettings.parse_file(str(folder / "model-settings.json"))
    return loaded.implementation(loaded)


def run(name: str, request: dict[str, Any]) -> list[str]:
    return asyncio.run(answers(name, request))


async def answers(name: str, request: dict[str, Any]) -> list[str]:
    """The responses as MLServer's REST port sends them."""
    instance = model(name)
    assert await instance.load()
    payload = wire.decode_request(types, json.dumps(request).encode())

    async def payloads() -> Any:
        yield payload

    responses = [await instance.predict(payload)]
    if name == "Words":
        responses += [response async for response in instance.predict_stream(payloads())]
    return [sent(response, payload.id) for response in responses]


def sent(response: Any, request_id: str | None) -> str:
    encoded = wire.encode_response(response, model_name="unused", request_id=request_id)
    if not OURS:
        from mlserver.rest.responses import ServerSentEvent

        response.id = request_id or response.id
        response.parameters = response.parameters or types.Parameters()  # as its REST port, for headers
        assert ServerSentEvent(response).encode() == b"data: " + encoded + b"\n\n", encoded
    return encoded.decode()


def round_trip(codec: Any, value: Any) -> Any:
    assert codec.can_encode(value) or codec is DatetimeCodec
    outcomes: list[Any] = []
    for options in ({}, {"use_bytes": False}):
        if hasattr(codec, "encode_response"):
            response, request = (
                codec.encode_response("m", value, "v1", **options),
                codec.encode_request(value, **options),
            )
            outcomes += [response, request, codec.decode_response(response), codec.decode_request(request)]
        else:
            output, tensor = codec.encode_output("n", value, **options), codec.encode_input("n", value, **options)
            outcomes += [output, tensor, codec.decode_output(output), codec.decode_input(tensor)]
    return outcomes


def outcome(call: Callable[[], Any]) -> str:
    try:
        return shown(call())
    except Exception as error:  # noqa: BLE001  # whatever it is: the other side must raise it too
        status = getattr(error, "status_code", None)
        lines = [line for line in str(error).splitlines() if "For further information" not in line]
        return f"{type(error).__name__} {status}: " + "\n".join(lines)


def shown(value: Any) -> str:
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(shown, value)) + "]"
    return f"{value!r} {value.dtype}" if isinstance(value, np.ndarray) else repr(value)


def main() -> dict[str, str]:
    outcomes = {name: outcome(call) for name, call in CALLS.items()}
    for number, (codec, value) in enumerate(VALUES):
        outcomes[f"{codec.__name__} {number}"] = outcome(partial(round_trip, codec, value))
    for number, (name, request) in enumerate(REQUESTS):
        outcomes[f"{name} {number}"] = outcome(partial(run, name, request))
    for number, request in enumerate(MALFORMED):
        outcomes[f"malformed {number}"] = outcome(partial(wire.decode_request, types, json.dumps(request).encode()))
        outcomes[f"malformed type {number}"] = outcome(partial(types.InferenceRequest.model_validate, request))
    for name in sys.modules["mlserver.codecs"].__all__:
        outcomes[f"codecs.{name}"] = str(hasattr(sys.modules["mlserver.codecs"], name))
    outcomes["package"] = MLModel.__module__
    return outcomes


if __name__ == "__main__":
    json.dump(main(), sys.stdout)
