"""What only the runtime for vLLM does itself; with the stand-in, whose engine can be looked into."""

from pathlib import Path

import pytest

from tests.runtimes.shipped.engines import engine
from tests.runtimes.shipped.requests import payloads, request, text, texts_of

pytestmark = pytest.mark.usefixtures("engine_packages")
PROMPT = text("prompt", "w1 w2 w3")


async def test_a_closed_stream_aborts_its_request_in_the_engine(tmp_path: Path) -> None:
    async with engine("vllm", tmp_path) as tiny:
        responses = tiny.model.predict_stream(payloads(request(PROMPT, max_tokens=100)))
        await anext(responses)
        assert tiny.model._engine.aborted == []
        await responses.aclose()
        assert len(tiny.model._engine.aborted) == 1


async def test_a_whole_stream_aborts_nothing_and_unload_ends_the_engine(tmp_path: Path) -> None:
    async with engine("vllm", tmp_path) as tiny:
        responses = [response async for response in tiny.model.predict_stream(payloads(request(PROMPT, max_tokens=3)))]
        assert len("".join(texts_of(response)["output"] for response in responses).split()) == 3
        started = tiny.model._engine
        assert (started.aborted, started.is_shut_down) == ([], False)
    assert started.is_shut_down


async def test_what_the_engine_refuses_is_the_requests_fault(tmp_path: Path) -> None:
    async with engine("vllm", tmp_path) as tiny:
        with pytest.raises(Exception, match="temperature must be non-negative") as refused:
            await tiny.model.predict(request(PROMPT, temperature=-1))
    assert refused.value.status_code == 400  # type: ignore[attr-defined]


async def test_what_breaks_in_the_engine_is_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with engine("vllm", tmp_path) as tiny:
        monkeypatch.setattr("vllm.v1.engine.async_llm.next_token", lambda tokens: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            await tiny.model.predict(request(PROMPT))
