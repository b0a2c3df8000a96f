"""The documents that a sidecar makes of its routes and models, by the schema of OpenAPI 3.1 documents."""

import jsonschema
import pytest
from integration_tests.support.connector_bodies import openai
from integration_tests.support.sidecars import Sidecar
from schemathesis.specs.openapi.definitions import OPENAPI_31


@pytest.fixture(scope="module")
def sidecar(shared_sidecar: Sidecar) -> Sidecar:
    shared_sidecar.create_model(openai("http://127.0.0.1:1"), name="documented-model")
    return shared_sidecar


@pytest.mark.parametrize(
    "path",
    [
        "/_plugins/_ml/openapi.json",
        "/v2/docs/dataplane.json",
        "/v2/models/documented-model/docs/dataplane.json",
        "/v2/models/documented-model/versions/1/docs/dataplane.json",
    ],
)
def test_a_document_is_valid_openapi(sidecar: Sidecar, path: str) -> None:
    document = sidecar.client.get(path).raise_for_status().json()
    jsonschema.validate(document, OPENAPI_31, jsonschema.Draft202012Validator)
    assert len(document["paths"]) >= 6
