"""One master key a cluster, whoever needs it first."""

import asyncio
import base64
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from opensearch_ml_stream.connectors.errors import Internal
from opensearch_ml_stream.plugin import refreshing_cache
from opensearch_ml_stream.plugin.credentials import cipher as cipher_module
from opensearch_ml_stream.plugin.credentials.cipher import Cipher
from opensearch_ml_stream.plugin.store import Index, Store
from opensearch_ml_stream.plugin.store.open_store import open_store


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'store.db'}"


@pytest.fixture
async def store(url: str) -> AsyncIterator[Store]:
    async with open_store(url) as opened:
        yield opened


async def test_the_first_encryption_makes_the_key_as_ml_commons_stores_it(store: Store) -> None:
    cipher_text = await Cipher(store).encrypt("sk-1")
    document = await store.get(Index.CONFIG, "master_key")
    assert document is not None and set(document.source) == {"master_key", "create_time"}
    assert len(base64.b64decode(document.source["master_key"])) == 32
    assert await Cipher(store).decrypt(cipher_text) == "sk-1"


async def test_a_key_that_is_there_is_used(store: Store) -> None:
    key = base64.b64encode(bytes(range(32))).decode()
    await store.create(Index.CONFIG, {"master_key": key, "create_time": 1}, id="master_key")
    cipher_text = await Cipher(store).encrypt("sk-1")
    document = await store.get(Index.CONFIG, "master_key")
    assert document is not None and document.source["master_key"] == key and document.version == 1
    assert await Cipher(store).decrypt(cipher_text) == "sk-1"


async def test_workers_that_need_the_key_at_once_take_the_same_one(url: str) -> None:
    async with open_store(url) as one, open_store(url) as two, open_store(url) as three:
        ciphers = [Cipher(store) for store in (one, two, three)]
        cipher_texts = await asyncio.gather(*[cipher.encrypt("sk-1") for cipher in ciphers * 3])
        for cipher in ciphers:
            assert {await cipher.decrypt(cipher_text) for cipher_text in cipher_texts} == {"sk-1"}


async def test_the_key_is_read_again_when_its_time_is_over(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0
    monkeypatch.setattr(refreshing_cache, "monotonic", lambda: now)
    cipher = Cipher(store, cache_ttl_minutes=5)
    cipher_text = await cipher.encrypt("sk-1")
    await store.put(Index.CONFIG, "master_key", {"master_key": base64.b64encode(bytes(32)).decode()})
    now = 239.0
    assert await cipher.decrypt(cipher_text) == "sk-1"
    now = 300.0
    with pytest.raises(Internal, match="another master key"):
        await cipher.decrypt(cipher_text)


@pytest.mark.parametrize("key", ["", "not base64!", base64.b64encode(bytes(16)).decode(), None, 5])
async def test_a_key_that_is_no_key_is_an_error_that_names_the_document(store: Store, key: object) -> None:
    await store.create(Index.CONFIG, {"master_key": key}, id="master_key")
    with pytest.raises(Internal, match=r"master_key of index \.plugins-ml-config"):
        await Cipher(store).encrypt("sk-1")


async def test_what_is_encrypted_after_the_key_was_lost_can_be_decrypted_by_all(store: Store) -> None:
    one, another = Cipher(store), Cipher(store)
    await one.encrypt("sk-1")
    await store.delete(Index.CONFIG, "master_key")
    assert await another.decrypt(await one.encrypt("sk-2")) == "sk-2"


async def test_a_cipher_text_of_another_kind_is_an_error_of_the_stored_credential(store: Store) -> None:
    cipher = Cipher(store)
    await cipher.encrypt("sk-1")
    with pytest.raises(Internal, match="A stored credential cannot be decrypted"):
        await cipher.decrypt("sk-1")


TENANTS_KEY = "master_key_YotJ2W3N6XpDDdT1l3BYmeCalo95NJHktwTK4zpA3AI="


async def test_a_tenant_has_a_key_of_its_own_where_ml_commons_looks_for_it(store: Store) -> None:
    cluster = Cipher(store)
    one, other = cluster.of("t1"), cluster.of("t2")
    cipher_text = await one.encrypt("sk-1")
    document = await store.get(Index.CONFIG, TENANTS_KEY)
    assert document is not None and document.source["tenant_id"] == "t1"
    assert await store.get(Index.CONFIG, "master_key") is None
    assert await Cipher(store).of("t1").decrypt(cipher_text) == "sk-1"
    for foreign in (other, cluster):
        with pytest.raises(Internal, match="another master key"):
            await foreign.decrypt(cipher_text)


async def test_the_cipher_of_no_tenant_is_the_clusters(store: Store) -> None:
    cipher = Cipher(store)
    assert await cipher.of("t1").of(None).decrypt(await cipher.encrypt("sk-1")) == "sk-1"


async def test_few_keys_stay_in_memory(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cipher_module, "_MAX_KEYS", 2)
    cipher = Cipher(store)
    texts = {tenant: await cipher.of(tenant).encrypt(tenant) for tenant in ("t1", "t2", "t3")}
    for tenant in texts:  # a key that is not in memory is read again
        await store.put(Index.CONFIG, cipher.of(tenant)._id, {"master_key": base64.b64encode(bytes(32)).decode()})
    assert [await cipher.of(tenant).decrypt(texts[tenant]) for tenant in ("t3", "t2")] == ["t3", "t2"]
    with pytest.raises(Internal, match="another master key"):
        await cipher.of("t1").decrypt(texts["t1"])
