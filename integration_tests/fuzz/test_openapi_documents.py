"""The documents that a sidecar makes of its routes and models, by the schema of OpenAPI 3.1 documents."""

from collections.abc import Iterator

import jsonschema
import pytest
from integration_tests.support.connector_bodies import openai
from integration_tests.support.sidecars import Sidecar, running_sidecar
from schemathesis.specs.openapi.definitions import OPENAPI_31


@pytest.fixture(scope="module")
def sidecar(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sidecar]:
    with running_sidecar(tmp_path_factory.mktemp("documents")) as running:
        running.create_model(openai("http://127.0.0.1:1"), name="text-model")
        yield running


@pytest.mark.parametrize(
    "path",
    [
        "/_plugins/_ml/openapi.json",
        "/v2/docs/dataplane.json",
        "/v2/models/text-model/docs/dataplane.json",
        "/v2/models/text-model/versions/1/docs/dataplane.json",
    ],
)
def test_a_document_is_valid_openapi(sidecar: Sidecar, path: str) -> None:
    document = sidecar.client.get(path).raise_for_status().json()
    jsonschema.validate(document, OPENAPI_31, jsonschema.Draft202012Validator)
    assert len(document["paths"]) >= 6
