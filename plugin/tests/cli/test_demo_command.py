"""The demo: its two models, what it trusts, and the lines that it prints, with and without a login."""

import re
import shlex
import sys
from pathlib import Path
from typing import Any

import httpx
import pytest

from opensearch_ml_stream.plugin.cli.demo_command import (
    DemoModel,
    find_models,
    first_steps,
    set_up_models,
    trust_provider,
)
from opensearch_ml_stream.plugin.cli.login import Login
from opensearch_ml_stream.plugin.cli.sidecar_api import SidecarAPI
from opensearch_ml_stream.plugin.cli.sidecar_options import SidecarOptions
from opensearch_ml_stream.plugin.security.presented_credentials import ApiKey, NameAndPassword
from opensearch_ml_stream.plugin.settings import DEFAULT_TRUSTED_ENDPOINTS, Settings
from tests.cli.in_memory_sidecar import InMemorySidecar

PROVIDER = "http://127.0.0.1:5000"
ENDPOINT = r"^http://127\.0\.0\.1:9519/.*$"
OWN_ENDPOINT = "^http://10.0.0.1/.*$"
OPENAI = DemoModel("m1", "c1", PROVIDER)


def api_of(sidecar: InMemorySidecar) -> SidecarAPI:
    return SidecarAPI(httpx.Client(transport=httpx.MockTransport(sidecar.handle), base_url="http://sidecar:9510"))


def hits(*models: dict[str, Any]) -> dict[str, Any]:
    return {"hits": {"hits": list(models)}}


def test_missing_models_are_made_with_connectors_to_the_provider() -> None:
    sidecar = InMemorySidecar(
        {
            ("POST", "/connectors/_create"): {"connector_id": "c1"},
            ("POST", "/models/_register"): {"model_id": "m1"},
        }
    )
    assert set_up_models(api_of(sidecar), {}, PROVIDER) == {"openai-chat": "m1", "anthropic-messages": "m1"}
    assert [path for _, path in sidecar.calls()] == ["/connectors/_create", "/models/_register"] * 2
    assert {sidecar.sent(number)["parameters"]["endpoint"] for number in (0, 2)} == {PROVIDER}
    assert [sidecar.sent(number)["name"] for number in (1, 3)] == ["Demo of openai-chat", "Demo of anthropic-messages"]


def test_models_that_exist_are_found_with_the_endpoints_of_their_connectors() -> None:
    sidecar = InMemorySidecar(
        {
            ("POST", "/models/_search"): hits({"_id": "m1", "_source": {"connector_id": "c1"}}),
            ("GET", "/connectors/c1"): {"parameters": {"endpoint": PROVIDER}},
        }
    )
    assert find_models(api_of(sidecar)) == {"openai-chat": OPENAI, "anthropic-messages": OPENAI}
    assert sidecar.sent(0)["query"] == {"term": {"name.keyword": "Demo of openai-chat"}}


def test_an_empty_store_has_no_models() -> None:
    assert find_models(api_of(InMemorySidecar({("POST", "/models/_search"): hits()}))) == {}


def test_models_that_point_at_the_provider_are_left_alone() -> None:
    sidecar = InMemorySidecar()
    existing = {"openai-chat": OPENAI, "anthropic-messages": OPENAI}
    assert set_up_models(api_of(sidecar), existing, PROVIDER) == {"openai-chat": "m1", "anthropic-messages": "m1"}
    assert sidecar.requests == []


def test_models_that_point_elsewhere_are_undeployed_and_pointed_at_the_provider() -> None:
    sidecar = InMemorySidecar({("POST", "/models/m1/_undeploy"): {}, ("PUT", "/connectors/c1"): {}})
    other = DemoModel("m1", "c1", "http://127.0.0.1:4000")
    set_up_models(api_of(sidecar), {"openai-chat": other, "anthropic-messages": OPENAI}, PROVIDER)
    assert sidecar.calls() == [("POST", "/models/m1/_undeploy"), ("PUT", "/connectors/c1")]
    assert sidecar.sent(1) == {"parameters": {"endpoint": PROVIDER}}


