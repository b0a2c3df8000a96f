"""The first run, as `make run` starts it."""

import os
import re
import signal
import socket
import subprocess
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

import httpx
import pytest
from integration_tests.cli.commands import output_of
from integration_tests.cli.demo_process import LAST_LINE, Demo, running_demo
from integration_tests.support.certificates import new_authority
from integration_tests.support.conditions import PATIENCE_SECONDS, promptly
from integration_tests.support.connector_bodies import openai
from integration_tests.support.stores import free_port

from opensearch_ml_stream.plugin.demo.canned_responses import canned_response
from opensearch_ml_stream.plugin.demo.provider import demo_provider

QUESTION = "What is the meaning of life?"


def search(demo: Demo, kind: str) -> dict[str, Any]:
    """The documents of a demo's store by their ids."""
    found = httpx.post(f"{demo.url}/_plugins/_ml/{kind}/_search", json={"query": {"match_all": {}}}).json()
    return {hit["_id"]: hit["_source"] for hit in found["hits"]["hits"]}


def create_key(folder: Path) -> tuple[str, ...]:
    """The command that makes a key in the store of a demo with that folder."""
    store = f"sqlite:///{folder}/opensearch-ml-stream/demo.db"
    return ("keys", "create", "demo", "--role", "ml_full_access", "--store", store)


def new_key(folder: Path) -> str:
    (folder / "opensearch-ml-stream").mkdir()
    return output_of(*create_key(folder))


def taken(port: int) -> AbstractContextManager[object]:
    """Keeps others from a port while the block runs; another demo may do so already."""
    try:
        return socket.create_server(("127.0.0.1", port))
    except OSError:
        return nullcontext()


def test_the_first_run_shows_a_response_and_curl_lines_and_the_second_makes_nothing_twice(tmp_path: Path) -> None:
    port = free_port()
    with running_demo(tmp_path, port) as demo:
        shown = demo.read_until(LAST_LINE)
        assert canned_response(QUESTION).text in shown
        assert f"{demo.url}, with --store sqlite:///{tmp_path}/opensearch-ml-stream/demo.db\n" in shown
        urls = re.findall(r"http://\S+/_predict/stream", shown)
        assert len(set(urls)) == 2
        steps = [line for line in shown.partition("Go on with")[2].splitlines() if "__main__.py" not in line]
        assert [line for line in steps if len(line) > 86] == []  # 80 and the digits of a longer port
        for url in set(urls):
            response = httpx.post(url, json={"parameters": {"inputs": "Hello"}})
            assert response.status_code == 200
            assert response.text.count('"is_last":true') == 1
        models = search(demo, "models")
        assert sorted(model["name"] for model in models.values()) == [
            "Demo of anthropic-messages",
            "Demo of openai-chat",
        ]
        for other in ("http://127.0.0.1:1", "http://127.0.0.1:22", "http://10.0.0.1:9519", demo.url):
            refused = httpx.post(f"{demo.url}/_plugins/_ml/connectors/_create", json=openai(other))
            assert (refused.status_code, "trusted connector endpoint" in refused.text) == (400, True)
        endpoints = {one["parameters"]["endpoint"] for one in search(demo, "connectors").values()}
        demo.stop(signal.SIGTERM)
    store = tmp_path / "opensearch-ml-stream" / "demo.db"
    assert store.exists() and not store.with_name("store.db").exists()  # the user's own
    assert store.parent.stat().st_mode & 0o077 == 0

    (provider,) = endpoints
    with taken(int(provider.rpartition(":")[2])), running_demo(tmp_path, port) as demo:
        demo.read_until("The meaning of")  # though the provider has another port now
        assert search(demo, "models").keys() == models.keys()
        demo.stop(signal.SIGINT)
        assert LAST_LINE not in demo.output  # Ctrl-C ended it while the response streamed
        with pytest.raises(httpx.ConnectError):
            httpx.get(f"{demo.url}/_health/live")


def test_a_second_demo_leaves_the_models_of_one_that_runs_alone_and_says_what_to_do(tmp_path: Path) -> None:
    with running_demo(tmp_path, free_port()) as demo:
        demo.read_until(LAST_LINE)
        with running_demo(tmp_path, free_port()) as second:
            second.read_until("Another demo that runs uses this store: stop it, or give this one a store of its own")
            assert second.process.wait(PATIENCE_SECONDS) == 1
        for model in search(demo, "models"):
            predict = f"{demo.url}/_plugins/_ml/models/{model}/_predict"
            assert httpx.post(predict, json={"parameters": {"inputs": "Hello"}}).status_code == 200
        demo.stop(signal.SIGINT)


