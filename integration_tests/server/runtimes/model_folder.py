"""A folder with models whose code is written against MLServer's interface."""

import json
from pathlib import Path
from typing import Any

_CODE = """
import asyncio
import os

from mlserver import MLModel
from mlserver.types import InferenceRequest, InferenceResponse, ResponseOutput


class Model(MLModel):
    async def load(self) -> bool:
        print("loading in", os.getpid())
        return True

    async def unload(self) -> bool:
        print("unloaded in", os.getpid())
        return True

    async def predict(self, payload):
        extra = self.settings.parameters.extra or {{}}
        if "seconds" in extra:
            print("predicting in", os.getpid())
            await asyncio.sleep(extra["seconds"])
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


def write_model(directory: Path, name: str, said: str = "hello", **settings: Any) -> Path:
    """A model that says that, as its prediction and again and again as its stream; its folder."""
    folder = directory / name
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "model.py").write_text(_CODE.format(said=said))
    settings = {"name": name, "implementation": "model.Model", **settings}
    (folder / "model-settings.json").write_text(json.dumps(settings))
    return folder
