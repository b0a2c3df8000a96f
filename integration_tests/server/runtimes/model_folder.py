"""A folder with models whose code is written against MLServer's interface."""

import json
from pathlib import Path
from typing import Any

_CODE = """
import asyncio
import os

from mlserver import MLModel, log
from pathlib import Path
from mlserver.types import InferenceRequest, InferenceResponse, ResponseOutput


class Model(MLModel):
    async def load(self) -> bool:
        print("loading in", os.getpid())
        return True

    async def unload(self) -> bool:
        print("unloaded in", os.getpid())
        return True

    async def predict(self, payload):
        if gate := (self.settings.parameters.extra or {{}}).get("gate"):
            print("predicting in", os.getpid())
            while not Path(gate).exists():
                await asyncio.sleep(0.01)
        log(model_folder_predictions=1)
        return self.respond({said!r})

    async def predict_stream(self, payloads):
        async for payload in payloads:
            while True:
                yield self.respond("{said} ")
                await asyncio.sleep(0.05)

    def respond(self, text):
        output = ResponseOutput(name="output", shape=[1], datatype="BYTES", data=[text])
        return InferenceResponse(model_name=self.name, outputs=[output])
"""

COUNT = """
    @custom_handler(rest_path="{path}")
    async def count(self, payload: list) -> dict:
        return {{"model": self.name, "count": len(payload)}}
"""
HANDLERS = (
    COUNT.format(path="/count")
    + """
    @custom_handler(rest_path="/page/{name:path}", rest_method="GET")
    async def page(self, request: Request, name: str):
        headers = {"set-cookie": "a=b", "x-own": "1"}
        return HTMLResponse(f"{name} {sorted(set(request.headers) - {'user-agent'})}", headers=headers)

    @custom_handler(rest_path="/metrics", rest_method="GET")
    async def metrics(self) -> str:
        return "hidden"

    @custom_handler(rest_path="/v2/own", rest_method="GET")
    async def reserved(self) -> str:
        return "hidden"

    @custom_handler(rest_path="/fails")
    async def fails(self, payload: dict) -> str:
        raise InferenceError("cannot") if payload else ValueError("no such value")
"""
)
_HANDLER_IMPORTS = """
from mlserver.errors import InferenceError
from mlserver.handlers import custom_handler
from starlette.requests import Request
from starlette.responses import HTMLResponse
"""


def write_model(directory: Path, name: str, said: str = "hello", **settings: Any) -> Path:
    """A model that says that, as its prediction and again and again as its stream; its folder."""
    folder = directory / name
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "model.py").write_text(_CODE.format(said=said))
    settings = {"name": name, "implementation": "model.Model", **settings}
    (folder / "model-settings.json").write_text(json.dumps(settings))
    return folder


def write_handlers(directory: Path, name: str, handlers: str) -> None:
    """A model as `write_model` writes it, with these custom handlers."""
    code = write_model(directory, name) / "model.py"
    code.write_text(_HANDLER_IMPORTS + code.read_text() + handlers)
