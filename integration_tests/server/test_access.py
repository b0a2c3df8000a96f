"""Access control from outside, with keys of the sidecar's own: the page's story, and changes seen by every worker."""

import asyncio
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
from integration_tests.cli.commands import environment, run_process
from integration_tests.support import connector_bodies
from integration_tests.support.background_provider import background_provider
from integration_tests.support.conditions import promptly
from integration_tests.support.fake_provider import openai_stream
from integration_tests.support.sidecars import Sidecar, running_sidecar

from opensearch_ml_stream.plugin.clock import now_millis
from opensearch_ml_stream.plugin.security.own_accounts import create_key
from opensearch_ml_stream.plugin.store.open_store import open_store

PAGE = (Path(__file__).parents[2] / "docs" / "access.md").read_text()
BLOCKS = [
    "\n".join(line[4:] for line in block.splitlines()) for block in re.findall(r"(?:(?:^ {4}.*|^)\n)+", PAGE, re.M)
]
STORY = "\n".join(block for block in BLOCKS if block.strip())
REFUSAL = "User doesn't have privilege to perform this operation on this model"
ON = {
    "plugins.ml_commons.model_access_control_enabled": "true",
    "plugins.ml_commons.connector_access_control_enabled": "true",
}


@dataclass(frozen=True)
class Server:
    """Two workers; `keys` by the name of who has it."""

    sidecar: Sidecar
    keys: dict[str, str]

    def ask(self, name: str, method: str, path: str, body: Any = None) -> httpx.Response:
        """Send a request on a connection of its own, which any worker may get."""
        headers = {"x-api-key": self.keys[name], "Connection": "close"}
        return httpx.request(method, f"{self.sidecar.url}/_plugins/_ml{path}", headers=headers, json=body, timeout=30)

    def made(self, name: str, path: str, body: Any) -> dict[str, Any]:
        response = self.ask(name, "POST", path, body)
        assert response.status_code == 200, response.text
        created: dict[str, Any] = response.json()
        return created

    def statuses(self, name: str, path: str) -> set[int]:
        """The statuses of enough requests for both workers to get some."""
        question = {"parameters": {"messages": [{"role": "user", "content": "hi"}]}}
        return {self.ask(name, "POST", path, question).status_code for _ in range(8)}


async def new_keys(url: str, **roles: str) -> dict[str, str]:
    """Keys by the name of who has it."""
    async with open_store(url) as store:
        return {name: (await create_key(store, name, role, now_millis())).value for name, role in roles.items()}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("access")
    store = f"sqlite:///{folder}/store.db"
    keys = asyncio.run(new_keys(store, ann="ml_full_access", bob="ml_predict_access", cat="ml_read_access"))
    with running_sidecar(folder, store, ON, ("--workers", "2")) as sidecar:
        yield Server(sidecar, keys)


def test_a_change_of_access_is_in_force_on_every_worker_within_two_seconds(server: Server) -> None:
    with background_provider(openai_stream(["a", "b"])) as provider:
        connector_id = server.made("ann", "/connectors/_create", connector_bodies.openai(provider.url))["connector_id"]
        body = {"name": "m", "function_name": "remote", "connector_id": connector_id}
        model_id = server.made("ann", "/models/_register", body)["model_id"]
        stream = f"/models/{model_id}/_predict/stream"
        refused = server.ask("bob", "POST", stream, {"parameters": {"messages": []}})
        assert (refused.status_code, refused.json()["error"]["reason"]) == (403, REFUSAL)
        assert refused.json()["error"]["type"] == "status_exception"
        assert server.statuses("bob", stream) == {403}
        assert provider.requests == []
        shown = server.ask("cat", "GET", f"/models/{model_id}")
        assert (shown.status_code, shown.json()["error"]["reason"]) == (403, REFUSAL)
        assert server.ask("cat", "GET", f"/connectors/{connector_id}").status_code == 403

        group_id = server.ask("ann", "GET", f"/models/{model_id}").json()["model_group_id"]
        group = f"/model_groups/{group_id}"
        owner = server.ask("ann", "GET", group).json()["owner"]
        assert owner == {"name": "ann", "backend_roles": [], "roles": ["ml_full_access"], "custom_attribute_names": []}
        assert server.ask("ann", "PUT", group, {"access_mode": "public"}).status_code == 200
        promptly(lambda: server.statuses("bob", stream) == {200}, 2)
        assert server.ask("cat", "GET", f"/models/{model_id}").status_code == 200
        assert server.ask("cat", "GET", f"/connectors/{connector_id}").status_code == 403, "which stays private"

        assert server.ask("ann", "PUT", group, {"access_mode": "private"}).status_code == 200
        promptly(lambda: server.statuses("bob", stream) == {403}, 2)
        assert server.statuses("ann", stream) == {200}


@pytest.mark.programs("curl", "jq")
def test_the_example_of_the_page_runs(tmp_path: Path) -> None:
    with background_provider(openai_stream(["Ray", "leigh"])) as provider, running_sidecar(tmp_path) as sidecar:
        create = ("models", "create", "--blueprint", "openai-chat", "--set", f"endpoint={provider.url}")
        made = run_process(*create, "--credential", "openAI_key=none", "--url", sidecar.url)
        assert made.returncode == 0, made.stderr
        variables = {
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            "MLSTREAM_STORE": f"sqlite:///{tmp_path}/store.db",
            "MODEL": made.stdout.strip(),
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
