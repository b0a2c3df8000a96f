"""Custom handlers of each kind that both servers have: they are routes of the server."""

from typing import Any

from mlserver import MLModel
from mlserver.codecs import StringCodec
from mlserver.handlers import custom_handler
from mlserver.types import InferenceRequest, InferenceResponse
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import PlainTextResponse


class Handlers(MLModel):
    @custom_handler(rest_path="/sum")
    async def sum(self, payload: list[float]) -> float:
        return sum(payload)

    @custom_handler(rest_path="/lengths")
    def lengths(self, payload: dict[str, str]) -> dict[str, int]:
        return {name: len(text) for name, text in payload.items()}

    @custom_handler(rest_path="/upper")
    async def upper(self, payload: InferenceRequest) -> InferenceResponse:
        texts = [text.upper() for text in StringCodec.decode_input(payload.inputs[0])]
        return InferenceResponse(model_name=self.name, outputs=[StringCodec.encode_output("output", texts)])

    @custom_handler(rest_path="/items/{item}", rest_method="GET")
    async def item(self, item: int, times: int = 2, loud: bool = False, note: str | None = None) -> dict[str, Any]:
        return {"item": item * times, "loud": loud, "note": note}

    @custom_handler(rest_path="/said/{rest:path}", rest_method="PUT")
    async def said(self, request: Request, rest: str) -> Any:
        body = (await request.body()).decode()
        return PlainTextResponse(f"{rest} {request.query_params['q']} {request.headers['x-said']} {body}", 201)

    @custom_handler(rest_path="/bytes")
    async def bytes(self, payload: dict[str, Any]) -> bytes:
        return b"as text"

    @custom_handler(rest_path="/nothing")
    async def nothing(self, payload: dict[str, Any]) -> None:
        return None

    @custom_handler(rest_path="/taken")
    async def taken(self, payload: dict[str, Any]) -> None:
        raise HTTPException(409, "taken already")
