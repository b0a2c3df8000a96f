"""Requests made from the sidecar's own OpenAPI document, good and bad: none may be a 5xx, or stop it."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from integration_tests.fuzz.bounds import FACTOR, IS_SAMPLE, TIMEOUT_SECONDS, corpus, is_well
from integration_tests.support.connector_bodies import openai
from integration_tests.support.sidecars import Sidecar

PHASES = "examples,fuzzing" if IS_SAMPLE else "examples,coverage,fuzzing"
EXAMPLES = str(max(1, int(6 * FACTOR)))  # of each operation, besides those that its schema suggests
VERSIONED = "^/v2/models/[{]model_name[}]/versions/"  # served by the same code as the paths without a version
CHECKS = "not_a_server_error,content_type_conformance,response_schema_conformance"
# Ids of what there is.
CONFIG = """
[parameters]
"path.model_id" = "{model}"
"path.algorithm" = "remote"
"path.model_name" = "{model}"

[[operations]]
include-path-regex = "/models/[{{]id[}}]"
parameters = {{ "path.id" = "{model}" }}

[[operations]]
include-path-regex = "/connectors/[{{]id[}}]"
parameters = {{ "path.id" = "{connector}" }}
"""


@pytest.mark.parametrize("case", corpus("requests"))
def test_a_request_that_once_failed_is_served_or_refused(fuzzed: Sidecar, case: dict[str, Any]) -> None:
    body = case.get("body", "").encode("latin-1")
    response = fuzzed.client.request(case["method"], case["target"], content=body, headers=case.get("headers", {}))
    assert response.status_code < 500, response.text
    assert is_well(fuzzed)


@pytest.mark.timeout(3 * TIMEOUT_SECONDS)
def test_no_request_that_can_be_made_from_the_openapi_document_is_a_5xx(fuzzed: Sidecar, tmp_path: Path) -> None:
    connector_id = fuzzed.post("/connectors/_create", openai("http://127.0.0.1:1"))["connector_id"]
    model_id = fuzzed.create_model(openai("http://127.0.0.1:1"))
    (tmp_path / "schemathesis.toml").write_text(CONFIG.format(model=model_id, connector=connector_id))
    fuzz(fuzzed, tmp_path, "--exclude-method", "DELETE")
    # The model was reached: its provider is not there.
    assert f'mlstream_predictions_total{{model_id="{model_id}",status="424"}}' in fuzzed.client.get("/metrics").text
    if not IS_SAMPLE:
        fuzz(fuzzed, tmp_path, "--include-method", "DELETE")


def fuzz(sidecar: Sidecar, folder: Path, *arguments: str) -> None:
    command = [
        sys.executable, "-c", "from schemathesis.cli import schemathesis; schemathesis()",
        "run", f"{sidecar.url}/_plugins/_ml/openapi.json", "--url", sidecar.url, "--no-color",
        "--phases", PHASES, "--checks", CHECKS, "--max-examples", EXAMPLES,
        "--exclude-path-regex", VERSIONED, "--request-timeout", "20", "--suppress-health-check", "all",
        *(["--generation-deterministic"] if IS_SAMPLE else ["--generation-database", "none"]), *arguments,
    ]  # fmt: skip
    ended = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=1.5 * TIMEOUT_SECONDS)
    assert ended.returncode == 0, ended.stdout[-8_000:] + ended.stderr[-2_000:]
    assert is_well(sidecar)
