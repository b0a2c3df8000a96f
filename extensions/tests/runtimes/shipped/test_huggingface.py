"""What only the runtime for transformers does itself: tokens to text, stop texts, settings."""

import re
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from tests.runtimes.shipped import tiny_models
from tests.runtimes.shipped.engines import engine, read_settings, runtime_class
from tests.runtimes.shipped.requests import request, text, texts_of

pytestmark = pytest.mark.usefixtures("engine_packages")


def detokenized(tokens: list[int], **decoding: Any) -> list[str]:
    """Return the texts for tokens that are bytes of UTF-8, behind a prompt."""
    module, torch = import_module("opensearch_ml_stream.runtimes.huggingface"), import_module("torch")
    texts: list[str] = []
    tensor = getattr(torch, "tensor", torch.Tensor)
    streamer = module.Detokenizer(lambda ids: bytes(ids).decode(errors="replace"), texts.append)
    streamer.put(tensor([list(b"Say: ")]))
    for token in tokens:
        streamer.put(tensor([token]))
    streamer.end()
    return texts


def test_a_character_of_several_tokens_comes_when_it_is_whole() -> None:
    assert detokenized(list("aé😀z".encode())) == ["a", "", "é", "", "", "", "😀", "z", ""]


def test_a_text_depends_on_the_tokens_before_it_the_prompts_too() -> None:
    module, torch = import_module("opensearch_ml_stream.runtimes.huggingface"), import_module("torch")
    texts: list[str] = []
    tensor = getattr(torch, "tensor", torch.Tensor)
    streamer = module.Detokenizer(lambda ids: " ".join(map(str, ids)), texts.append)
    for tokens in ([[1, 2]], [3], [4]):
        streamer.put(tensor(tokens))
    assert texts == [" 3", " 4"]


async def test_a_text_ends_with_the_models_context(tmp_path: Path) -> None:
    async with engine(tmp_path) as tiny:
        one = request(text("prompt", "w1 w2"), temperature=0, max_tokens=9000)
        given = (await tiny.model.predict(one)).parameters.model_dump()
    total = given["usage"]["total_tokens"]
    assert total == tiny_models.CONTEXT or (total < tiny_models.CONTEXT and given["finish_reason"] == "stop")


def test_a_character_that_is_cut_off_comes_at_the_end() -> None:
    assert detokenized(list("a😀".encode())[:-1]) == ["a", "", "", "", "\ufffd"]


def test_bytes_that_are_no_text_do_not_hold_up_what_comes_behind() -> None:
    texts = detokenized([0xFF] * 40)
    assert max(index for index, part in enumerate(texts) if part) >= 30
    assert sum(map(bool, texts)) >= 2
    assert "".join(texts) == "\ufffd" * 40


def until_stop(stops: list[str], *parts: str) -> tuple[list[str], bool]:
    stop = import_module("opensearch_ml_stream.runtimes.huggingface").UntilStop(stops)
    return [*(stop.feed(part) for part in parts), stop.flush()], stop.is_over


@pytest.mark.parametrize(
    ("stops", "parts", "shown", "is_over"),
    [([], ("a", "b"), ["a", "b", ""], False),
     (["END"], ("aE", "N", "xE", "N"), ["a", "", "ENx", "", "EN"], False),
     (["END"], ("aE", "NDb", "c"), ["a", "", "", ""], True),
     (["END", "xE"], ("axEND",), ["a", ""], True),
     (["aab"], ("aaa", "b"), ["a", "", ""], True)],
)  # fmt: skip
def test_a_stop_text_is_cut_off_wherever_the_parts_end(
    stops: list[str], parts: tuple[str, ...], shown: list[str], is_over: bool
) -> None:
    assert until_stop(stops, *parts) == (shown, is_over)


async def test_the_settings_of_mlservers_runtime_load(tmp_path: Path) -> None:
    tiny_models.hugging_face_folder(tmp_path)
    extra = {"task": "text-generation", "pretrained_model": ".", "device": -1}
    tiny_models.write_settings(tmp_path, "mlserver_huggingface.HuggingFaceRuntime", **extra)
    model = runtime_class()(read_settings(tmp_path))
    assert await model.load()
    one = request(text("inputs", "w1 w2"), temperature=0, max_tokens=2)
    assert len(texts_of(await model.predict(one))["output"].split()) == 2
    assert await model.unload()


@pytest.mark.parametrize("name", ["model", "pretrained_model", "model_path"])
def test_the_model_is_named_as_each_engines_users_do(tmp_path: Path, name: str) -> None:
    tiny_models.write_settings(tmp_path, "huggingface", **{name: "some/model"})
    read = runtime_class()(read_settings(tmp_path)).engine_settings
    assert (read.model, read.arguments) == ("some/model", {})


async def test_another_task_is_refused_by_its_name(tmp_path: Path) -> None:
    tiny_models.write_settings(tmp_path, "huggingface", task="image-to-text", model="m")
    model = runtime_class()(read_settings(tmp_path))
    with pytest.raises(ValueError, match=r"task \[image-to-text\] is not supported"):
        await model.load()


async def test_the_settings_of_seldons_local_runtime_load(tmp_path: Path) -> None:
    config = {
        "model_type": "chat.completions",
        "model_settings": {"model": ".", "device": "cpu", "default_generate_kwargs": {"max_tokens": 3}},
    }
    tiny_models.hugging_face_folder(tmp_path)
    tiny_models.write_settings(tmp_path, "mlserver_llm_local.runtime.Local", backend="transformers", config=config)
    model = runtime_class()(read_settings(tmp_path))
    assert await model.load()
    chat = request(text("role", "user"), text("content", "w4"), llm_parameters={"temperature": 0})
    assert len(texts_of(await model.predict(chat))["content"].split()) == 3
    assert await model.unload()


@pytest.mark.parametrize(
    ("extra", "named"),
    [({}, "must name the model"),
     ({"model": "m", "prompt_utils": {"a": 1}}, "prompt_utils is not supported"),
     ({"config": {"model_type": "embeddings", "model_settings": {"model": "m"}}}, "model_type [embeddings]"),
     ({"model": "m", "llm_parameters": {"max_tokns": 3}}, "[max_tokns] is not supported")],
)  # fmt: skip
def test_settings_that_cannot_be_used_are_named(tmp_path: Path, extra: dict[str, Any], named: str) -> None:
    tiny_models.write_settings(tmp_path, "huggingface", **extra)
    with pytest.raises(Exception, match=re.escape(named)):
        runtime_class()(read_settings(tmp_path))


async def test_messages_without_a_chat_template_are_refused(tmp_path: Path) -> None:
    async with engine(tmp_path) as tiny:
        tiny.model._tokenizer.chat_template = None
        with pytest.raises(Exception, match="chat template") as refused:
            await tiny.model.predict(request(text("role", "user"), text("content", "w1")))
    assert refused.value.status_code == 400  # type: ignore[attr-defined]
