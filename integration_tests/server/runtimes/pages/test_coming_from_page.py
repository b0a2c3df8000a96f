"""docs/coming-from.md: the examples of MLServer, Seldon and vLLM as the page has them, pasted as they stand."""

import ast
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml
from integration_tests.server.grpc_port.grpc_clients import GRPC
from integration_tests.server.runtimes.faulty_models import is_ready
from integration_tests.server.runtimes.pages.pasted_pages import Reader, blocks_of
from integration_tests.server.v2.v2_calls import events, texts
from integration_tests.support.background_provider import background_provider
from integration_tests.support.conditions import eventually
from integration_tests.support.fake_provider import FakeProvider, openai_stream
from integration_tests.support.sidecars import Sidecar, running_sidecar

pytestmark = [pytest.mark.timeout(120), pytest.mark.programs("curl")]
PAGE = "coming-from.md"
MODELS = ("text-model", "ranker", "json-hello", "content-type-example", "batches", "openai-chat-completions")
# What downloads, shows what was there before, or is written by hand into a file.
_NOT_PASTED = ("env/bin/pip install", "vllm serve", "OpenAI(base_url", "kind: Model", "serve --models")


@dataclass
class Moved:
    """A reader with all models of the page, and the server and the provider that they meet."""

    reader: Reader
    sidecar: Sidecar
    provider: FakeProvider


@pytest.fixture(scope="module")
def moved(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Moved]:
    folder = tmp_path_factory.mktemp("moved")
    reader = Reader(folder, PAGE)
    for name in MODELS:
        reader.paste(f"mkdir -p models/{name}\n")
    one_batch(folder / "models/batches/model-settings.json")
    with background_provider(openai_stream(["Ray", "leigh"])) as provider, pytest.MonkeyPatch.context() as variables:
        variables.setenv("OPENAI_API_KEY", "sk-of-the-environment")
        variables.setenv("OPENAI_BASE_URL", f"{provider.url}/v1")
        arguments = ("--models", str(folder / "models"), *GRPC)
        with running_sidecar(folder, arguments=arguments) as sidecar:
            for name in MODELS:
                eventually(lambda name=name: is_ready(sidecar, name))  # type: ignore[misc]
            reader.replaced |= {
                "http://localhost:8080": sidecar.url,
                "localhost:8080": sidecar.url,
                "http://localhost:8000": provider.url,
            }
            yield Moved(reader, sidecar, provider)


def one_batch(settings: Path) -> None:
    """The page's three requests make a batch, however late they are: it is full then, and waits for long."""
    text = settings.read_text()
    shown = '"max_batch_size": 8, "max_batch_time": 0.2'
    assert shown in text
    settings.write_text(text.replace(shown, '"max_batch_size": 3, "max_batch_time": 60'))


def test_every_command_of_the_page_is_pasted_by_a_test() -> None:
    source = Path(__file__).read_text("utf-8")
    words = {node.value for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Constant)}
    words |= {f"mkdir -p models/{name}\n" for name in MODELS}
    pasted = {word for word in words if isinstance(word, str) and len(word) > 5}
    assert [block for block in blocks_of(PAGE) if not any(word in block for word in (*pasted, *_NOT_PASTED))] == []


def test_the_streaming_text_model(moved: Moved) -> None:
    responses = events(moved.reader.paste("text-model/generate_stream"))
    assert texts(responses) == ["What", "is", "the", "capital", "of", "France?"]


def test_the_custom_runtime(moved: Moved) -> None:
    response = json.loads(moved.reader.paste("ranker/versions/v0.1.0/infer"))
    assert response["outputs"][0]["data"] == ["b", "a"]
    assert response["model_version"] == "v0.1.0"


def test_json_in_json_out(moved: Moved) -> None:
    said = json.loads(moved.reader.paste("json-hello/infer"))
    assert said == {"request": {"x": {"name": "Foo"}}, "server_response": "hello"}


def test_content_types_of_the_metadata_and_of_a_codec_of_its_own(moved: Moved) -> None:
    response = json.loads(moved.reader.paste("content-type-example/infer"))
    assert [output["data"] for output in response["outputs"]] == [["hello"], ["olleh"]]


def test_adaptive_batching(moved: Moved) -> None:
    printed = moved.reader.paste("models/batches/infer")
    responses = [
        json.loads("{" + part) for part in printed.split("{", 1)[1].replace('}{"model', '}\n{"model').split("\n{")
    ]
    said = sorted(response["outputs"][0]["data"][0] for response in responses)
    assert said == ["a, one of 3", "bc, one of 3", "def, one of 3"]


def test_the_repository(moved: Moved) -> None:
    index = {model["name"]: model["state"] for model in json.loads(moved.reader.paste("repository/index"))}
    assert {name: index[name] for name in MODELS} == dict.fromkeys(MODELS, "READY")
    moved.reader.paste("text-model/unload")
    assert is_ready(moved.sidecar, "text-model")


def test_seldons_file_of_an_openai_model_calls_the_provider(moved: Moved) -> None:
    responses = events(moved.reader.paste("openai-chat-completions/infer_stream"))
    outputs = [output for response in responses for output in response["outputs"] if output["name"] == "content"]
    assert "".join(output["data"][0] for output in outputs) == "Rayleigh"
    request = moved.provider.requests[-1]
    assert request.headers["authorization"] == "Bearer sk-of-the-environment"
    assert request.json()["model"] == "gpt-3.5-turbo"
    assert request.json()["messages"] == [{"role": "user", "content": "Why is the sky blue?"}]


def test_seldons_manifest_is_a_manifest() -> None:
    manifest = yaml.safe_load(Reader(Path(), PAGE).block("kind: Model"))
    assert (manifest["metadata"]["name"], set(manifest["spec"])) == (
        "text-model",
        {"storageUri", "requirements", "memory"},
    )


def test_a_server_of_vllm_stays_behind_the_sidecar(moved: Moved) -> None:
    model_id = moved.reader.paste("models create --blueprint openai-chat").strip().split("\n")[-1]
    program = moved.reader.block("from opensearch_ml_stream.client").replace("MODEL", model_id)
    (moved.reader.folder / "ask.py").write_text(program)
    assert moved.reader.run("python ask.py") == "Rayleigh"
    assert moved.provider.requests[-1].json()["model"] == "Qwen/Qwen2.5-1.5B-Instruct"


def test_a_folder_to_start_from_names_the_runtime(moved: Moved) -> None:
    moved.reader.paste("models init")
    settings = json.loads((moved.reader.folder / "models/qwen/model-settings.json").read_text())
    assert settings["implementation"] == "vllm"
