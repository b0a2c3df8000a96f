"""Access control from outside, with keys of the sidecar's own: the page's story, and changes seen by every worker."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from integration_tests.cli.commands import environment
from integration_tests.server.guarded_sidecars import BASE, ROLES, Guarded
from integration_tests.support import connector_bodies
from integration_tests.support.background_provider import background_provider
from integration_tests.support.conditions import eventually
from integration_tests.support.fake_provider import openai_stream
from integration_tests.support.sidecars import running_sidecar

PAGE = (Path(__file__).parents[2] / "docs" / "access.md").read_text()
BLOCKS = [
    "\n".join(line[4:] for line in block.splitlines()) for block in re.findall(r"(?:(?:^ {4}.*|^)\n)+", PAGE, re.M)
]
STORY = "\n".join(block for block in BLOCKS if block.strip())
REFUSAL = "User doesn't have privilege to perform this operation on this model"
QUESTION = {"parameters": {"messages": [{"role": "user", "content": "hi"}]}}


def test_a_change_of_access_is_in_force_on_every_worker(guarded: Guarded) -> None:
    """Within a second: `plugin/tests/predictions/access/test_predict_access.py`."""
    full, predict, read = (guarded.keys[role] for role in ROLES)
    with background_provider(openai_stream(["a", "b"])) as provider:
        model_id = guarded.create_model(connector_bodies.openai(provider.url))
        model, stream = f"{BASE}/models/{model_id}", f"{BASE}/models/{model_id}/_predict/stream"
        refused = guarded.ask("POST", stream, predict, json=QUESTION)
        assert (refused.status_code, refused.json()["error"]["reason"]) == (403, REFUSAL)
        assert refused.json()["error"]["type"] == "status_exception"
        assert guarded.statuses("POST", stream, predict, json=QUESTION) == {403}
        assert provider.requests == []
        shown = guarded.ask("GET", model, read)
        assert (shown.status_code, shown.json()["error"]["reason"]) == (403, REFUSAL)
        fields = guarded.ask("GET", model, full).json()
        connector, group = (
            f"{BASE}/connectors/{fields['connector_id']}",
            f"{BASE}/model_groups/{fields['model_group_id']}",
        )
        assert guarded.ask("GET", connector, read).status_code == 403

        owner = guarded.ask("GET", group, full).json()["owner"]
        name = ROLES[0]  # of the key, too
        assert owner == {"name": name, "backend_roles": [], "roles": [name], "custom_attribute_names": []}
        assert guarded.ask("PUT", group, full, json={"access_mode": "public"}).status_code == 200
        eventually(lambda: guarded.statuses("POST", stream, predict, json=QUESTION) == {200})
        assert guarded.ask("GET", model, read).status_code == 200
        assert guarded.ask("GET", connector, read).status_code == 403, "which stays private"

        assert guarded.ask("PUT", group, full, json={"access_mode": "private"}).status_code == 200
        eventually(lambda: guarded.statuses("POST", stream, predict, json=QUESTION) == {403})
        assert guarded.statuses("POST", stream, full, json=QUESTION) == {200}


@pytest.mark.slow  # it sleeps, as the page says, for the two seconds after which a change is in force
@pytest.mark.programs("curl", "jq")
def test_the_example_of_the_page_runs(tmp_path: Path) -> None:
    with background_provider(openai_stream(["Ray", "leigh"])) as provider, running_sidecar(tmp_path) as sidecar:
        variables = {
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            "MLSTREAM_STORE": f"sqlite:///{tmp_path}/store.db",
            "MODEL": sidecar.create_model(connector_bodies.openai(provider.url)),
        }
        ended = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", STORY.replace("http://127.0.0.1:9510", sidecar.url)],
            env=environment(**variables), capture_output=True, text=True, timeout=60, cwd=tmp_path,
        )  # fmt: skip
    assert ended.returncode == 0, ended.stderr
    before, refusal, after = ended.stdout.partition(f'"reason":"{REFUSAL}"}},"status":403}}')
    assert '"acknowledged":true' in before
    assert refusal and '"status":"Updated"' in after
    assert (after.count('"response":"leigh"'), after.count('"is_last":true')) == (1, 1)
