"""A server with the models of `models/`, calls of them, and their processes as the operating system sees them."""

import asyncio
import json
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
from integration_tests.support.conditions import eventually
from integration_tests.support.sidecars import Sidecar, running_sidecar
from integration_tests.support.worker_processes import runs

MODELS = Path(__file__).parent / "models"
START_SECONDS = 40


@contextmanager
def serving_models(
    folder: Path,
    *names: str,
    settings: Mapping[str, str] | None = None,
    workers: int = 1,
    arguments: tuple[str, ...] = (),
) -> Iterator[Sidecar]:
    """A server with these models of `models/`, all of them loaded."""
    models = folder / "models"
    for name in names:
        shutil.copytree(MODELS / name, models / name, ignore=shutil.ignore_patterns("__pycache__"))
    arguments = ("--models", str(models), "--workers", str(workers), *arguments)
    with running_sidecar(folder, settings=settings, arguments=arguments) as sidecar:
        for name in names:
            eventually(lambda name=name: is_ready(sidecar, name), START_SECONDS)  # type: ignore[misc]
        yield sidecar


def is_ready(sidecar: Sidecar, name: str) -> bool:
    return sidecar.client.get(f"/v2/models/{name}/ready").status_code == 200


def tensors(text: str) -> dict[str, Any]:
    return {"inputs": [{"name": "prompt", "shape": [1], "datatype": "BYTES", "data": [text]}]}


def infer(sidecar: Sidecar, name: str, text: str) -> httpx.Response:
    return sidecar.client.post(f"/v2/models/{name}/infer", json=tensors(text))


def said(response: httpx.Response) -> str:
    """The text of a response that must be good."""
    assert response.status_code == 200, response.text
    return str(response.json()["outputs"][0]["data"][0])


async def streamed(client: httpx.AsyncClient, name: str, text: str) -> list[dict[str, Any]]:
    """All objects of a `_predict/stream`, the terminal one too."""
    path = f"/_plugins/_ml/models/runtime-{name}/_predict/stream"
    response = await client.post(path, json={"parameters": {"inputs": text}}, timeout=60)
    return [json.loads(line) for line in response.text.split("\n") if line]


def texts(objects: list[dict[str, Any]]) -> str:
    """What the objects of a stream say together, errors left out."""
    maps = [one["inference_results"][0]["output"][0]["dataAsMap"] for one in objects if "inference_results" in one]
    return "".join(data["response"] for data in maps)


def counted(number: int) -> str:
    return "".join(f"{at} " for at in range(number))


def host_pids(sidecar: Sidecar, name: str = "") -> list[int]:
    """The living processes of a model, or of all models."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = path.read_bytes().split(b"\0")
        except (FileNotFoundError, ProcessLookupError):
            continue
        if any(word.endswith(b"/runtimes/__main__.py") for word in words) and (not name or name.encode() in words):
            pid = int(path.parent.name)
            if sidecar.process.pid in ancestors(pid) and runs(pid):
                found.append(pid)
    return found


def ancestors(pid: int) -> list[int]:
    """The parents of a process, its own first."""
    found = []
    while pid > 1:
        try:
            pid = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
        except (FileNotFoundError, ProcessLookupError):
            break
        found.append(pid)
    return found


async def first_lines(client: httpx.AsyncClient, name: str, text: str, begun: asyncio.Event) -> list[dict[str, Any]]:
    """As `streamed`; `begun` is set when the first object has come."""
    path = f"/_plugins/_ml/models/runtime-{name}/_predict/stream"
    objects = []
    async with client.stream("POST", path, json={"parameters": {"inputs": text}}, timeout=60) as response:
        async for line in response.aiter_lines():
            if line:
                objects.append(json.loads(line))
                begun.set()
    return objects
