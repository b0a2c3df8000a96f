"""Models that the server of an engine runs: vLLM's and llama.cpp's own where these are installed, else stand-ins."""

import json
import os
import signal
from collections.abc import Iterator
from functools import partial
from itertools import starmap
from pathlib import Path

import httpx
import pytest
from integration_tests.server.runtimes.engine_models import (
    PACKAGES,
    START_SECONDS,
    is_installed,
    message,
    predict,
    serving_engines,
    stream,
    text_of,
    write_model,
)
from integration_tests.server.runtimes.runtime_server import RuntimeServer
from integration_tests.support.conditions import eventually
from integration_tests.support.worker_processes import runs

PROMPT = "w1 w2 w3"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RuntimeServer]:
    folder = tmp_path_factory.mktemp("engines")
    for engine in PACKAGES:
        write_model(folder / "models", engine, engine)
    write_model(folder / "models", "embedding", "llama-cpp", model_type="embeddings")
    write_model(folder / "models", "text", "llama-cpp", model_type="completions", llm_parameters={"max_new_tokens": 4})
    with serving_engines(folder, folder / "models", *PACKAGES, "embedding", "text") as running:
        yield running


def is_logged(server: RuntimeServer, line: str) -> bool:
    return line in server.log


def is_another(server: RuntimeServer, name: str, pid: int) -> bool:
    """Whether the model is ready in another process."""
    return server.pid(name) not in (0, pid)


def is_refused(server: RuntimeServer, name: str, reason: str) -> bool:
    index = server.sidecar.client.post("/v2/repository/index", json={}).json()
    return any(one["name"] == name and reason in one["reason"] for one in index)


def family(pid: int) -> dict[int, str]:
    """The process and all that it has started, with their command lines, but for what has ended unwaited for."""
    try:
        command = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode()
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except OSError:
        return {}
    below = {found: line for child in children for found, line in family(int(child)).items()}
    return {pid: command, **below} if command else below


def is_running(pid: int, command: str) -> bool:
    """Whether a process runs that command; its id may be another one's by now."""
    return runs(pid) and family(pid).get(pid) == command


def engine_server(server: RuntimeServer, name: str) -> int:
    """The id of the engine's server: what the process of the model has started itself."""
    pid = server.pid(name)
    (child,) = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return int(child)


@pytest.mark.parametrize("engine", PACKAGES)
def test_a_stream_is_that_of_the_engines_server(server: RuntimeServer, engine: str) -> None:
    chunks = stream(server, engine, inputs=PROMPT)
    whole = message(predict(server, engine, inputs=PROMPT))["content"]
    assert text_of(chunks) == whole
    assert len(whole.split()) >= 3
    assert len(chunks) > 2


@pytest.mark.parametrize("engine", PACKAGES)
def test_parameters_of_the_settings_and_of_a_call_go_to_the_engine(server: RuntimeServer, engine: str) -> None:
    words = " ".join(f"w{number}" for number in range(30))
    assert len(message(predict(server, engine, inputs=words))["content"].split()) == 16
    assert len(message(predict(server, engine, inputs=words, max_tokens=5))["content"].split()) == 5


@pytest.mark.parametrize("engine", PACKAGES)
def test_v2_reaches_it_with_a_text_and_with_a_chat(server: RuntimeServer, engine: str) -> None:
    client = server.sidecar.client
    assert client.get(f"/v2/models/{engine}/ready").status_code == 200
    state = {one["name"]: one["state"] for one in client.post("/v2/repository/index", json={}).json()}
    assert state[engine] == "READY"
    text = {"name": "prompt", "shape": [1], "datatype": "BYTES", "data": [PROMPT]}
    body = {"inputs": [text], "parameters": {"temperature": 0}}
    response = client.post(f"/v2/models/{engine}/infer", json=body)
    assert response.status_code == 200, response.text
    expected = message(predict(server, engine, inputs=PROMPT))["content"]
    assert response.json()["outputs"][0]["data"] == [expected]
    chat = [{**text, "name": "role", "data": ["user"]}, {**text, "name": "content"}]
    response = client.post(f"/v2/models/{engine}/infer", json={**body, "inputs": chat})
    assert next(one["data"] for one in response.json()["outputs"] if one["name"] == "content") == [expected]
    generated = client.post(f"/v2/models/{engine}/generate", json={"text_input": PROMPT, "temperature": 0})
    assert generated.json()["text_output"] == expected


def test_texts_are_completed_where_the_settings_say_so(server: RuntimeServer) -> None:
    assert text_of(stream(server, "text", inputs="w1 w2 w3 w4 w5 w6")).split()[3:] != []


@pytest.mark.skipif(is_installed("llama-cpp"), reason="the tiny model has a vector for each token, and none for a text")
def test_texts_are_embedded_where_the_settings_say_so(server: RuntimeServer) -> None:
    response = server.post("/_predict/text_embedding/runtime-embedding", text_docs=["w1 w2", "w3"])
    assert response.status_code == 200, response.text
    vectors = [one["data"] for one in response.json()["inference_results"][0]["output"]]
    assert len(vectors) == 2
    assert vectors[0] != vectors[1]


def test_a_refusal_of_the_engine_says_its_words(server: RuntimeServer) -> None:
    response = predict(server, "vllm", inputs=PROMPT, temperature=-1)
    assert "temperature must be non-negative" in response.text
    assert "does not exist" in predict(server, "vllm", inputs=PROMPT, model="another").text


