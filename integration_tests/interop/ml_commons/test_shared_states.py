"""Deploying, changing and deleting a model on both sides of one cluster."""

from typing import Any

import pytest
from integration_tests.interop.ml_commons.sides import Side, reason
from integration_tests.support.conditions import eventually
from integration_tests.support.fake_provider import FakeProvider

pytestmark = pytest.mark.ml_commons

SYNC_UP_SECONDS = 25  # ML Commons' job runs every 10 s


def stored_state(side: Side, model_id: str) -> str:
    """What the document says, which ML Commons' job reads and writes."""
    return str(side.client.get(f"/.plugins-ml-model/_doc/{model_id}").json()["_source"]["model_state"])


def switch_auto_deploy_off(side: Side, model_id: str) -> None:
    side.ask("PUT", f"/models/{model_id}", {"deploy_setting": {"is_auto_deploy_enabled": False}})


def test_a_model_that_the_sidecar_deployed_outlives_the_others_look_at_all_states(
    sidecar: Side, ml_commons: Side, connector: dict[str, Any], beside_provider: FakeProvider
) -> None:
    """The job of ML Commons makes DEPLOY_FAILED of what is DEPLOYED in the documents and on none of its nodes."""
    model_id = sidecar.create_model(connector)
    switch_auto_deploy_off(sidecar, model_id)
    bait = ml_commons.create_model(connector)
    sidecar.deploy(model_id)
    document = {"doc": {"model_state": "DEPLOYED"}}
    ml_commons.client.post(f"/.plugins-ml-model/_update/{bait}?refresh=true", json=document).raise_for_status()
    eventually(lambda: stored_state(ml_commons, bait) == "DEPLOY_FAILED", SYNC_UP_SECONDS)
    assert stored_state(ml_commons, model_id) == "REGISTERED"
    assert sidecar.state(model_id) == "DEPLOYED"
    assert sidecar.predicted(model_id)["choices"]


def test_each_has_a_model_deployed_for_itself_and_both_predict(
    sidecar: Side, ml_commons: Side, connector: dict[str, Any]
) -> None:
    model_id = ml_commons.create_model(connector)
    for side in (sidecar, ml_commons):
        side.deploy(model_id)
    assert [side.state(model_id) for side in (sidecar, ml_commons)] == ["DEPLOYED", "DEPLOYED"]
    assert sidecar.predicted(model_id)["choices"] and ml_commons.predicted(model_id)["choices"]


def test_an_undeploy_at_the_sidecar_undeploys_on_both_sides(
    sidecar: Side, ml_commons: Side, connector: dict[str, Any]
) -> None:
    model_id = ml_commons.create_model(connector)
    switch_auto_deploy_off(ml_commons, model_id)
    for side in (sidecar, ml_commons):
        side.deploy(model_id)
    (node,) = sidecar.ask("POST", f"/models/{model_id}/_undeploy").values()
    assert node["stats"] == {model_id: "undeployed"}
    assert [side.state(model_id) for side in (sidecar, ml_commons)] == ["UNDEPLOYED", "UNDEPLOYED"]
    assert "deploy" in reason(ml_commons.predict(model_id), 400)
    eventually(lambda: sidecar.predict(model_id).status_code == 400, 2)


def test_an_undeploy_at_ml_commons_leaves_what_the_sidecar_has_deployed(
    sidecar: Side, ml_commons: Side, connector: dict[str, Any]
) -> None:
    model_id = ml_commons.create_model(connector)
    for side in (sidecar, ml_commons):
        side.deploy(model_id)
    ml_commons.ask("POST", f"/models/{model_id}/_undeploy")
    assert (sidecar.state(model_id), ml_commons.state(model_id)) == ("DEPLOYED", "UNDEPLOYED")


def test_a_model_that_ml_commons_deployed_is_deployed_and_not_deleted_at_the_sidecar(
    sidecar: Side, ml_commons: Side, connector: dict[str, Any]
) -> None:
    model_id = sidecar.create_model(connector)
    ml_commons.deploy(model_id)
    assert sidecar.state(model_id) == "DEPLOYED"
    assert "undeploy model first" in reason(sidecar.call("DELETE", f"/models/{model_id}"), 400)
    sidecar.ask("POST", f"/models/{model_id}/_undeploy")
    assert sidecar.ask("DELETE", f"/models/{model_id}")["result"] == "deleted"


@pytest.mark.parametrize("changer", ["sidecar", "ml_commons"])
def test_a_model_that_one_disables_is_refused_by_both_at_once(
    sides: dict[str, Side], connector: dict[str, Any], changer: str
) -> None:
    model_id = sides["ml_commons"].create_model(connector)
    for side in sides.values():
        side.deploy(model_id)
        assert side.predicted(model_id)["choices"]
    sides[changer].ask("PUT", f"/models/{model_id}", {"is_enabled": False})
    assert reason(sides["ml_commons"].predict(model_id), 403) == "Model is disabled."
    eventually(lambda: sides["sidecar"].predict(model_id).status_code == 403, 2)


def test_an_inline_connector_that_the_sidecar_changes_is_changed_in_ml_commons_too(
    sidecar: Side, ml_commons: Side, connector: dict[str, Any], beside_provider: FakeProvider
) -> None:
    body = {"name": "inline", "function_name": "remote", "connector": connector}
    model_id = ml_commons.ask("POST", "/models/_register", body)["model_id"]
    ml_commons.deploy(model_id)
    assert ml_commons.predicted(model_id)["asked"]["model"] == "gpt-4o-mini"
    change = {"connector": {"parameters": {"model": "gpt-next"}, "credential": {"openAI_key": "sk-next"}}}
    sidecar.ask("PUT", f"/models/{model_id}", change)
    assert ml_commons.predicted(model_id)["asked"]["model"] == "gpt-next"
    assert beside_provider.requests[-1].headers["authorization"] == "Bearer sk-next"


def test_a_rate_limit_and_a_guardrail_of_one_hold_at_both(sides: dict[str, Side], connector: dict[str, Any]) -> None:
    guardrails = {"type": "local_regex", "input_guardrail": {"regex": [".*forbidden.*"]}}
    for name, maker in sides.items():
        limited = maker.create_model(connector, rate_limiter={"limit": "1", "unit": "DAYS"})
        guarded = maker.create_model(connector, guardrails=guardrails)
        for side in sides.values():
            assert side.predicted(limited)["choices"], name
            assert "throttled at model level" in reason(side.predict(limited), 429)
            assert side.predicted(guarded, "allowed")["choices"]
            assert side.predict(guarded, "a forbidden word").status_code == 400


def test_a_connector_whose_model_is_deployed_at_one_is_not_changed_by_the_other(
    sides: dict[str, Side], connector: dict[str, Any]
) -> None:
    model_id = sides["sidecar"].create_model(connector)
    connector_id = sides["sidecar"].ask("GET", f"/models/{model_id}")["connector_id"]
    sides["ml_commons"].deploy(model_id)
    refused = sides["sidecar"].call("PUT", f"/connectors/{connector_id}", {"description": "changed"})
    assert "still using this connector, please undeploy the models first" in reason(refused, 400)
    sides["sidecar"].ask("POST", f"/models/{model_id}/_undeploy")
    sides["sidecar"].ask("PUT", f"/connectors/{connector_id}", {"description": "changed"})
    assert sides["ml_commons"].ask("GET", f"/connectors/{connector_id}")["description"] == "changed"
