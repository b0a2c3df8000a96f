"""What only a store in a real OpenSearch can promise."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any
from urllib.parse import urlsplit

import pytest
from integration_tests.support.tcp_proxy import TCPProxy, tcp_proxy
from opensearchpy import AsyncOpenSearch

from opensearch_ml_stream.connectors.errors import InvalidRequest, Unavailable
from opensearch_ml_stream.plugin.clock import now_millis
from opensearch_ml_stream.plugin.credentials.cipher import Cipher
from opensearch_ml_stream.plugin.registry.deployment_state_store import DeploymentStateStore, is_deployed
from opensearch_ml_stream.plugin.store import Index, Store
from opensearch_ml_stream.plugin.store.mappings import FIELDS, index_body
from opensearch_ml_stream.plugin.store.open_store import open_store

pytestmark = pytest.mark.opensearch

NAME = {"type": "text", "fields": {"keyword": {"type": "keyword", "ignore_above": 256}}}
DATE = {"type": "date", "format": "strict_date_time||epoch_millis"}


@pytest.fixture
async def proxy(opensearch_url: str) -> AsyncIterator[TCPProxy]:
    async with tcp_proxy(urlsplit(opensearch_url).port or 9200) as opened:
        yield opened


@pytest.fixture
async def behind_proxy(proxy: TCPProxy, index_prefix: str) -> AsyncIterator[Store]:
    async with open_store(f"http://127.0.0.1:{proxy.port}", index_prefix) as opened:
        yield opened


@pytest.fixture
async def client(opensearch_url: str) -> AsyncIterator[AsyncOpenSearch]:
    async with AsyncOpenSearch(opensearch_url) as opened:
        yield opened


async def test_a_store_that_is_down_says_what_to_check_and_works_again_when_it_is_back(
    proxy: TCPProxy, behind_proxy: Store
) -> None:
    written = await behind_proxy.create(Index.MODEL, {"name": "x"}, id="m")
    await proxy.cut()
    calls = [
        behind_proxy.get(Index.MODEL, "m"),
        behind_proxy.changed(Index.MODEL, "m", 0, 1),
        behind_proxy.create(Index.MODEL, {}),
        behind_proxy.put(Index.MODEL, "m", {}),
        behind_proxy.delete(Index.MODEL, "m"),
        behind_proxy.search(Index.MODEL, {}),
        behind_proxy.run_painless("return 1", {}),
        behind_proxy.ping(),
    ]
    for outcome in await asyncio.gather(*calls, return_exceptions=True):
        assert isinstance(outcome, Unavailable) and outcome.status == 503
        assert "check that it runs" in outcome.reason
    await proxy.restore()
    await behind_proxy.ping()
    assert not await behind_proxy.changed(Index.MODEL, "m", written.seq_no, written.primary_term)


async def test_a_read_survives_a_restart_of_the_server_between_two_requests(
    proxy: TCPProxy, behind_proxy: Store
) -> None:
    await behind_proxy.create(Index.MODEL, {"name": "x"}, id="m")
    await proxy.drop_connections()
    response = await behind_proxy.search(Index.MODEL, {})
    assert [hit["_id"] for hit in response["hits"]["hits"]] == ["m"]


async def test_a_password_is_in_no_error() -> None:
    async with open_store("http://ann:pa%2Fss@127.0.0.1:1") as store:
        with pytest.raises(Unavailable) as caught:
            await store.ping()
    assert "pa/ss" not in caught.value.reason and "pa%2Fss" not in caught.value.reason
    assert "127.0.0.1" in caught.value.reason


async def test_an_http_server_that_is_no_tls_server_is_named_as_such(opensearch_url: str) -> None:
    url = opensearch_url.replace("http://", "https://ann:secret@")
    async with open_store(f"{url}?verify_certs=false") as store:
        with pytest.raises(Unavailable, match="http or https") as caught:
            await store.ping()
    assert "secret" not in caught.value.reason


async def test_an_index_is_made_with_the_fields_of_ml_commons(
    opensearch_url: str, client: AsyncOpenSearch, index_prefix: str
) -> None:
    await _write_to_all(opensearch_url, index_prefix)
    for index in Index:
        mapping = (await client.indices.get_mapping(index=f"{index_prefix}{index}"))[f"{index_prefix}{index}"]
        assert mapping["mappings"] == index_body(index)["mappings"]


@pytest.mark.opensearch("2.19.6")
async def test_opensearch_2_takes_the_same_fields(opensearch_2_url: str, index_prefix: str) -> None:
    await _write_to_all(opensearch_2_url, index_prefix)
    async with AsyncOpenSearch(opensearch_2_url) as client:
        mappings = await client.indices.get_mapping(index=f"{index_prefix}*")
    assert {name.removeprefix(index_prefix): index["mappings"] for name, index in mappings.items()} == {
        str(index): index_body(index)["mappings"] for index in Index
    }


async def test_the_fields_have_the_types_that_ml_commons_gives_them(
    opensearch_url: str, client: AsyncOpenSearch, index_prefix: str
) -> None:
    await _write_to_all(opensearch_url, index_prefix)
    indices = await client.indices.get_mapping(index=f"{index_prefix}*")
    mappings = {name.removeprefix(index_prefix): index["mappings"] for name, index in indices.items()}
    model = mappings[".plugins-ml-model"]["properties"]
    connector = mappings[".plugins-ml-connector"]["properties"]
    versions = {name: mapping["_meta"]["schema_version"] for name, mapping in mappings.items()}
    assert versions == {
        ".plugins-ml-model": 13,
        ".plugins-ml-connector": 4,
        ".plugins-ml-task": 5,
        ".plugins-ml-model-group": 4,
        ".plugins-ml-config": 5,
        ".plugins-ml-controller": 1,
        ".plugins-ml-stream-deployment": 1,
        ".plugins-ml-stream-account": 1,
        ".plugins-ml-stream-model-settings": 1,
        ".plugins-ml-stream-lease": 1,
        ".plugins-ml-stream-spending": 1,
    }
    assert model["name"] == NAME and connector["name"] == NAME
    assert model["created_time"] == DATE
    assert model["connector"]["properties"]["credential"] == {"type": "flat_object"}
    assert model["model_config"]["properties"]["embedding_dimension"] == {"type": "integer"}
    assert model["user"]["type"] == "nested"
    assert connector["owner"]["properties"]["roles"] == {"type": "text", "fields": {"keyword": {"type": "keyword"}}}
    assert [connector[name]["type"] for name in ("parameters", "credential", "actions", "client_config")] == [
        "flat_object"
    ] * 4
    assert mappings[".plugins-ml-config"]["properties"]["master_key"] == {"type": "keyword"}
    assert mappings[".plugins-ml-task"]["properties"]["progress"] == {"type": "float"}


async def test_an_index_has_one_shard_and_replicas_where_there_are_nodes(
    opensearch_url: str, client: AsyncOpenSearch, index_prefix: str
) -> None:
    await _write_to_all(opensearch_url, index_prefix)
    indices = await client.indices.get_settings(index=f"{index_prefix}*")
    settings = {name.removeprefix(index_prefix): index["settings"]["index"] for name, index in indices.items()}
    assert {name: each["auto_expand_replicas"] for name, each in settings.items()} == {
        str(index): "0-all" if index is Index.CONFIG else "0-1" for index in Index
    }
    assert {each["number_of_shards"] for each in settings.values()} == {"1"}


async def test_an_index_that_was_deleted_is_made_anew_with_its_fields(
    opensearch_url: str, client: AsyncOpenSearch, index_prefix: str
) -> None:
    name = f"{index_prefix}{Index.TASK}"
    async with open_store(opensearch_url, index_prefix) as store:
        await store.create(Index.TASK, {"state": "CREATED"})
        await client.indices.delete(index=name)
        assert await store.get(Index.TASK, "x") is None
        await store.create(Index.TASK, {"state": "CREATED"})
    mapping = (await client.indices.get_mapping(index=name))[name]["mappings"]
    assert mapping["properties"]["state"] == {"type": "keyword"}


async def test_replicas_that_need_the_master_key_at_once_take_the_same_one(
    opensearch_url: str, index_prefix: str
) -> None:
    async with open_store(opensearch_url, index_prefix) as one, open_store(opensearch_url, index_prefix) as two:
        ciphers = [Cipher(one), Cipher(two)]
        cipher_texts = await asyncio.gather(*[cipher.encrypt("sk-1") for cipher in ciphers * 2])
        for cipher in ciphers:
            assert {await cipher.decrypt(cipher_text) for cipher_text in cipher_texts} == {"sk-1"}


async def test_a_value_that_its_field_does_not_take_is_the_callers_mistake(
    opensearch_url: str, index_prefix: str
) -> None:
    async with open_store(opensearch_url, index_prefix) as store:
        with pytest.raises(InvalidRequest, match="create_time") as caught:
            await store.create(Index.TASK, {"create_time": "my secret"})
    assert "my secret" not in caught.value.reason


@pytest.mark.parametrize(
    ("script", "result"),
    [
        ("return params.text + '!'", "hé\n!"),
        ("return params.docs.size()", "2"),
        ("String twice(String x) { return x + x; } return twice(params.docs[1]);", "bb"),
        ("return null;", None),
    ],
)
async def test_painless_runs_with_its_parameters_and_gives_text(
    opensearch_url: str, script: str, result: str | None
) -> None:
    async with open_store(opensearch_url) as store:
        assert await store.run_painless(script, {"text": "hé\n", "docs": ["a", "b"]}) == result


@pytest.mark.parametrize(
    ("script", "named"),
    [
        ("return params.text +", "compile error"),
        ("return nothing_here", r"compile error: .*nothing_here"),
        ("return Integer.parseInt(params.text)", "runtime error: number_format_exception"),
    ],
)
async def test_a_painless_failure_tells_why_but_not_the_input(opensearch_url: str, script: str, named: str) -> None:
    async with open_store(opensearch_url) as store:
        with pytest.raises(InvalidRequest, match=named) as caught:
            await store.run_painless(script, {"text": "my prompt"})
    assert "my prompt" not in caught.value.reason


@pytest.mark.opensearch("2.19.6")
async def test_a_server_without_painless_is_named_as_the_cause(opensearch_2_url: str) -> None:
    async with open_store(opensearch_2_url) as store:
        with pytest.raises(InvalidRequest, match="lang-painless"):
            await store.run_painless("return 1", {})


async def _write_to_all(url: str, index_prefix: str) -> None:
    async with open_store(url, index_prefix) as store:
        for index in Index:
            values: dict[str, Any] = {"keyword": "x", "flat_object": {"x": "y"}, "opaque": {"x": ["y"]}}
            name, kind = next((name, kind) for name, kind in FIELDS[index].items() if kind in values)
            await store.create(index, {name: values[kind]})


async def test_an_index_that_is_closed_is_the_clusters_fault_and_ready_says_so(
    opensearch_url: str, client: AsyncOpenSearch, index_prefix: str
) -> None:
    async with open_store(opensearch_url, index_prefix) as store:
        await store.create(Index.MODEL, {"name": "x"}, "m")
        await store.ping()
        await client.indices.close(index=f"{index_prefix}{Index.MODEL}")
        calls = [
            store.get(Index.MODEL, "m"),
            store.changed(Index.MODEL, "m", 0, 1),
            store.create(Index.MODEL, {"name": "x"}),
            store.put(Index.MODEL, "m", {"name": "x"}),
            store.search(Index.MODEL, {}),
            store.ping(),
        ]
        outcomes = await asyncio.gather(*calls, return_exceptions=True)
        assert [type(outcome) for outcome in outcomes] == [Unavailable] * len(calls)
        await client.indices.open(index=f"{index_prefix}{Index.MODEL}")
        await store.ping()
        assert await store.get(Index.MODEL, "m") is not None


async def test_an_alias_without_an_index_to_write_to_and_a_strict_mapping_are_the_clusters_fault(
    opensearch_url: str, client: AsyncOpenSearch, index_prefix: str
) -> None:
    two, strict = f"{index_prefix}{Index.MODEL}", f"{index_prefix}{Index.CONNECTOR}"
    for name in ("a", "b"):
        await client.indices.create(index=f"{index_prefix}{name}", body={"aliases": {two: {}}})
    async with open_store(opensearch_url, index_prefix) as store:
        with pytest.raises(Unavailable, match="is an alias without an index to write to"):
            await store.ping()
        for call in (store.get(Index.MODEL, "m"), store.create(Index.MODEL, {"name": "x"})):
            with pytest.raises(Unavailable, match="one index to write to"):
                await call
        await client.indices.delete(index=f"{index_prefix}a,{index_prefix}b")
        await client.indices.create(index=strict, body={"mappings": {"dynamic": "strict"}})
        with pytest.raises(Unavailable, match="has a strict mapping"):
            await store.ping()
        with pytest.raises(Unavailable, match="mappings strict"):
            await store.create(Index.CONNECTOR, {"name": "x"})


async def test_first_predictions_of_many_at_once_all_deploy_the_model(opensearch_url: str, index_prefix: str) -> None:
    async with open_store(opensearch_url, index_prefix) as one, open_store(opensearch_url, index_prefix) as two:
        workers = [DeploymentStateStore(store, now_millis) for store in (one, two)] * 10

        async def deploy(states: DeploymentStateStore) -> None:
            await states.deploy("m", await states.prepare())

        await asyncio.gather(*(deploy(states) for states in workers))
        assert is_deployed(await workers[0].view("m", {}))
