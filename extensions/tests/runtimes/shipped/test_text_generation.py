"""What a runtime for text does, by that for transformers with a tiny model; with stand-ins, or what is installed."""

import asyncio
import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from tests.runtimes.shipped.engines import Engine, engine
from tests.runtimes.shipped.requests import ends_of, payloads, request, text, texts_of
from tests.runtimes.shipped.tiny_models import CONTEXT

PROMPT = text("prompt", "w1 w2 w3")


@pytest.fixture
async def tiny(tmp_path: Path, engine_packages: None) -> AsyncIterator[Engine]:
    async with engine(tmp_path) as loaded:
        yield loaded


def greedy(*tensors: dict[str, Any], **parameters: Any) -> Any:
    return request(*tensors, temperature=0, **parameters)


async def stream(tiny: Engine, one: Any) -> list[Any]:
    return [response async for response in tiny.model.predict_stream(payloads(one))]


async def whole(tiny: Engine, one: Any) -> str:
    (output,) = texts_of(await tiny.model.predict(one)).values()
    return output


async def test_the_texts_of_a_stream_are_together_the_whole_text(tiny: Engine) -> None:
    responses = await stream(tiny, greedy(PROMPT, max_tokens=12))
    together = "".join(texts_of(response)["output"] for response in responses)
    assert together == await whole(tiny, greedy(PROMPT, max_tokens=12))
    assert len(together.split()) == 12
    assert len(responses) > 6
    (output,) = responses[0].outputs
    assert (output.name, output.shape, output.parameters.content_type) == ("output", [1, 1], "str")
    assert (responses[0].id, responses[0].model_name, responses[0].model_version) == ("r1", "tiny", "v1")


async def test_only_the_last_response_has_a_finish_reason_and_the_numbers_of_tokens(tiny: Engine) -> None:
    responses = await stream(tiny, greedy(PROMPT, max_tokens=5))
    assert [ends_of(response) for response in responses[:-1]] == [None] * (len(responses) - 1)
    reason, usage = ends_of(responses[-1]) or ("", {})
    assert (reason, usage["completion_tokens"]) == ("length", 5)
    assert 3 <= usage["prompt_tokens"] <= 16  # words, or letters
    assert usage["total_tokens"] == usage["prompt_tokens"] + 5
    assert ends_of(await tiny.model.predict(greedy(PROMPT, max_tokens=5))) == (reason, usage)


async def test_a_stop_text_ends_the_text_and_is_no_part_of_it(tiny: Engine) -> None:
    words = (await whole(tiny, greedy(PROMPT, max_tokens=30))).split()
    stop = f"{words[6]} {words[7][:-1]}"
    responses = await stream(tiny, greedy(PROMPT, max_tokens=30, llm_parameters={"stop": [stop]}))
    together = "".join(texts_of(response)["output"] for response in responses)
    assert together.split() == " ".join(words).split(stop)[0].split()
    reason, usage = ends_of(responses[-1]) or ("", {})
    assert reason == "stop"
    assert usage["completion_tokens"] < 30


async def test_a_model_that_comes_to_an_end_says_so(tiny: Engine) -> None:
    if not tiny.is_stand_in:
        pytest.skip("a model with random weights comes to no end")
    responses = await stream(tiny, greedy(text("prompt", "w1 w59"), max_tokens=9))
    assert [texts_of(response)["output"] for response in responses] == [""]
    assert (ends_of(responses[-1]) or ("",))[0] == "stop"


async def test_a_chat_is_laid_out_by_the_models_template(tiny: Engine) -> None:
    chat = (text("role", "system", "user"), text("content", "w4", "w5"), text("type", "text", "text"))
    responses = await stream(tiny, greedy(*chat, max_tokens=6))
    assert list(texts_of(responses[0])) == ["content", "role", "type"]
    assert (texts_of(responses[0])["role"], texts_of(responses[0])["type"]) == ("assistant", "text")
    assert [list(texts_of(response)) for response in responses[1:]] == [["content"]] * (len(responses) - 1)
    together = "".join(texts_of(response)["content"] for response in responses)
    laid_out = await whole(tiny, greedy(text("prompt", "system w4 user w5 assistant"), max_tokens=6))
    assert together.split() == laid_out.split()
    whole_chat = texts_of(await tiny.model.predict(greedy(*chat, max_tokens=6)))
    assert whole_chat == {"content": together, "role": "assistant", "type": "text"}


async def test_a_closed_stream_ends_the_generation(tiny: Engine) -> None:
    responses = tiny.model.predict_stream(payloads(greedy(PROMPT, max_tokens=CONTEXT - 8)))
    await anext(responses)
    await responses.aclose()
    before = tiny.steps()
    await whole(tiny, greedy(PROMPT, max_tokens=2))  # a runtime with one thread comes to it only behind the other
    assert before < CONTEXT - 20
    assert tiny.steps() - before < 10


async def test_a_cancelled_call_ends_the_generation(tiny: Engine) -> None:
    call = asyncio.create_task(tiny.model.predict(greedy(PROMPT, max_tokens=CONTEXT - 8)))
    while not tiny.steps():  # noqa: ASYNC110  # a thread counts them
        await asyncio.sleep(0)
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    before = tiny.steps()
    await whole(tiny, greedy(PROMPT, max_tokens=2))
    assert tiny.steps() - before < 10


async def test_streams_run_beside_each_other(tiny: Engine) -> None:
    prompts = [text("prompt", f"w{number} w7") for number in range(6)]
    alone = [await whole(tiny, greedy(prompt, max_tokens=9)) for prompt in prompts]
    together = await asyncio.gather(*(stream(tiny, greedy(prompt, max_tokens=9)) for prompt in prompts))
    joined = ["".join(texts_of(response)["output"] for response in responses) for responses in together]
    assert joined == alone


