"""What one of the two has written, the other reads, calls and streams, whoever made the master key."""

from typing import Any

import pytest
from integration_tests.interop.ml_commons.sides import Side
from integration_tests.support.conditions import eventually
from integration_tests.support.fake_provider import FakeProvider

pytestmark = pytest.mark.ml_commons

SECRET = "sk-secret-1234567890"
WRITERS_AND_READERS = [("sidecar", "ml_commons"), ("ml_commons", "sidecar")]

both_ways = pytest.mark.parametrize(("writer", "reader"), WRITERS_AND_READERS)


@both_ways
def test_a_connector_and_a_model_of_one_look_the_same_at_the_other(
    sides: dict[str, Side], connector: dict[str, Any], writer: str, reader: str
) -> None:
    model_id = sides[writer].create_model(connector, description="told apart by nothing")
    seen = [side.ask("GET", f"/models/{model_id}") for side in (sides[writer], sides[reader])]
    assert seen[0] == seen[1]
    path = f"/connectors/{seen[0]['connector_id']}"
    connectors = [side.ask("GET", path) for side in (sides[writer], sides[reader])]
    assert connectors[0]["actions"] == connectors[1]["actions"]
    assert connectors[0]["parameters"] == connectors[1]["parameters"]


@both_ways
def test_a_model_of_one_is_predicted_by_the_other_with_its_credential(
    sides: dict[str, Side], connector: dict[str, Any], beside_provider: FakeProvider, writer: str, reader: str
) -> None:
    model_id = sides[writer].create_model(connector)
    assert sides[reader].predicted(model_id)["choices"]
    assert beside_provider.requests[-1].headers["authorization"] == f"Bearer {SECRET}"


@both_ways
def test_a_model_of_one_is_streamed_by_the_other(
    sides: dict[str, Side], connector: dict[str, Any], writer: str, reader: str
) -> None:
    model_id = sides[writer].create_model(connector)
    assert sides[reader].streamed(model_id) == ["For", "ty", "-two"]


@both_ways
def test_an_inline_connector_of_one_is_predicted_by_the_other(
    sides: dict[str, Side], connector: dict[str, Any], beside_provider: FakeProvider, writer: str, reader: str
) -> None:
    body = {"name": "inline", "function_name": "remote", "connector": connector}
    model_id = sides[writer].ask("POST", "/models/_register", body)["model_id"]
    assert sides[reader].predicted(model_id)["choices"]
    assert beside_provider.requests[-1].headers["authorization"] == f"Bearer {SECRET}"


@both_ways
def test_a_model_that_one_deletes_is_gone_at_the_other(
    sides: dict[str, Side], connector: dict[str, Any], writer: str, reader: str
) -> None:
    model_id = sides[writer].create_model(connector)
    assert sides[reader].ask("DELETE", f"/models/{model_id}")["result"] == "deleted"
    for side in sides.values():
        assert side.call("GET", f"/models/{model_id}").status_code == 404
    eventually(lambda: sides["sidecar"].predict(model_id).status_code == 404, 2)
