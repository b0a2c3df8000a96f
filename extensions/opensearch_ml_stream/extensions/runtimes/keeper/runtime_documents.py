"""Documents of the runtime models: what makes them models among the others of the store.

A document is that of a remote model whose inline connector has the URL of a runtime. ML Commons on the same cluster
reads and lists it, but cannot call it, since it refuses such URLs. The states of documents are written in the order of
their changes, and retried until the store takes them.
"""

import asyncio
import logging
import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from opensearch_ml_stream.connectors.errors import Conflict, MLStreamError, NotFound, Unavailable
from opensearch_ml_stream.extensions.runtimes.keeper.model_folders import ModelFolder, model_id
from opensearch_ml_stream.extensions.runtimes.keeper.openai_connectors import (
    engine_connector,
    engine_of,
    is_remote_model,
    provider_connector,
)
from opensearch_ml_stream.extensions.runtimes.protocol.runtime_urls import runtime_model_id, runtime_url
from opensearch_ml_stream.plugin.clock import Clock
from opensearch_ml_stream.plugin.credentials.cipher import Cipher
from opensearch_ml_stream.plugin.credentials.external import resolve_credential
from opensearch_ml_stream.plugin.registry.connector_documents import new_document
from opensearch_ml_stream.plugin.registry.deployment_state_store import DeploymentStateStore, is_undeployed
from opensearch_ml_stream.plugin.registry.document_access import ModelAccess, VisibleDocuments
from opensearch_ml_stream.plugin.registry.model_groups import ModelGroups
from opensearch_ml_stream.plugin.registry.stored_documents import IS_REMOTE, Json, rewrite
from opensearch_ml_stream.plugin.security.access_control import AskedAccess
from opensearch_ml_stream.plugin.settings import LiveSettings
from opensearch_ml_stream.plugin.settings.dynamic import refresh_settings
from opensearch_ml_stream.plugin.store import Document, Index, Store
from opensearch_ml_stream.rest_handlers.callers import ANYONE

DocumentState = Literal["DEPLOYING", "DEPLOYED", "DEPLOY_FAILED", "UNDEPLOYED"]

MAX_MODELS = 10_000  # remote models that are searched for those without a folder
RETRY_SECONDS = 2.0

log = logging.getLogger("opensearch_ml_stream")


def is_provided(model: ModelFolder) -> bool:
    """Return whether a provider runs the model, not a process of this server."""
    return is_remote_model(str(model.settings.get("implementation")))


class RuntimeDocuments:
    """Writes the documents into the store. Every method raises Unavailable while it is down."""

    def __init__(self, store: Store, live_settings: LiveSettings, clock: Clock, cipher: Cipher) -> None:
        self._store = store
        self._live_settings = live_settings
        self._cipher = cipher
        self._clock = clock
        self._states = DeploymentStateStore(store, clock)
        access, visible = ModelAccess.of(store, live_settings), VisibleDocuments.of(store, live_settings)
        self._groups = ModelGroups(store, clock, access.groups, visible)

    async def put(self, key: str, model: ModelFolder, state: DocumentState) -> None:
        """Write the model's document and state; `key` is the name of its processes.

        Users' changes of a document are kept, except to its name and to what leads to the runtime. InvalidRequest if a
        provider's model cannot be called because its URL is not trusted, or its key is missing.
        """
        id = model_id(model)
        if is_provided(model) and state != "DEPLOYED":
            return await self._put_state(id, state)
        connector = await self._connector(key, model)
        stored = await self._store.get(Index.MODEL, id)
        if stored is None:
            try:
                await self._store.create(Index.MODEL, await self._new(model, connector), id)
            except Conflict:  # another server that shares the store has the same model
                stored = await self._store.get(Index.MODEL, id)
        if stored is not None:
            await self._renew(stored, model, connector)
        await self._put_state(id, state)

    async def retire(self, kept: set[str]) -> None:
        """Mark runtime models with other ids as undeployed: their folders were removed."""
        query: Json = {"query": IS_REMOTE, "size": MAX_MODELS, "_source": ["model_state"]}
        hits = (await self._store.search(Index.MODEL, query))["hits"]["hits"]
        prefix = runtime_model_id("", None)
        for id in [id for hit in hits if (id := hit["_id"]).startswith(prefix) and id not in kept]:
            await self._put_state(id, "UNDEPLOYED")

    async def _new(self, model: ModelFolder, connector: Json) -> Json:
        group_id = await self._groups.for_model(ANYONE, model.name, None, AskedAccess())
        await self._count_version(group_id, model.version_number)
        now = self._clock()
        return {
            "name": model.name,
            "algorithm": "REMOTE",
            "model_version": str(model.version_number),
            "model_group_id": group_id,
            "model_state": "REGISTERED",
            "created_time": now,
            "last_updated_time": now,
            "is_hidden": False,
            "connector": connector,
        }

    async def _count_version(self, group_id: str, version: int) -> None:
        """Record the version in the group, so that the next registered model gets a later one."""

        def change(document: Document) -> Json | None:
            if int(document.source.get("latest_version") or 0) >= version:
                return None
            return {**document.source, "latest_version": version, "last_updated_time": self._clock()}

        await rewrite(self._store, Index.MODEL_GROUP, group_id, change, NotFound("The group has just been deleted"))

    async def _connector(self, key: str, model: ModelFolder) -> Json:
        if is_provided(model):
            return await self._provider_connector(model)
        engine = engine_of(model)
        return _runtime_connector(key) if engine is None else engine_connector(key, model, engine)

    async def _provider_connector(self, model: ModelFolder) -> Json:
        """Return the connector of a provider's model, with its key read from the environment and encrypted.

        Its URL is checked against the current settings in the store, so a URL that was just allowed counts at once.
        """
        await refresh_settings(self._store, self._live_settings)
        body = provider_connector(model.settings, os.environ)
        credential = resolve_credential(body["credential"], enabled=True)
        body = {**body, "credential": credential}
        document = new_document(body, self._live_settings.current, inline=True)
        return {**document, "credential": await self._cipher.encrypt_all(document["credential"])}

    async def _renew(self, stored: Document, model: ModelFolder, connector: Json) -> None:
        def change(document: Document) -> Json | None:
            source = document.source
            kept = source.get("connector") or {}
            ours = {
                "name": model.name,
                "algorithm": "REMOTE",
                "connector": {**connector, **kept, **_leading(model, connector)},
            }
            if all(source.get(name) == value for name, value in ours.items()):
                return None
            return {**source, **ours, "last_updated_time": self._clock()}

        await rewrite(self._store, Index.MODEL, stored.id, change, NotFound("Failed to find model"))

    async def _put_state(self, id: str, state: DocumentState) -> None:
        document = await self._store.get(Index.MODEL, id)
        if document is None:
            return
        if state == "DEPLOYED":
            await self._states.deploy(id, await self._states.prepare())
        elif state != "UNDEPLOYED":
            await self._states.put_undeployed(id, state)
        elif not is_undeployed(await self._states.view(id, document.source)):
            await self._states.undeploy(id, document.source)


