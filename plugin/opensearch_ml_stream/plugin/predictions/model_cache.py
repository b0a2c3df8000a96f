"""Cache of models ready to be called: read, decrypted and compiled once per version, rechecked every second.

A change of the model, its connector or who may access it, made anywhere, is in force within FRESH_SECONDS plus one
check of the store. While the store does not respond, the cached version stays in force.
"""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from dataclasses import dataclass, field
from typing import Any

from opensearch_ml_stream.connectors.documents import Connector, read_model
from opensearch_ml_stream.connectors.errors import Forbidden, MLStreamError, Unavailable
from opensearch_ml_stream.connectors.model_options import read_sidecar_settings
from opensearch_ml_stream.connectors.syntax import jsontext
from opensearch_ml_stream.plugin.connector_protocol import ModelAdditions, find_protocol
from opensearch_ml_stream.plugin.credentials.cipher import Cipher
from opensearch_ml_stream.plugin.limits.rate_limits import user_limiters
from opensearch_ml_stream.plugin.parallel import wait_for_all
from opensearch_ml_stream.plugin.predictions.compiled_model import CompiledModel
from opensearch_ml_stream.plugin.refreshing_cache import RefreshingCache
from opensearch_ml_stream.plugin.registry.document_access import NOT_READ, ModelAccess
from opensearch_ml_stream.plugin.registry.stored_documents import Json, connector_of, existing_model
from opensearch_ml_stream.plugin.settings import LiveSettings, remote_inference_disabled
from opensearch_ml_stream.plugin.store import Document, Index, Store, absent
from opensearch_ml_stream.rest_handlers.callers import Caller

NO_ADDITIONS = ModelAdditions()
FRESH_SECONDS = 1.0
MAX_CACHED_CHARACTERS = 64 * 1024 * 1024  # of the documents of all cached models; one may have as many as a body

Deploy = Callable[[], Awaitable[None]]
PlanDeployment = Callable[[str, Document], Coroutine[Any, Any, Deploy | None]]
"""Returns what deploys the model of that id and stored document, None if it is; raises why it may not be deployed."""


@dataclass(slots=True)
class _Entry:
    """A model as it was read, for all callers; whether a caller may use it is checked for each call.

    `documents` are those that it was made of. A model that cannot be called has an `error` in place of `model`.
    """

    sources: tuple[Json, ...]  # of the model and its connector: their tenant may call it
    access: Json | None = None  # the source of its group, as `ModelAccess.read` returns it; NOT_READ while switched off
    documents: tuple[tuple[Index, Document], ...] = ()
    model: CompiledModel | None = None
    error: MLStreamError | None = None
    deploy: Deploy | None = None  # before its first prediction
    deploying: asyncio.Lock = field(default_factory=asyncio.Lock)
    characters: int = 0  # of the documents


