"""Calls of runtimes hold on the loop of the standard library and on uvloop, which production runs on.

How long they wait is seen on a loop whose clock jumps to the next timer.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from pathlib import Path

import pytest
import uvloop

from opensearch_ml_stream.extensions.runtimes.service.runtime_calls import RuntimeCalls
from opensearch_ml_stream.extensions.runtimes.service.runtime_models import RuntimeModels
from tests.runtimes.calls.scripted_host import ScriptedHost, write_models
from tests.upstream.virtual_time_loop import VirtualTimeLoop


def pytest_asyncio_loop_factories(item: pytest.Item) -> Mapping[str, Callable[[], asyncio.AbstractEventLoop]]:
    if item.path.name == "test_silence.py":
        return {"virtual time": VirtualTimeLoop}
    return {"asyncio": asyncio.new_event_loop, "uvloop": uvloop.new_event_loop}


@pytest.fixture
async def calls(tmp_path: Path) -> AsyncIterator[RuntimeCalls]:
    """The calls of a worker, of the models in tmp_path."""
    async with RuntimeCalls(RuntimeModels(tmp_path)) as opened:
        yield opened


@pytest.fixture
async def host(tmp_path: Path) -> AsyncIterator[ScriptedHost]:
    """The one process of the model `m`."""
    async with ScriptedHost(tmp_path / "1.0.sock") as opened:
        write_models(tmp_path, m=[opened])
        yield opened
