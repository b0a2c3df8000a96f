"""The demo's models over a sidecar in memory, and what that sidecar trusts: the demo's provider, no more."""

from typing import Any

import httpx
import pytest

from opensearch_ml_stream.plugin.cli.running.demo_command import trust_provider
from opensearch_ml_stream.plugin.cli.running.demo_models import DemoModel, find_models, set_up_models
from opensearch_ml_stream.plugin.cli.sidecar_api import SidecarAPI
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