def test_only_the_providers_port_is_added() -> None:
    settings = trust_provider(Settings(), "http://127.0.0.1:9519")
    assert settings.trusted_connector_endpoints_regex == (*DEFAULT_TRUSTED_ENDPOINTS, ENDPOINT)
    assert settings.trusted_connector_private_endpoints_regex == (ENDPOINT,)
    assert settings.private_ip_enabled


@pytest.mark.parametrize(
    ("enabled", "before", "after"),
    [
        (True, (), ()),  # all private addresses were allowed, and stay so
        (True, (OWN_ENDPOINT,), (OWN_ENDPOINT, ENDPOINT)),
        (False, (OWN_ENDPOINT,), (ENDPOINT,)),  # without effect before, so without effect still
    ],
)
def test_what_the_operator_allows_stays_allowed(enabled: bool, before: tuple[str, ...], after: tuple[str, ...]) -> None:
    own = Settings(private_ip_enabled=enabled, trusted_connector_private_endpoints_regex=before)
    assert trust_provider(own, "http://127.0.0.1:9519").trusted_connector_private_endpoints_regex == after


SIDECAR = SidecarOptions("http://127.0.0.1:9510")


@pytest.fixture(autouse=True)
def program_name(monkeypatch: pytest.MonkeyPatch) -> None:
    """The lines name this program as it was called, and are as long as that."""
    monkeypatch.setattr(sys, "argv", ["opensearch-ml-stream"])


def commands(login: Login | None, sidecar: SidecarOptions = SIDECAR) -> list[list[str]]:
    """The words of each command, up to a pipe."""
    shown = first_steps(sidecar, login, "m1", "m2").replace("\\\n", "")
    lines = [line.strip() for line in shown.splitlines() if re.match("  [^ ]", line)]
    return [shlex.split(line.partition(" | ")[0]) for line in lines]


def test_an_id_that_a_shell_would_run_is_one_word_of_what_is_pasted() -> None:
    shown = first_steps(SIDECAR, None, "$(x) y", "m2").replace("\\\n", "")
    (line,) = (line for line in shown.splitlines() if " predict " in line)
    assert shlex.split(line)[2] == "$(x) y"
    assert "/models/%24%28x%29%20y/_predict/stream" in shown


def test_without_a_login_none_is_shown() -> None:
    assert "log in" not in first_steps(SIDECAR, None, "m1", "m2")
    assert not [words for words in commands(None) if {"-u", "--user"} & {*words} or "Authorization" in str(words)]
    assert [words[0] for words in commands(None)][:3] == ["curl"] * 3


def test_a_key_goes_to_curl_from_its_variable_and_to_this_program_by_itself() -> None:
    login = Login(ApiKey("mls_1_secret"), "the key of MLSTREAM_API_KEY")
    shown = first_steps(SIDECAR, login, "m1", "m2")
    assert "MLSTREAM_API_KEY has to hold a key where you paste this" in shown and "secret" not in shown
    *curls, predict, create = commands(login)
    assert [words.count("Authorization: Bearer $MLSTREAM_API_KEY") for words in curls] == [1] * 3
    assert "--user" not in predict + create


def test_a_users_password_is_asked_for_by_both() -> None:
    login = Login(NameAndPassword("ann", "hunter22"), "the user of MLSTREAM_USER")
    shown = first_steps(SIDECAR, login, "m1", "m2")
    assert "you are asked for the password of ann" in shown and "hunter22" not in shown
    *curls, predict, create = commands(login)
    assert [words[words.index("-u") + 1] for words in curls] == ["ann"] * 3
    assert [words[words.index("--user") + 1] for words in (predict, create)] == ["ann"] * 2


@pytest.mark.parametrize("login", [None, Login(ApiKey("k"), "it"), Login(NameAndPassword("ann", "pw"), "it")])
def test_the_files_of_tls_are_named(login: Login | None) -> None:
    sidecar = SidecarOptions("https://h", ca_certs=Path("a b.pem"), client_cert=Path("c.pem"))
    assert all({"a b.pem", "c.pem"} <= {*words} for words in commands(login, sidecar))
    assert [line for line in first_steps(SIDECAR, login, "m" * 20, "m" * 20).splitlines() if len(line) > 86] == []


def test_the_page_is_named_for_a_browser() -> None:
    assert f" in a browser: {SIDECAR.url}/\n" in first_steps(SIDECAR, None, "m1", "m2")
