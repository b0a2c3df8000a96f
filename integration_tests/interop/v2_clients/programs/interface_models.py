"""Models as MLServer's users write them."""

# mypy: ignore-errors

import json
from collections.abc import AsyncIterator
from typing import List, Optional  # noqa: UP035  # as users write it

import numpy as np
import pandas as pd
from mlserver import MLModel, ModelSettings, types
from mlserver.codecs import (
    DecodedParameterName,
    NumpyCodec,
    NumpyRequestCodec,
    PandasCodec,
    StringCodec,
    StringRequestCodec,
    decode_args,
)
from mlserver.errors import InferenceError
from mlserver.handlers import custom_handler
from mlserver.logging import logger
from mlserver.types import InferenceRequest, InferenceResponse, Parameters, RequestOutput, ResponseOutput
from mlserver.utils import get_model_uri


class Sum(MLModel):
    async def predict(self, payload: types.InferenceRequest) -> types.InferenceResponse:
        decoded = self.decode(payload.inputs[0], default_codec=NumpyCodec)
        total = decoded.sum(axis=1, keepdims=True)
        output = types.ResponseOutput(name="total", shape=total.shape, datatype="FP32", data=total.flatten().tolist())
        if payload.parameters is not None and getattr(payload.parameters, "explain", False):
            output.parameters = Parameters(content_type="np", units="m", missing=None)
        return types.InferenceResponse(model_name=self.name, id="own", outputs=[output])


class HelloJson(MLModel):
    """Of MLServer's page on a custom runtime for JSON."""

    async def predict(self, payload: types.InferenceRequest) -> types.InferenceResponse:
        request = self._extract_json(payload)
        response = {"request": request, "server_response": "Got your request. Hello from the server."}
        return types.InferenceResponse(
            id=payload.id,
            model_name=self.name,
            model_version=self.version,
            outputs=[
                types.ResponseOutput(
                    name="echo_response",
                    shape=[1],
                    datatype="BYTES",
                    data=[json.dumps(response).encode("UTF-8")],
                    parameters=types.Parameters(content_type="str"),
                )
            ],
        )

    def _extract_json(self, payload: types.InferenceRequest) -> dict:
        return {inp.name: json.loads("".join(self.decode(inp, default_codec=StringCodec))) for inp in payload.inputs}


class Hinted(MLModel):
    @decode_args
    async def predict(self, names: List[str], factors: Optional[np.ndarray] = None) -> List[str]:  # noqa: UP006, UP045
        return [f"{name} {0 if factors is None else factors.sum()}" for name in names]


class HintedPair(MLModel):
    @decode_args
    async def predict(self, table: pd.DataFrame) -> tuple[np.ndarray, List[str]]:  # noqa: UP006
        return table["x"].to_numpy() * 2, [str(name) for name in table["name"]]


class Fitted(MLModel):
    """As MLServer's runtimes of scikit-learn and its like: decoded by metadata, encoded by what is asked for."""

    async def load(self) -> bool:
        self._read(await get_model_uri(self.settings, wellknown_filenames=["absent.json", "weights.json"]))
        self.loaded_inputs = [tensor.name for tensor in self.inputs]
        logger.info("loaded %s", self.name)
        return True

    def _read(self, path: str) -> None:
        with open(path) as file:
            self.factor = json.load(file)["factor"]

    async def predict(self, payload: InferenceRequest) -> InferenceResponse:
        if any(output.name == "impossible" for output in payload.outputs or []):
            raise InferenceError("no such output")
        decoded = self.decode_request(payload, default_codec=NumpyRequestCodec)
        values = decoded.to_numpy() if isinstance(decoded, pd.DataFrame) else decoded
        wanted = payload.outputs or [RequestOutput(name="predict")]
        return InferenceResponse(
            model_name=self.name,
            model_version=self.version,
            outputs=[self.encode(values * self.factor, output, default_codec=NumpyCodec) for output in wanted],
        )


class Frame(MLModel):
    async def predict(self, payload: InferenceRequest) -> InferenceResponse:
        return self.encode_response(self.decode_request(payload, default_codec=PandasCodec))


class Words(MLModel):
    async def predict(self, payload: InferenceRequest) -> InferenceResponse:
        [text] = self.decode_request(payload, default_codec=StringRequestCodec)
        assert getattr(payload.inputs[0].parameters, DecodedParameterName) == [text]
        return InferenceResponse(
            model_name=self.name,
            parameters=Parameters(content_type="str", headers={"x-a": "b", "x-none": None}),
            outputs=[StringCodec.encode_output("output", [text])],
        )

    async def predict_stream(self, payloads: AsyncIterator[InferenceRequest]) -> AsyncIterator[InferenceResponse]:
        async for payload in payloads:
            for word in self.decode(payload.inputs[0])[0].split():
                response = InferenceResponse(model_name=self.name, outputs=[])
                response.outputs.append(ResponseOutput(name="word", shape=[1], datatype="BYTES", data=[word]))
                yield response

    @custom_handler(rest_path="/words", rest_method="GET")
    async def words(self) -> int:
        return 3


def settings_of(**values: object) -> ModelSettings:
    return ModelSettings(implementation=Sum, **values)
