"""OpenSearch's clients for JavaScript and Java as they come: `info()`, a streamed prediction, a refused login.

opensearch-py has tests of its own in `integration_tests/client`.
"""

import json
import subprocess
from collections.abc import Callable, Iterator, Sequence

import pytest
from integration_tests.interop.opensearch_clients.opensearch_java import PROGRAMS, in_java
from integration_tests.server.guarded_sidecars import Guarded, running_guarded
from integration_tests.support.background_provider import background_provider
from integration_tests.support.connector_bodies import openai
from integration_tests.support.fake_provider import Gate, openai_stream
from integration_tests.support.npm_packages import installed_modules

pytestmark = pytest.mark.peers

WORDS = ["For", "ty", "-two"]
WITH_NODE = pytest.mark.programs("node", "npm")
WITH_JAVA = pytest.mark.programs("mvn", "javac")
IN_JAVASCRIPT = pytest.mark.parametrize("client", ["@opensearch-project/opensearch", "opensearch-js-3"])


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    with running_guarded(tmp_path_factory.mktemp("guarded")) as guarded:
        yield guarded


def in_javascript(client: str, *arguments: str) -> list[str]:
    return ["node", str(PROGRAMS / "ask.js"), installed_modules("opensearch_js"), client, *arguments]


def printed(command: Sequence[str], each: Callable[[str], object] = lambda _: None) -> list[str]:
    """The lines that a program prints; `each` is called with one before the next is read."""
    lines = []
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as program:
        assert program.stdout is not None
        for line in program.stdout:
            each(line)
            lines.append(line.rstrip("\n"))
    assert program.returncode == 0
    return lines


def texts(lines: Sequence[str]) -> list[str]:
    outputs = [json.loads(line)["inference_results"][0]["output"][0]["dataAsMap"] for line in lines]
    assert outputs[-1]["is_last"] and outputs[-1]["finish_reason"] == "stop"
    return [output["response"] for output in outputs if output["response"]]


@WITH_NODE
@IN_JAVASCRIPT
def test_opensearch_js_reads_the_version_and_each_chunk_as_it_comes(guarded: Guarded, client: str) -> None:
    """The provider goes on only when the program has printed the first word."""
    gate, script = Gate(), openai_stream(WORDS)

    def go_on(line: str) -> None:
        if WORDS[0] in line:
            gate.open()

    with background_provider([*script[:3], gate, *script[3:]]) as provider:
        model_id = guarded.create_model(openai(provider.url))
        key = guarded.keys["ml_full_access"]
        version, *lines = printed(in_javascript(client, guarded.sidecar.url, model_id, key), go_on)
    assert (version, texts(lines)) == ("3.6.0", WORDS)


@WITH_JAVA
def test_opensearch_java_reads_the_version_and_a_stream(guarded: Guarded) -> None:
    with background_provider(openai_stream(WORDS)) as provider:
        model_id = guarded.create_model(openai(provider.url))
        key = guarded.keys["ml_full_access"]
        version, *lines = printed(in_java(guarded.sidecar.url, model_id, key))
    assert (version, texts(lines)) == ("3.6.0", WORDS)


@WITH_NODE
@IN_JAVASCRIPT
def test_opensearch_js_says_why_a_login_is_refused(guarded: Guarded, client: str) -> None:
    [error] = printed(in_javascript(client, guarded.sidecar.url, "m", ""))
    assert error.startswith("ResponseError 401 security_exception") and "Unauthorized" in error


@WITH_JAVA
def test_opensearch_java_says_that_a_login_is_refused(guarded: Guarded) -> None:
    [error] = printed(in_java(guarded.sidecar.url, "m", ""))
    assert error == "java.io.IOException Unauthorized access"