async def test_several_requests_of_a_stream_are_answered_in_turn(tiny: Engine) -> None:
    one = greedy(PROMPT, max_tokens=3)
    responses = [response async for response in tiny.model.predict_stream(payloads(one, one))]
    assert [ends_of(response) is not None for response in responses].count(True) == 2


async def test_sampling_takes_the_usual_parameters(tiny: Engine) -> None:
    own = {"temperature": 0.7, "top_p": 0.9, "top_k": 5, "min_p": 0.01, "max_completion_tokens": 4, "stop": "zz"}
    one = request(PROMPT, stream=True, _llm_interface="x", llm_parameters={**own, "repetition_penalty": 1.1})
    assert len((await whole(tiny, one)).split()) <= 4


@pytest.mark.parametrize(
    ("wrong", "named"),
    [((PROMPT, {"llm_parameters": {"custom_generate": "x/y"}}), "[custom_generate] is not supported"),
     ((PROMPT, {"llm_parameters": [1]}), "llm_parameters must be an object"),
     ((PROMPT, {"max_tokens": 0}), "[max_tokens] must be 1 or more"),
     ((PROMPT, {"temperature": -1}), "[temperature] must be 0 or more"),
     ((PROMPT, {"top_p": 1.5}), "[top_p] must be from 0 to 1"),
     ((PROMPT, {"presence_penalty": 3}), "[presence_penalty] must be from -2 to 2"),
     ((PROMPT, {"tools": [{"type": "function"}]}), "[tools] is not supported"),
     ((PROMPT, {"llm_parameters": {"tool_choice": "auto"}}), "[tool_choice] is not supported"),
     ((PROMPT, {"response_format": {"type": "json_object"}}), "formats of the answer: [response_format]"),
     ((PROMPT, {"max_tokens": 1.5}), "[max_tokens] must be an integer"),
     ((PROMPT, {"temperature": True}), "[temperature] must be a number"),
     ((PROMPT, {"stop": [1]}), "[stop] must be a string or a list"),
     ((text("prompt", "w1", "w2"), {}), "prompt must have one text, not 2"),
     ((text("prompt", " ".join(["w1"] * CONTEXT)), {}), str(CONTEXT)),
     (({**PROMPT, "datatype": "INT32", "data": [1]}, {}), "datatype BYTES"),
     (({**PROMPT, "data": [b"\xff"]}, {}), "UTF-8"),
     ((text("content", "w1"), {"temperature": "hot"}), "[temperature] must be a number")],
)  # fmt: skip
async def test_a_wrong_request_is_refused_with_what_is_wrong(
    tiny: Engine, wrong: tuple[dict[str, Any], dict[str, Any]], named: str
) -> None:
    tensor, parameters = wrong
    with pytest.raises(Exception, match=re.escape(named)) as refused:
        await stream(tiny, request(tensor, **parameters))
    assert refused.value.status_code == 400  # type: ignore[attr-defined]


async def test_tensors_that_do_not_belong_together_are_refused(tiny: Engine) -> None:
    chats = {
        "one element for each message": (text("role", "user"), text("content", "w1", "w2")),
        "reads no [image_url]": (text("content", "w1"), text("type", "image_url")),
        "runtime reads no [image_url]": (text("content", '["w1", {}]'), text("type", '["text", "image_url"]')),
        "must hold a JSON array": (text("content", "w1"), text("type", '["text"]')),
        "[tool_calls] is not supported": (text("content", "w1"), text("tool_calls", "[]")),
        "must have a tensor prompt": (text("a", "w1"), text("b", "w1")),
    }
    for named, tensors in chats.items():
        with pytest.raises(Exception, match=re.escape(named)):
            await tiny.model.predict(request(*tensors))


async def test_a_message_in_parts_has_their_texts(tiny: Engine) -> None:
    parts = (text("content", '["w4 ", "w5"]'), text("type", '["text", "text"]'))
    whole_chat = texts_of(await tiny.model.predict(greedy(*parts, max_tokens=6)))
    assert whole_chat == texts_of(await tiny.model.predict(greedy(text("content", "w4 w5"), max_tokens=6)))


@pytest.mark.engines
async def test_a_seed_gives_the_same_text_again_beside_other_generations(tiny: Engine) -> None:
    seeded = [request(PROMPT, seed=seed, temperature=1.5, top_k=40, max_tokens=16) for seed in (1, 1, 1, 2)]
    first, second, third, other = await asyncio.gather(*(whole(tiny, one) for one in seeded))
    assert first == second == third != other


@pytest.mark.engines
async def test_penalties_keep_words_from_coming_again(tiny: Engine) -> None:
    plain = (await whole(tiny, greedy(PROMPT, max_tokens=40))).split()
    penalties = {"frequency_penalty": 2, "presence_penalty": 2}
    penalized = (await whole(tiny, greedy(PROMPT, max_tokens=40, **penalties))).split()
    assert len(set(penalized)) > len(set(plain))


async def test_parameters_of_the_settings_hold_unless_a_request_gives_others(
    tmp_path: Path, engine_packages: None
) -> None:
    async with engine(tmp_path, llm_parameters={"temperature": 0, "max_new_tokens": 3}) as tiny:
        assert len((await whole(tiny, request(PROMPT))).split()) == 3
        assert len((await whole(tiny, request(PROMPT, max_tokens=5))).split()) == 5
