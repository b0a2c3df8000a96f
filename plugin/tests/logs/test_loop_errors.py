"""Errors of the event loop: where they come from is logged, and not what they quote."""

import asyncio
import gc
import logging

import pytest

from opensearch_ml_stream.plugin.logs.line_format import TextFormat
from opensearch_ml_stream.plugin.logs.loop_errors import log_loop_error


async def fail(prompt: str) -> None:
    raise KeyError(prompt)


async def test_a_task_that_nobody_awaited_is_logged_without_what_its_error_quotes(
    caplog: pytest.LogCaptureFixture,
) -> None:
    asyncio.get_running_loop().set_exception_handler(log_loop_error)
    task = asyncio.create_task(fail("my secret prompt"))
    await asyncio.wait([task])
    del task
    gc.collect()
    [record] = caplog.records
    line = TextFormat().format(record)
    assert record.levelno == logging.ERROR and "KeyError" in line and "in fail" in line
    assert "secret" not in line


async def test_an_error_without_an_exception_is_logged_in_the_loops_words(caplog: pytest.LogCaptureFixture) -> None:
    log_loop_error(asyncio.get_running_loop(), {"message": "Task was destroyed but it is pending!", "task": "secret"})
    assert caplog.messages == ["internal error: Task was destroyed but it is pending!"]