def test_a_demo_of_another_store_may_have_the_port_that_the_models_know(tmp_path: Path) -> None:
    with running_demo(tmp_path, free_port()) as demo:
        demo.read_until(LAST_LINE)
        (provider,) = {one["parameters"]["endpoint"] for one in search(demo, "connectors").values()}
        demo.stop(signal.SIGINT)
    with demo_provider("another store", int(provider.rpartition(":")[2])), running_demo(tmp_path, free_port()) as demo:
        demo.read_until(LAST_LINE)
        demo.stop(signal.SIGINT)


def test_a_store_with_trusted_endpoints_of_its_own_lets_the_provider_have_another_port(tmp_path: Path) -> None:
    with running_demo(tmp_path, free_port()) as demo:
        demo.read_until(LAST_LINE)
        output_of("endpoints", "allow", "http://127.0.0.1:1", "--url", demo.url)
        (provider,) = {one["parameters"]["endpoint"] for one in search(demo, "connectors").values()}
        demo.stop(signal.SIGINT)
    with taken(int(provider.rpartition(":")[2])), running_demo(tmp_path, free_port()) as demo:
        demo.read_until(LAST_LINE)
        demo.stop(signal.SIGINT)


@pytest.mark.slow
def test_ctrl_c_ends_it_within_2_s_while_a_response_streams(tmp_path: Path) -> None:
    with running_demo(tmp_path, free_port()) as demo:
        demo.read_until("The meaning of")
        demo.process.send_signal(signal.SIGINT)
        promptly(lambda: demo.process.poll() is not None, 2)


@pytest.mark.programs("curl")
def test_over_https_with_a_key_its_curl_lines_name_the_authority_and_the_certificate_and_ask_for_the_key(
    tmp_path: Path,
) -> None:
    authority, files = new_authority(), {name: tmp_path / f"{name} of the port.pem" for name in ("ca", "own", "ann")}
    files["ca"].write_text(authority.certificate_pem)
    for name in ("own", "ann"):
        issued = authority.issue(name)
        files[name].write_text(issued.key_pem + issued.certificate_pem)
    tls = "MLSTREAM_SETTING__OPENSEARCH_ML_STREAM__TLS__"
    key = new_key(tmp_path)
    variables = {
        f"{tls}CERTIFICATE": str(files["own"]),
        f"{tls}CLIENT_CERTIFICATES": "required",
        f"{tls}CLIENT_AUTHORITIES": str(files["ca"]),
        "MLSTREAM_CA_CERTS": str(files["ca"]),
        "MLSTREAM_CLIENT_CERT": str(files["ann"]),
        "MLSTREAM_API_KEY": key,
    }
    with running_demo(tmp_path, free_port(), variables, "https") as demo:
        shown = demo.read_until(LAST_LINE)
        assert canned_response(QUESTION).text in shown
        assert "MLSTREAM_API_KEY has to hold a key where you paste this" in shown and key not in shown
        command = shown.partition("one JSON object a line:")[2].partition("only the text")[0]
        pasted = {**os.environ, "MLSTREAM_API_KEY": key}
        ended = subprocess.run(["bash", "-c", command], env=pasted, capture_output=True, text=True, timeout=20)
        assert ended.stdout.count('"is_last":true') == 1, ended.stderr
        assert f"--client-cert '{files['ann']}'" in shown.partition("your own words")[2]
        demo.stop(signal.SIGINT)


def test_a_port_in_use_is_an_error_with_what_to_do(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        with running_demo(tmp_path, port) as demo:
            shown = demo.read_until("--port")
            assert demo.process.wait(PATIENCE_SECONDS) == 1
    assert f"127.0.0.1:{port} is in use" in shown
    assert "Traceback" not in shown


def test_without_a_login_for_its_store_it_says_how_to_make_a_key(tmp_path: Path) -> None:
    new_key(tmp_path)
    with running_demo(tmp_path, free_port()) as demo:
        demo.read_until("makes a key")
        assert demo.process.wait(PATIENCE_SECONDS) == 1
    assert f"{' '.join(create_key(tmp_path))}` makes a key" in demo.output
