"""Calls of runtimes hold on the loop of the standard library and on uvloop, which production runs on."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from pathlib import Path

import pytest
import uvloop

from opensearch_ml_stream.plugin.runtimes.runtime_calls import RuntimeCalls
from tests.runtimes.calls.scripted_host import ScriptedHost, write_models


def pytest_asyncio_loop_factories() -> Mapping[str, Callable[[], asyncio.AbstractEventLoop]]:
    return {"asyncio": asyncio.new_event_loop, "uvloop": uvloop.new_event_loop}


@pytest.fixture
async def calls(tmp_path: Path) -> AsyncIterator[RuntimeCalls]:
    """The calls of a worker, of the models in tmp_path."""
    async with RuntimeCalls(tmp_path) as opened:
        yield opened


@pytest.fixture
async def host(tmp_path: Path) -> AsyncIterator[ScriptedHost]:
    """The one process of the model `m`."""
    async with ScriptedHost(tmp_path / "1.0.sock") as opened:
        write_models(tmp_path, m=[opened])
        yield opened
