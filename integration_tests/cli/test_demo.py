"""The first run, as `make run` starts it."""

import os
import re
import signal
import socket
import subprocess
from pathlib import Path

import httpx
import pytest
from integration_tests.cli.commands import run_process
from integration_tests.cli.demo_process import running_demo
from integration_tests.support.certificates import new_authority
from integration_tests.support.connector_bodies import openai
from integration_tests.support.stores import free_port

from opensearch_ml_stream.plugin.demo.canned_responses import canned_response

QUESTION = "What is the meaning of life?"
LAST_LINE = "Ctrl-C ends the sidecar"


def model_names(url: str) -> list[str]:
    hits = httpx.post(f"{url}/_plugins/_ml/models/_search", json={"query": {"match_all": {}}}).json()["hits"]["hits"]
    return sorted(hit["_source"]["name"] for hit in hits)


def test_the_first_run_shows_a_response_and_working_curl_lines_and_the_second_makes_nothing_twice(
    tmp_path: Path,
) -> None:
    port = free_port()
    with running_demo(tmp_path, port) as demo:
        shown = demo.read_until(LAST_LINE)
        assert canned_response(QUESTION).text in shown
        urls = re.findall(r"http://\S+/_predict/stream", shown)
        assert len(set(urls)) == 2
        steps = [line for line in shown.partition("Go on with")[2].splitlines() if "__main__.py" not in line]
        assert [line for line in steps if len(line) > 86] == []  # 80 and the digits of a longer port
        for url in set(urls):
            response = httpx.post(url, json={"parameters": {"inputs": "Hello"}})
            assert response.status_code == 200
            assert response.text.count('"is_last":true') == 1
        assert model_names(demo.url) == ["Demo of anthropic-messages", "Demo of openai-chat"]
        for other in ("http://127.0.0.1:1", "http://127.0.0.1:22", "http://10.0.0.1:9519", demo.url):
            refused = httpx.post(f"{demo.url}/_plugins/_ml/connectors/_create", json=openai(other))
            assert (refused.status_code, "trusted connector endpoint" in refused.text) == (400, True)
        demo.stop(signal.SIGINT)
    store = tmp_path / "opensearch-ml-stream" / "demo.db"
    assert store.exists() and not store.with_name("store.db").exists()  # the user's own
    assert store.parent.stat().st_mode & 0o077 == 0

    with running_demo(tmp_path, port) as demo:
        shown = demo.read_until(LAST_LINE)
        assert set(re.findall(r"http://\S+/_predict/stream", shown)) == set(urls)
        assert model_names(demo.url) == ["Demo of anthropic-messages", "Demo of openai-chat"]
        demo.stop(signal.SIGTERM)


def test_over_https_its_curl_lines_name_the_authority_and_the_clients_certificate(tmp_path: Path) -> None:
    authority, files = new_authority(), {name: tmp_path / f"{name} of the port.pem" for name in ("ca", "own", "ann")}
    files["ca"].write_text(authority.certificate_pem)
    for name in ("own", "ann"):
        issued = authority.issue(name)
        files[name].write_text(issued.key_pem + issued.certificate_pem)
    tls = "MLSTREAM_SETTING__OPENSEARCH_ML_STREAM__TLS__"
    variables = {
        f"{tls}CERTIFICATE": str(files["own"]),
        f"{tls}CLIENT_CERTIFICATES": "required",
        f"{tls}CLIENT_AUTHORITIES": str(files["ca"]),
        "MLSTREAM_CA_CERTS": str(files["ca"]),
        "MLSTREAM_CLIENT_CERT": str(files["ann"]),
    }
    with running_demo(tmp_path, free_port(), variables, "https") as demo:
        shown = demo.read_until(LAST_LINE)
        assert canned_response(QUESTION).text in shown
        command = shown.partition("one JSON object a line:")[2].partition("only the text")[0]
        ended = subprocess.run(["bash", "-c", command], capture_output=True, text=True, timeout=20, check=False)
        assert ended.stdout.count('"is_last":true') == 1, ended.stderr
        assert f"--client-cert '{files['ann']}'" in shown.partition("your own words")[2]
        demo.stop(signal.SIGINT)


def test_the_models_work_again_when_the_provider_has_to_take_another_port(tmp_path: Path) -> None:
    with running_demo(tmp_path, free_port()) as demo:
        demo.read_until(LAST_LINE)
        path = f"{demo.url}/_plugins/_ml/connectors/_search"
        hits = httpx.post(path, json={"query": {"match_all": {}}}).json()["hits"]["hits"]
        endpoint = hits[0]["_source"]["parameters"]["endpoint"]
        demo.stop(signal.SIGINT)
    with (
        socket.create_server(("127.0.0.1", int(endpoint.rpartition(":")[2]))),
        running_demo(tmp_path, free_port()) as demo,
    ):
        assert canned_response(QUESTION).text in demo.read_until(LAST_LINE)


def test_ctrl_c_ends_it_within_2_s_while_a_response_streams(tmp_path: Path) -> None:
    with running_demo(tmp_path, free_port()) as demo:
        demo.read_until("The meaning of")
        demo.stop(signal.SIGINT)
        assert LAST_LINE not in demo.output
        with pytest.raises(httpx.ConnectError):
            httpx.get(f"{demo.url}/_health/live")


def test_a_port_in_use_is_an_error_with_what_to_do(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        with running_demo(tmp_path, port) as demo:
            shown = demo.read_until("--port")
            assert demo.process.wait(20) == 1
    assert f"127.0.0.1:{port} is in use" in shown
    assert "Traceback" not in shown


@pytest.mark.timeout(120)
def test_with_users_or_keys_in_its_store_it_logs_in_and_its_curl_lines_do_too(tmp_path: Path) -> None:
    store = f"sqlite:///{tmp_path}/opensearch-ml-stream/demo.db"
    (tmp_path / "opensearch-ml-stream").mkdir()
    create = ("keys", "create", "demo", "--role", "ml_full_access", "--store", store)
    key = run_process(*create).stdout.strip()
    with running_demo(tmp_path, free_port()) as demo:
        demo.read_until("makes a key")
        assert demo.process.wait(20) == 1
    assert f"{' '.join(create)}` makes a key" in demo.output
    with running_demo(tmp_path, free_port(), {"MLSTREAM_API_KEY": key}) as demo:
        shown = demo.read_until(LAST_LINE)
        assert "MLSTREAM_API_KEY has to hold a key where you paste this" in shown and key not in shown
        line = shown.partition("one JSON object a line:")[2].partition("only the text")[0]
        pasted = ["bash", "-c", line]
        ended = subprocess.run(pasted, env={**os.environ, "MLSTREAM_API_KEY": key}, capture_output=True, timeout=20)
        assert ended.stdout.count(b'"is_last":true') == 1, ended.stderr
        demo.stop(signal.SIGINT)
