"""How the servers of engines are started, and that vLLM's asks for its key everywhere."""

import sys
from pathlib import Path
from typing import Any

import pytest

from opensearch_ml_stream.runtimes.engine_commands import Command, engine_command
from opensearch_ml_stream.runtimes.engine_middleware.key_for_every_route import KeyForEveryRoute
from opensearch_ml_stream.runtimes.engine_settings import EngineSettings, read_engine_settings


def command(engine: str, model_type: str = "chat.completions", **arguments: Any) -> Command:
    return engine_command(engine, "mine", EngineSettings("some/model", model_type, arguments, {}), 4711, "the-key")


def test_the_servers_of_both_are_on_the_loopback_interface_with_a_key_that_is_no_argument() -> None:
    vllm, llama_cpp = command("vllm"), command("llama-cpp")
    assert vllm.arguments[:5] == (sys.executable, "-m", "vllm.entrypoints.cli.main", "serve", "some/model")
    assert " --host 127.0.0.1 --port 4711 --served-model-name mine " in " ".join(vllm.arguments)
    assert llama_cpp.arguments[1:3] == ("-m", "llama_cpp.server")
    assert {"HOST": "127.0.0.1", "PORT": "4711"}.items() <= llama_cpp.variables.items()
    assert (vllm.variables["VLLM_API_KEY"], llama_cpp.variables["API_KEY"]) == ("the-key", "the-key")
    assert "the-key" not in " ".join((*vllm.arguments, *llama_cpp.arguments))


def test_llama_cpp_does_not_interrupt_a_stream_for_the_next() -> None:
    arguments = command("llama-cpp").arguments
    assert arguments[arguments.index("--interrupt_requests") + 1] == "false"


def test_arguments_of_the_settings_are_those_of_the_engine() -> None:
    given: dict[str, Any] = {
        "max_model_len": 64,
        "enforce_eager": True,
        "enable_lora": False,
        "lora_modules": ["a=x", {"name": "b"}],
    }
    vllm = " ".join(command("vllm", **given, dtype=None).arguments)
    assert vllm.endswith('--max-model-len 64 --enforce-eager --no-enable-lora --lora-modules a=x {"name": "b"}')
    llama_cpp = " ".join(command("llama-cpp", n_ctx=64, flash_attn=True).arguments)
    assert llama_cpp.endswith("--n_ctx 64 --logits_all false --verbose false --flash_attn true")


def test_both_are_told_that_texts_are_embedded() -> None:
    assert command("llama-cpp", "embeddings").arguments[-2:] == ("--embedding", "true")
    assert command("vllm", "embeddings").arguments[-2:] == ("--runner", "pooling")
    assert command("vllm", "embeddings", runner="auto").arguments[-2:] == ("--runner", "auto")
    assert "--runner" not in command("vllm").arguments


def test_a_token_of_the_settings_is_no_argument() -> None:
    vllm = command("vllm", hf_token="hf_secret")
    assert vllm.variables["HF_TOKEN"] == "hf_secret"
    assert "hf_secret" not in " ".join(vllm.arguments)


@pytest.mark.parametrize("engine", ["vllm", "llama-cpp"])
def test_settings_do_not_say_where_the_server_is_or_which_key_it_has(engine: str) -> None:
    with pytest.raises(ValueError, match=r"^parameters\.extra may not have api_key, port: "):
        command(engine, port=80, api_key="k")


def test_settings_of_the_sidecar_itself_are_no_arguments(tmp_path: Path) -> None:
    (tmp_path / "model.gguf").write_text("")
    extra = {"model": "model.gguf", "processes": 2, "model_type": "embeddings", "n_ctx": 64}
    read = read_engine_settings(extra, None, tmp_path)
    assert (read.model, read.model_type) == (str(tmp_path / "model.gguf"), "embeddings")
    assert read.arguments == {"n_ctx": 64}
    seldon = {"backend": "vllm", "config": {"model_type": "completions", "model_settings": {"model": "m", "seed": 3}}}
    assert read_engine_settings(seldon, None, None) == EngineSettings("m", "completions", {"seed": 3}, {})
    named = {"model": "m", "llm_parameters": {"max_new_tokens": 3, "stop_strings": ["."]}}
    assert read_engine_settings(named, None, None).llm_parameters == {"max_tokens": 3, "stop": ["."]}


@pytest.mark.parametrize(
    ("type", "path", "authorization", "passes"),
    [("http", "/health", None, True),
     ("lifespan", "", None, True),
     ("http", "/invocations", b"Bearer the-key", True),
     ("http", "/invocations", None, False),
     ("http", "/v1/models", b"Bearer another", False),
     ("websocket", "/v1/realtime", None, False)],
)  # fmt: skip
async def test_vllms_server_asks_for_its_key_on_every_route_but_its_health(
    monkeypatch: pytest.MonkeyPatch, type: str, path: str, authorization: bytes | None, passes: bool
) -> None:
    monkeypatch.setenv("VLLM_API_KEY", "the-key")
    reached: list[str] = []
    sent: list[dict[str, Any]] = []

    async def application(scope: dict[str, Any], receive: object, send: object) -> None:
        reached.append(scope["type"])

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    headers = [] if authorization is None else [(b"authorization", authorization)]
    await KeyForEveryRoute(application)({"type": type, "path": path, "headers": headers}, None, send)
    assert bool(reached) is passes
    assert [message.get("status", message.get("code")) for message in sent[:1]] == (
        [] if passes else [401 if type == "http" else 1008]
    )
