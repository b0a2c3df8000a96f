"""The control socket, by which workers ask the keeper."""

import asyncio
from pathlib import Path

import pytest

from opensearch_ml_stream.connectors.errors import MLStreamError, NotFound, Unavailable, UpstreamError
from opensearch_ml_stream.extensions.runtimes.service.control import Operation, RuntimeControl, serving_control


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "runtimes").mkdir()
    return tmp_path / "runtimes"


async def test_what_a_worker_asks_for_is_done_before_it_goes_on(folder: Path) -> None:
    asked: list[tuple[str, str]] = []

    async def obey(operation: Operation, name: str) -> None:
        await asyncio.sleep(0.01)
        asked.append((operation, name))

    async with serving_control(folder, obey):
        await RuntimeControl(folder).load("a/b é")
        assert asked == [("load", "a/b é")]
        await RuntimeControl(folder).unload("a/b é")
        assert asked[1:] == [("unload", "a/b é")]
        await RuntimeControl(folder).ensure("m")
        await RuntimeControl(folder).find("m")
        assert asked[2:] == [("ensure", "m"), ("find", "m")]


@pytest.mark.parametrize("error", [NotFound("There is none"), UpstreamError("It cannot be loaded")])
async def test_an_error_of_the_keeper_is_the_workers(folder: Path, error: MLStreamError) -> None:
    async def refuse(operation: Operation, name: str) -> None:
        raise error

    async with serving_control(folder, refuse):
        with pytest.raises(type(error), match=error.reason):
            await RuntimeControl(folder).load("m")


async def test_while_the_keeper_is_replaced_a_worker_may_try_again(folder: Path) -> None:
    with pytest.raises(Unavailable):
        await RuntimeControl(folder).load("m")


async def test_without_models_of_its_own_a_server_says_so_and_has_nothing_to_unload(tmp_path: Path) -> None:
    control = RuntimeControl(tmp_path / "runtimes")
    with pytest.raises(NotFound, match="--models"):
        await control.load("m")
    with pytest.raises(NotFound, match="--models"):
        await control.ensure("m")
    await control.find("m")
    await control.unload("m")
