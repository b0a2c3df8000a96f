"""Public blueprints in which nothing is filled in: created, as by ML Commons, with warnings, and refused if called."""

import json
from collections.abc import AsyncIterator, Iterator

import pytest
from integration_tests.interop.public_blueprints.as_they_stand import AS_THEY_STAND, AsItStands
from integration_tests.management.management_server import Api, management_api, open_test_registry
from integration_tests.support.predict_calls import predict, reason
from integration_tests.support.sidecars import Sidecar, running_sidecar
from integration_tests.support.streamed_responses import stream

from opensearch_ml_stream.plugin.settings import Settings
from opensearch_ml_stream.plugin.store import Store

TRUSTED = "plugins.ml_commons.trusted_connector_endpoints_regex"
NOT_FILLED_IN = "The connector's url ({}) is not filled in: replace the placeholder in the connector by your own value"
each = pytest.mark.parametrize("blueprint", AS_THEY_STAND, ids=lambda blueprint: blueprint.name)


@pytest.fixture
async def api(store: Store) -> AsyncIterator[Api]:
    async with management_api(open_test_registry(store, Settings())) as opened:
        yield opened


@pytest.fixture(scope="module")
def default_sidecar(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sidecar]:
    trusted = {TRUSTED: json.dumps(Settings().trusted_connector_endpoints_regex)}
    with running_sidecar(tmp_path_factory.mktemp("sidecar"), settings=trusted) as running:
        yield running


def create_model(sidecar: Sidecar, blueprint: AsItStands) -> str:
    if blueprint.inline:
        return str(sidecar.post("/models/_register", blueprint.body)["model_id"])
    return sidecar.create_model(blueprint.body)


def places(warnings: list[str]) -> tuple[str, ...]:
    return tuple(warning.split("]")[0].removeprefix("[") for warning in warnings)


@each
async def test_one_is_created_with_a_warning_for_each_placeholder(api: Api, blueprint: AsItStands) -> None:
    path = "/models/_register" if blueprint.inline else "/connectors/_create"
    created = await api.ok("POST", path, blueprint.body)
    assert places(created["warnings"]) == blueprint.left
    shown = await api.ok(
        "GET", f"/models/{created['model_id']}" if blueprint.inline else f"/connectors/{created['connector_id']}"
    )
    assert blueprint.url_left in json.dumps(shown)


async def test_a_dry_run_warns_as_well(api: Api) -> None:
    created = await api.ok("POST", "/connectors/_create", {**AS_THEY_STAND[0].body, "dry_run": True})
    assert places(created["warnings"]) == AS_THEY_STAND[0].left


async def test_a_change_warns_of_what_is_left_and_of_nothing_once_all_is_filled_in(api: Api) -> None:
    created = await api.ok("POST", "/connectors/_create", AS_THEY_STAND[0].body)
    path = f"/connectors/{created['connector_id']}"
    endpoint = {"parameters": {"endpoint": "mine.openai.azure.com", "api-version": "1"}}
    changed = await api.ok("PUT", path, {**endpoint, "credential": {"openAI_key": "<YOUR API KEY>"}})
    assert places(changed["warnings"]) == ("parameters.deploy-name", "credential.openAI_key")
    rest = {"parameters": {"deploy-name": "d"}, "credential": {"openAI_key": "sk-1"}}
    assert "warnings" not in await api.ok("PUT", path, rest)


async def test_a_change_of_an_inline_connector_warns_of_what_is_left(api: Api) -> None:
    path = f"/models/{(await api.ok('POST', '/models/_register', AS_THEY_STAND[-1].body))['model_id']}"
    changed = await api.ok("PUT", path, {"connector": {"parameters": {"project": "p"}}})
    assert places(changed["warnings"]) == ("parameters.model_id",)
    assert "warnings" not in await api.ok("PUT", path, {"connector": {"parameters": {"model_id": "m"}}})
    assert "warnings" not in await api.ok("PUT", path, {"description": "d"})


async def test_a_host_that_is_wholly_left_open_is_refused_as_not_trusted_hosts_are(api: Api) -> None:
    body = {**AS_THEY_STAND[0].body, "parameters": {"endpoint": "<YOUR HOST>"}}
    status, said = await api.refused("POST", "/connectors/_create", body)
    assert status == 400
    assert said.endswith("the trusted connector endpoint regex: put your value in place of <YOUR HOST> first")


@each
def test_a_call_of_one_is_refused_and_names_the_placeholder(default_sidecar: Sidecar, blueprint: AsItStands) -> None:
    model_id = create_model(default_sidecar, blueprint)
    refused = predict(default_sidecar, model_id, {"parameters": {"messages": [], "input": ["a"], "prompt": "a"}})
    assert (refused.status_code, reason(refused)) == (400, NOT_FILLED_IN.format(blueprint.url_left))


def test_a_stream_of_one_is_refused_and_names_the_placeholder(default_sidecar: Sidecar) -> None:
    model_id = create_model(default_sidecar, AS_THEY_STAND[0])
    refused = stream(default_sidecar, model_id, {"parameters": {"messages": []}})
    assert (refused.status_code, reason(refused)) == (400, NOT_FILLED_IN.format("<YOUR RESOURCE NAME>"))