class ModelCache:
    """The cache. At most one task at a time reads a model from the store, for all callers that need it."""

    def __init__(
        self,
        store: Store,
        cipher: Cipher,
        live_settings: LiveSettings,
        plan_deployment: PlanDeployment,
        additions: ModelAdditions = NO_ADDITIONS,
    ) -> None:
        self._store = store
        self._cipher = cipher
        self._live_settings = live_settings
        self._plan_deployment = plan_deployment
        self._additions = additions
        self._access = ModelAccess.of(store, live_settings)
        self._entries = RefreshingCache[str, _Entry](
            FRESH_SECONDS, float("inf"), MAX_CACHED_CHARACTERS, lambda entry: entry.characters
        )

    async def get(self, caller: Caller, model_id: str) -> CompiledModel:
        """Return the version in force to a caller who may access the model, deployed first if it was not.

        Raises InvalidRequest while remote inference is off, NotFound, Forbidden for a disabled model or one that the
        caller may not access, Unavailable if the store is down and the model is not cached, or what is wrong with the
        model or its connector.
        """
        if not self._live_settings.current.remote_inference_enabled:
            raise remote_inference_disabled()
        entry = self._entries.fresh(model_id)
        if entry is None or self._is_outdated(entry):
            entry = await self._current(model_id)
        if caller.tenant_id is not None:
            for source in entry.sources:
                caller.check_tenant(source)
        if not caller.is_admin:
            self._access.check_group(caller, entry.access)
        if entry.model is None:
            self._forget(entry)
            assert entry.error is not None
            raise entry.error
        if entry.deploy is not None:
            await self._deploy(entry)
        if not entry.model.definition.is_enabled:
            raise Forbidden("Model is disabled.")
        return entry.model

    async def _current(self, model_id: str) -> _Entry:
        known = self._entries.held(model_id)
        if known is not None and self._is_outdated(known):
            self._forget(known)
        return await self._entries.get(model_id, lambda: self._read_again(model_id))

    def _is_outdated(self, entry: _Entry) -> bool:
        """Whether the entry was read before access control was switched on, and so does not say who may access it."""
        return entry.access is NOT_READ and self._live_settings.current.model_access_control_enabled

    def _forget(self, entry: _Entry) -> None:
        self._entries.forget(lambda _, held: held is entry)

    async def _deploy(self, entry: _Entry) -> None:
        async with entry.deploying:
            if entry.deploy is not None:
                await entry.deploy()
                entry.deploy = None

    async def _read_again(self, model_id: str) -> _Entry:
        """Return the cached entry if it has not changed, else read it."""
        entry = self._entries.held(model_id)
        return entry if entry is not None and not await self._changed(entry) else await self._read(model_id)

    async def _changed(self, entry: _Entry) -> bool:
        looks = [
            asyncio.create_task(self._store.changed(index, document.id, document.seq_no, document.primary_term))
            for index, document in entry.documents
        ]
        await wait_for_all(*looks)
        return any(look.result() for look in looks)

    async def _read(self, model_id: str) -> _Entry:
        """Read and compile the model in two round trips: its document, then everything that the document refers to."""
        document = await existing_model(self._store, model_id)
        cipher = self._cipher.of(document.source.get("tenant_id"))
        group = asyncio.create_task(self._group(document.source))
        connector = asyncio.create_task(connector_of(self._store, document.source))
        controller = asyncio.create_task(self._controller(model_id, document.source))
        settings = asyncio.create_task(self._store.get(Index.MODEL_SETTINGS, model_id))
        deploy = asyncio.create_task(self._plan_deployment(model_id, document))
        key = asyncio.create_task(cipher.read_ahead())
        entry = _Entry((document.source,))
        try:
            await wait_for_all(group, connector, controller, settings, key, deploy)
            found, connector_document = connector.result()
            documents = [(Index.MODEL, document), *group.result()[0], *controller.result()]
            if connector_document is not None:
                entry.sources = (document.source, connector_document.source)
                documents.append((Index.CONNECTOR, connector_document))
            documents.append((Index.MODEL_SETTINGS, settings.result() or absent(model_id)))
            credential = {name: await cipher.decrypt(text) for name, text in found.credential.items()}
            entry.model = self._compiled(model_id, found, credential, dict(documents))
            if document.source.get("guardrails"):
                await asyncio.to_thread(entry.model.compile_guardrails)
            entry.documents, entry.deploy = tuple(documents), deploy.result()
            entry.characters = sum(len(jsontext.dumps(document.source)) for _, document in documents)
        except Unavailable:
            raise
        except MLStreamError as error:
            entry.error = error
        entry.access = group.result()[1]
        return entry

    async def _group(self, model: Json) -> tuple[list[tuple[Index, Document]], Json | None]:
        """Return the model's group, if it has one and access is controlled, and what says who may access the model."""
        if not self._live_settings.current.model_access_control_enabled:
            return [], NOT_READ
        group, access = await self._access.read(model)
        return [] if group is None else [(Index.MODEL_GROUP, group)], access

    async def _controller(self, model_id: str, model: Json) -> list[tuple[Index, Document]]:
        if model.get("is_controller_enabled") is not True:
            return []
        return [(Index.CONTROLLER, await self._store.get(Index.CONTROLLER, model_id) or absent(model_id))]

    def _compiled(
        self, model_id: str, connector: Connector, credential: dict[str, str], documents: Mapping[Index, Document]
    ) -> CompiledModel:
        controller = documents.get(Index.CONTROLLER, absent(model_id))
        options = documents[Index.MODEL_SETTINGS].source.get("settings", {})
        return CompiledModel(
            model_id,
            read_model(documents[Index.MODEL].source),
            connector,
            credential,
            external_credentials_enabled=self._live_settings.current.external_credentials_enabled,
            settings=read_sidecar_settings(options, self._additions.options),
            limiters_by_user=user_limiters(controller.source),
            protocol=find_protocol(self._additions.protocols, model_id, connector),
            providers=self._additions.providers,
        )
