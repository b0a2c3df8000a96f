"""Python programs at a sidecar whose callers log in: keys, users, and what is raised for those who may not."""

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from integration_tests.client.streaming_clients import CONNECTIONS, Streaming
from integration_tests.support import connector_bodies
from integration_tests.support.background_provider import background_provider
from integration_tests.support.fake_provider import openai_stream
from integration_tests.support.sidecars import running_sidecar
from opensearchpy import AIOHttpConnection, OpenSearch
from opensearchpy.connection import Urllib3HttpConnection

from opensearch_ml_stream.client import RequestRefused, StreamingMLClient, predict_stream
from opensearch_ml_stream.plugin.security.own_accounts import add_user, create_key
from opensearch_ml_stream.plugin.store.open_store import open_store

# opensearch-py's AsyncHttpConnection still uses it.
pytestmark = pytest.mark.filterwarnings("ignore:BasicAuth is deprecated:DeprecationWarning")

PASSWORD = "correct horse"
BASE = "/_plugins/_ml"
QUESTION = {"messages": [{"role": "user", "content": "hi"}]}


@dataclass(frozen=True)
class Guarded:
    """A sidecar whose callers log in, and one model of it; `keys` by role."""

    url: str
    model_id: str
    keys: dict[str, str]


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    folder = tmp_path_factory.mktemp("logins")
    store = f"sqlite:///{folder}/store.db"
    roles = ("ml_full_access", "ml_read_access", "ml_predict_access")

    async def accounts() -> dict[str, str]:
        async with open_store(store) as opened:
            await add_user(opened, "ann", PASSWORD, "ml_predict_access", 1)
            return {role: (await create_key(opened, role, role, 1)).value for role in roles}

    keys = asyncio.run(accounts())
    with background_provider(openai_stream(["a", "b"])) as provider, running_sidecar(folder, store) as sidecar:
        sidecar.client.headers["Authorization"] = f"Bearer {keys['ml_full_access']}"
        yield Guarded(sidecar.url, sidecar.create_model(connector_bodies.openai(provider.url)), keys)


@pytest.fixture(params=CONNECTIONS, ids=lambda connection_class: connection_class.__name__)
def streaming(request: pytest.FixtureRequest) -> Streaming:
    return Streaming(request.param)


async def test_a_key_asks_beside_a_cluster_with_another_login(streaming: Streaming, guarded: Guarded) -> None:
    cluster = "http://admin:of-the-cluster@localhost:1"
    key = guarded.keys["ml_predict_access"]
    chunks = await streaming.collect(
        cluster, url=guarded.url, api_key=key, model_id=guarded.model_id, parameters=QUESTION
    )
    assert "".join(chunk.text for chunk in chunks) == "ab"


async def test_a_users_name_and_password_are_those_of_opensearch_py(streaming: Streaming, guarded: Guarded) -> None:
    asked: dict[str, Any] = {"model_id": guarded.model_id, "parameters": QUESTION}
    chunks = await streaming.collect(guarded.url, http_auth=("ann", PASSWORD), **asked)
    assert "".join(chunk.text for chunk in chunks) == "ab"


@pytest.mark.parametrize("streaming", [Urllib3HttpConnection, AIOHttpConnection], indirect=True)
async def test_without_a_login_or_a_role_the_error_says_which(streaming: Streaming, guarded: Guarded) -> None:
    asked: dict[str, Any] = {"model_id": guarded.model_id, "parameters": QUESTION}
    logins: list[dict[str, Any]] = [{}, {"api_key": "mls_1_wrong"}, {"http_auth": ("nobody", PASSWORD)}]
    for login in logins:
        with pytest.raises(RequestRefused) as refused:
            await streaming.collect(guarded.url, **asked, **login)
        assert refused.value.status == 401
    with pytest.raises(RequestRefused) as forbidden:
        await streaming.collect(guarded.url, **asked, api_key=guarded.keys["ml_read_access"])
    assert forbidden.value.status == 403
    assert "no permissions for [cluster:admin/opensearch/ml/predict/stream]" in forbidden.value.reason
    assert guarded.keys["ml_read_access"] not in str(forbidden.value)


def test_the_client_for_models_needs_a_role_for_them(guarded: Guarded) -> None:
    cluster = OpenSearch("http://localhost:1")
    made = StreamingMLClient(cluster, url=guarded.url, api_key=guarded.keys["ml_full_access"]).create_model(
        "openai-chat", credential={"openAI_key": "k"}, parameters={"endpoint": "http://127.0.0.1:1"}
    )
    assert made
    predicting = StreamingMLClient(cluster, url=guarded.url, api_key=guarded.keys["ml_predict_access"])
    assert [chunk.text for chunk in predicting.predict_stream(guarded.model_id, QUESTION)] == ["a", "b", ""]
    with pytest.raises(RequestRefused, match="no permissions"):
        predicting.create_model("openai-chat", credential={"openAI_key": "k"})


def test_opensearch_py_itself_takes_a_key_as_a_header(guarded: Guarded) -> None:
    key = guarded.keys["ml_full_access"]
    client = OpenSearch(guarded.url, headers={"Authorization": f"Bearer {key}"})
    assert "".join(chunk.text for chunk in predict_stream(client, guarded.model_id, QUESTION)) == "ab"
    assert client.transport.perform_request("GET", f"{BASE}/models/{guarded.model_id}")["name"] == "m"