@pytest.mark.parametrize("engine", PACKAGES)
def test_its_server_asks_for_a_key_that_no_command_line_shows(server: RuntimeServer, engine: str) -> None:
    pid = engine_server(server, engine)
    lines = [line.partition("=") for line in Path(f"/proc/{pid}/environ").read_text().split("\0")]
    variables = {name: value for name, _, value in lines}
    key = variables["VLLM_API_KEY" if engine == "vllm" else "API_KEY"]
    commands = family(server.pid(engine)).values()
    port = variables["PORT"] if engine == "llama-cpp" else next(
        line.partition("--port ")[2].split()[0] for line in commands if "--port " in line
    )  # fmt: skip
    url = f"http://127.0.0.1:{port}/v1/models"
    assert not any(key in line for line in commands)
    assert httpx.get(url).status_code == 401
    assert httpx.post(f"http://127.0.0.1:{port}/tokenize", json={"prompt": "w1"}).status_code in (401, 404)
    assert httpx.post(f"http://127.0.0.1:{port}/invocations", json={"prompt": "w1"}).status_code in (401, 404)
    assert httpx.get(url, headers={"Authorization": f"Bearer {key}"}).status_code == 200
    profile = json.dumps(server.processes(engine))
    assert key not in profile + server.log + json.dumps(server.model(engine))
    action = {
        "action_type": "predict",
        "method": "POST",
        "url": f"http://127.0.0.1:{port}/v1/chat/completions",
        "headers": {"Authorization": "Bearer ${credential.key}"},
        "request_body": '{"model": "x", "messages": []}',
    }
    connector = {"name": "c", "version": 1, "protocol": "http", "credential": {"key": "guessed"}, "actions": [action]}
    model_id = server.sidecar.create_model(connector)
    response = server.post(f"/models/{model_id}/_predict", parameters={})
    assert (response.status_code, "401" in response.text or "Unauthorized" in response.text) == (424, True)


@pytest.mark.parametrize("engine", PACKAGES)
def test_a_server_that_is_killed_is_started_again_with_growing_pauses(tmp_path: Path, engine: str) -> None:
    write_model(tmp_path / "models", engine, engine)
    with serving_engines(tmp_path, tmp_path / "models", engine) as server:
        for pause in (0.5, 1):
            first = server.pid(engine)
            os.kill(engine_server(server, engine), signal.SIGKILL)
            expected = f"{engine}'s server was killed by signal 9; it is started again in {pause:g} s"
            eventually(partial(is_logged, server, expected))
            eventually(partial(is_another, server, engine, first), START_SECONDS)
        assert message(predict(server, engine, inputs=PROMPT))["content"]
        assert server.processes(engine)[0]["restarts"] == 2
        started = family(server.keeper())
        assert len(started) > 2
    eventually(lambda: not any(starmap(is_running, started.items())))


def test_a_dead_engine_in_a_living_server_is_noticed_and_both_are_started_again(tmp_path: Path) -> None:
    write_model(tmp_path / "models", "vllm", "vllm")
    with serving_engines(tmp_path, tmp_path / "models", "vllm") as server:
        first, api_server = server.pid("vllm"), engine_server(server, "vllm")
        core = next(pid for pid, line in family(api_server).items() if "EngineCore" in line or "time.sleep" in line)
        os.kill(core, signal.SIGKILL)
        eventually(lambda: server.pid("vllm") != first, 10)
        client = server.sidecar.client
        eventually(lambda: client.get("/v2/models/vllm/ready").status_code in (424, 200))
        eventually(partial(is_another, server, "vllm", first), START_SECONDS)
        assert not runs(api_server)
        assert client.get("/v2/models/vllm/ready").status_code == 200
        assert message(predict(server, "vllm", inputs=PROMPT))["content"]


def test_an_argument_that_the_engine_does_not_know_is_refused_in_its_words(tmp_path: Path) -> None:
    for engine in PACKAGES:
        write_model(tmp_path / "models", engine, engine, frobnicate=3)
    write_model(tmp_path / "models", "own", "vllm", port=80)
    with serving_engines(tmp_path, tmp_path / "models") as server:
        for engine in PACKAGES:
            eventually(partial(is_refused, server, engine, "unrecognized arguments: --frobnicate"), START_SECONDS)
        eventually(partial(is_refused, server, "own", "parameters.extra may not have port"))
        assert "parameters.extra may not have port" in predict(server, "own", inputs=PROMPT).text


def test_files_that_options_name_are_in_the_models_folder_and_its_modules_are_not_the_servers(tmp_path: Path) -> None:
    folder = write_model(tmp_path / "models", "vllm", "vllm", chat_template="own.jinja")
    (folder / "own.jinja").write_text("w1 w2")
    (folder / "argparse.py").write_text("raise SystemExit('a module of the model')")
    with serving_engines(tmp_path, tmp_path / "models", "vllm") as server:
        assert message(predict(server, "vllm", inputs=PROMPT))["content"]


@pytest.mark.skipif(is_installed("vllm"), reason="the stand-in holds a stream open")
@pytest.mark.parametrize("engine", PACKAGES)
def test_a_stream_whose_server_is_killed_ends_with_an_error(tmp_path: Path, engine: str) -> None:
    write_model(tmp_path / "models", engine, engine)
    with serving_engines(tmp_path, tmp_path / "models", engine) as server:
        path = f"/_plugins/_ml/models/runtime-{engine}/_predict/stream"
        with server.sidecar.client.stream("POST", path, json={"parameters": {"inputs": "hold it"}}) as response:
            lines = response.iter_lines()
            assert "hold" in next(line for line in lines if line)
            eventually(lambda: server.processes(engine)[0]["in_flight"] == 1)
            before = server.pid(engine)
            os.kill(engine_server(server, engine), signal.SIGKILL)
            assert "stream_truncated_exception" in "".join(lines)
        eventually(lambda: server.pid(engine) not in (0, before))  # it is started again
        keeper, started = server.keeper(), family(server.keeper())
        os.kill(keeper, signal.SIGKILL)
        eventually(lambda: not any(starmap(is_running, started.items())))