def _runtime_connector(key: str) -> Json:
    action = {
        "action_type": "PREDICT",
        "method": "POST",
        "url": runtime_url(key),
        "request_body": '{"inputs": ${parameters.inputs}}',
    }
    return {"name": f"runtime {key}", "version": "1", "protocol": "http", "parameters": {}, "actions": [action]}


def _leading(model: ModelFolder, connector: Json) -> Json:
    """Return the fields of a connector that lead to the model; users' changes to these are overwritten.

    For models of providers and engines the parameters are among them, since their file has the model and its options.
    """
    has_parameters = is_provided(model) or engine_of(model) is not None
    names = ("protocol", "actions", "credential", *(("parameters",) if has_parameters else ()))
    return {name: connector[name] for name in names if name in connector}


@dataclass(frozen=True, slots=True)
class _Wanted:
    key: str
    model: ModelFolder
    state: DocumentState


class DocumentWriter:
    """Queues documents, which `take_turn` writes. Of two states of a model only the later one is written.

    `on_refusal` is called with a model's name and the reason why its document cannot be written.
    """

    def __init__(self, documents: RuntimeDocuments, on_refusal: Callable[[str, str], None]) -> None:
        self._on_refusal = on_refusal
        self._documents = documents
        self._wanted: dict[str, _Wanted] = {}
        self._kept: Callable[[], set[str]] | None = None
        self._writing = asyncio.Lock()  # so that no state is written over a later one
        self._change = asyncio.Event()
        self._complained = False

    def put(self, key: str, model: ModelFolder, state: DocumentState) -> None:
        """Queue the model's document with this state."""
        self._wanted[model_id(model)] = _Wanted(key, model, state)
        self._change.set()

    async def written(self) -> None:
        """Wait for the write in progress, so that a worker's write comes after it."""
        async with self._writing:
            pass

    async def forget(self, model: ModelFolder) -> None:
        """Drop what is queued for the model, and wait for the write in progress."""
        self._wanted.pop(model_id(model), None)
        await self.written()

    def retire_others(self, kept: Callable[[], set[str]]) -> None:
        """Queue marking documents as undeployed whose ids are not in `kept()` at that time."""
        self._kept = kept
        self._change.set()

    async def take_turn(self) -> float:
        """Wait for queued documents, and write them; return the seconds until the next turn."""
        await self._change.wait()
        try:
            await self.flush()
        except MLStreamError as error:
            if not self._complained:
                log.warning("documents of runtime models wait for the store: %s", error.reason)
            self._complained = True
            return RETRY_SECONDS
        self._complained = False
        return 0

    async def flush(self) -> None:
        """Write what is queued, once; if the store raises, raise that, and keep the queue."""
        async with self._writing:
            self._change.clear()
            try:
                await self._write()
            except BaseException:
                self._change.set()
                raise

    async def _write(self) -> None:
        while self._wanted:
            id, wanted = next(iter(self._wanted.items()))
            self._wanted[id] = self._wanted.pop(
                id
            )  # to the end: a document that cannot be written must not block the others
            try:
                await self._documents.put(wanted.key, wanted.model, wanted.state)
            except Unavailable:
                raise
            except MLStreamError as error:
                self._on_refusal(wanted.key, error.reason)
            if self._wanted.get(id) is wanted:
                del self._wanted[id]
        if self._kept is not None:
            kept = self._kept
            await self._documents.retire(kept())
            if self._kept is kept:
                self._kept = None
