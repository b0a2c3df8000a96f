"""A model that runs in a process of the sidecar, beside an ML Commons that cannot call it: it reads and lists it."""

from pathlib import Path

import pytest
from integration_tests.interop.ml_commons.sides import Side
from integration_tests.server.runtimes.model_folder import write_model
from integration_tests.support.conditions import eventually
from integration_tests.support.sidecars import running_sidecar

pytestmark = pytest.mark.ml_commons


def test_ml_commons_reads_searches_and_lists_it_and_refuses_to_call_it(
    ml_commons: Side, ml_commons_url: str, tmp_path: Path
) -> None:
    write_model(tmp_path / "models", "beside-ml-commons")
    arguments = ("--models", str(tmp_path / "models"))
    with running_sidecar(tmp_path, ml_commons_url, arguments=arguments) as running:
        sidecar, model_id = Side("sidecar", running.client), "runtime-beside-ml-commons"

        def is_deployed() -> bool:
            response = sidecar.call("GET", f"/models/{model_id}")
            return response.status_code == 200 and response.json()["model_state"] == "DEPLOYED"

        eventually(is_deployed, 60)
        read = ml_commons.ask("GET", f"/models/{model_id}")
        assert (read["name"], read["algorithm"], read["model_state"]) == ("beside-ml-commons", "REMOTE", "REGISTERED")
        assert read["connector"]["actions"][0]["url"] == "runtime://beside-ml-commons"
        found = ml_commons.find(query={"ids": {"values": [model_id]}})["hits"]["hits"]
        assert [hit["_id"] for hit in found] == [model_id]
        assert ml_commons.ask("GET", "/stats/ml_model_count")
        refused = ml_commons.predict(model_id)
        assert refused.status_code >= 400
        assert sidecar.predicted(model_id)["outputs"][0]["data"] == ["hello"]
        assert is_deployed()
