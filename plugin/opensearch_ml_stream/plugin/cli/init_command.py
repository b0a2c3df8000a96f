"""The command `models init`: a folder to start from, for `serve --models`."""

import shlex
from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import quote

import orjson
import typer

from opensearch_ml_stream.plugin.cli.command_errors import WrongUsage
from opensearch_ml_stream.plugin.cli.options import program
from opensearch_ml_stream.plugin.cli.printing import print_note, print_text
from opensearch_ml_stream.plugin.extras import install_command

SETTINGS_FILE = "model-settings.json"


class Runtime(StrEnum):
    """What can run a model."""

    PYTHON = "python"
    HUGGINGFACE = "huggingface"
    VLLM = "vllm"
    LLAMA_CPP = "llama-cpp"
    OPENAI = "openai"


_LLM_PARAMETERS = {"max_tokens": 512}
_EXTRA: Mapping[Runtime, Mapping[str, Any]] = {
    Runtime.PYTHON: {"seconds_between_words": 0.1},
    Runtime.HUGGINGFACE: {
        "model": "Qwen/Qwen2.5-0.5B-Instruct",
        "device": "auto",
        "llm_parameters": _LLM_PARAMETERS,
    },
    Runtime.VLLM: {
        "model": "Qwen/Qwen2.5-0.5B-Instruct",
        "max_model_len": 4096,
        "gpu_memory_utilization": 0.9,
        "llm_parameters": _LLM_PARAMETERS,
    },
    Runtime.LLAMA_CPP: {"model": "model.gguf", "n_ctx": 4096, "llm_parameters": _LLM_PARAMETERS},
    Runtime.OPENAI: {
        "provider_id": "openai",
        "config": {"model_id": "gpt-4o-mini", "model_type": "chat.completions"},
    },
}
_BEFORE: Mapping[Runtime, str] = {
    Runtime.HUGGINGFACE: "{install}",
    Runtime.VLLM: "{install}",
    Runtime.LLAMA_CPP: "{install}, and put a GGUF file there as model.gguf",
    Runtime.OPENAI: "export OPENAI_API_KEY=...",
}
_MODEL_PY = '''\
"""A model that answers a text with its words, one at a time. Make `words` do what your model does."""

import asyncio
from collections.abc import AsyncIterator

from mlserver import MLModel  # MLServer itself, if it is installed; its names and fields are there without it, too
from mlserver.codecs import StringCodec
from mlserver.types import InferenceRequest, InferenceResponse


class WordsModel(MLModel):
    async def load(self) -> bool:
        # Runs once in each process of the model: load weights here. `parameters` of model-settings.json is
        # self.settings.parameters: its `uri`, and in `extra` whatever you write there.
        self.pause = self.settings.parameters.extra.get("seconds_between_words", 0)
        return True  # the model is ready

    async def predict(self, payload: InferenceRequest) -> InferenceResponse:
        # A whole answer: POST .../_predict, /v2/models/.../infer.
        return self.response(payload, "".join([word async for word in self.words(payload)]))

    async def predict_stream(self, payloads: AsyncIterator[InferenceRequest]) -> AsyncIterator[InferenceResponse]:
        # An answer in pieces: POST .../_predict/stream, /v2/models/.../infer_stream. Each is sent as you yield it; once
        # the client is gone, the generator is closed, and what waits here is cancelled.
        async for payload in payloads:  # one request; a gRPC client may send several
            async for word in self.words(payload):
                yield self.response(payload, word)

    async def words(self, payload: InferenceRequest) -> AsyncIterator[str]:
        (text,) = StringCodec.decode_input(payload.inputs[0])  # what was sent as `inputs` or `prompt`
        for number, word in enumerate(text.split()):
            await asyncio.sleep(self.pause)  # work that blocks goes to a thread: await asyncio.to_thread(...)
            yield word if number == 0 else f" {word}"

    def response(self, payload: InferenceRequest, text: str) -> InferenceResponse:
        output = StringCodec.encode_output("output", [text])
        return InferenceResponse(model_name=self.name, model_version=self.version, id=payload.id, outputs=[output])
'''


def init(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="The model's folder; its name is the model's.")],
    runtime: Annotated[Runtime, typer.Option("--runtime", help="What runs the model.")] = Runtime.PYTHON,
) -> None:
    """Write a model's folder to start from: model-settings.json, and for python a model that streams words."""
    folder = folder.absolute()
    files = _files(folder.name, runtime)
    for name in files:
        if (folder / name).exists():
            raise WrongUsage(f"{folder / name} already exists; nothing was written")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, content in files.items():
            (folder / name).write_bytes(content)
            print_text(str(folder / name))
    except OSError as error:
        raise WrongUsage(f"Cannot write to {folder}: {error.strerror}") from None
    if runtime in _BEFORE:
        print_note(f"First: {_BEFORE[runtime].format(install=install_command(runtime))}")
    predict = shlex.join(
        (program(), "predict", f"runtime-{quote(folder.name, safe='')}", "--stream", "To be or not to be")
    )
    print_note(f"Start: {shlex.join((program(), 'serve', '--models', str(folder.parent)))}")
    print_note(f"Try it: {predict}")


def _files(name: str, runtime: Runtime) -> dict[str, bytes]:
    """Return the contents of the files to write."""
    implementation = "model.WordsModel" if runtime is Runtime.PYTHON else runtime.value
    settings = {"name": name, "implementation": implementation, "parameters": {"extra": _EXTRA[runtime]}}
    files = {SETTINGS_FILE: orjson.dumps(settings, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)}
    if runtime is Runtime.PYTHON:
        files["model.py"] = _MODEL_PY.encode()
    return files
