"""The public ML Commons blueprints work as they are: created, called, and streamed where their kind can.

All of them: each is a document that somebody wrote for another server. A call takes a hundredth of a second.
"""

from collections.abc import Iterator

import httpx
import pytest
from integration_tests.interop.public_blueprints import PUBLIC_BLUEPRINTS
from integration_tests.interop.public_blueprints.body import PublicBlueprint
from integration_tests.support.background_provider import background_provider
from integration_tests.support.fake_provider import FakeProvider
from integration_tests.support.predict_calls import outputs, predict, reason
from integration_tests.support.sidecars import Sidecar, running_sidecar
from integration_tests.support.streamed_responses import assert_says, stream

USABLE = [one for one in PUBLIC_BLUEPRINTS if one.refused is None]


@pytest.fixture
def sidecar_with_painless(
    tmp_path_factory: pytest.TempPathFactory, opensearch_url: str, index_prefix: str
) -> Iterator[Sidecar]:
    settings = {"opensearch_ml_stream.index_prefix": index_prefix}
    with running_sidecar(tmp_path_factory.mktemp("sidecar"), opensearch_url, settings) as running:
        yield running


def post(sidecar: Sidecar, blueprint: PublicBlueprint, provider: FakeProvider) -> httpx.Response:
    path = "/_plugins/_ml/models/_register" if blueprint.inline else "/_plugins/_ml/connectors/_create"
    headers = {"content-type": "application/json"}
    return sidecar.client.post(path, content=blueprint.at(provider), headers=headers)


def create(sidecar: Sidecar, blueprint: PublicBlueprint, provider: FakeProvider) -> str:
    """The id of a model."""
    created = post(sidecar, blueprint, provider)
    assert created.status_code == 200, created.text
    if blueprint.inline:
        return str(created.json()["model_id"])
    model = {"name": blueprint.name, "function_name": "remote", "connector_id": created.json()["connector_id"]}
    return str(sidecar.post("/models/_register", model)["model_id"])


def named(blueprints: list[PublicBlueprint]) -> list[object]:
    return [pytest.param(one, id=f"{index} {one.name}") for index, one in enumerate(blueprints)]


def test_all_of_them_are_here() -> None:
    assert len(PUBLIC_BLUEPRINTS) == 89
    assert sum("//" in one.text.replace("://", "") for one in PUBLIC_BLUEPRINTS) >= 16


@pytest.mark.parametrize("blueprint", named([one for one in PUBLIC_BLUEPRINTS if one.refused]))
def test_one_for_the_managed_service_alone_is_refused(sidecar: Sidecar, blueprint: PublicBlueprint) -> None:
    with background_provider(blueprint.dialect.script) as provider:
        response = post(sidecar, blueprint, provider)
        if response.status_code == 200:
            body = {"name": "m", "function_name": "remote", "connector_id": response.json()["connector_id"]}
            response = predict(
                sidecar, sidecar.post("/models/_register", body)["model_id"], dict(blueprint.dialect.prediction)
            )
        assert reason(response) == blueprint.refused
        assert provider.requests == []


@pytest.mark.parametrize("blueprint", named(USABLE))
def test_a_public_blueprint_predicts(sidecar: Sidecar, blueprint: PublicBlueprint) -> None:
    with background_provider(blueprint.dialect.script) as provider:
        response = predict(sidecar, create(sidecar, blueprint, provider), dict(blueprint.dialect.prediction))
    if blueprint.needs_painless:
        assert "Painless" in reason(response)
    else:
        assert outputs(response) == blueprint.dialect.predicted


@pytest.mark.opensearch
@pytest.mark.parametrize("blueprint", named([one for one in USABLE if one.needs_painless]))
def test_one_with_scripts_predicts_beside_an_opensearch(
    sidecar_with_painless: Sidecar, blueprint: PublicBlueprint
) -> None:
    with background_provider(blueprint.dialect.script) as provider:
        model_id = create(sidecar_with_painless, blueprint, provider)
        response = predict(sidecar_with_painless, model_id, dict(blueprint.dialect.prediction))
    assert outputs(response) == blueprint.dialect.predicted


@pytest.mark.parametrize("blueprint", named([one for one in USABLE if one.dialect.streamed]))
def test_a_public_blueprint_streams(sidecar: Sidecar, blueprint: PublicBlueprint) -> None:
    with background_provider(blueprint.dialect.script) as provider:
        response = stream(sidecar, create(sidecar, blueprint, provider), blueprint.dialect.prediction)
    assert blueprint.dialect.streamed is not None
    assert_says(response, blueprint.dialect.streamed.recorded)


@pytest.mark.parametrize("blueprint", named([one for one in USABLE if not one.dialect.streamed]))
def test_one_that_makes_no_text_says_why_it_does_not_stream(sidecar: Sidecar, blueprint: PublicBlueprint) -> None:
    with background_provider(blueprint.dialect.script) as provider:
        response = stream(sidecar, create(sidecar, blueprint, provider), blueprint.dialect.prediction)
    assert blueprint.stream_says in reason(response)
