"""Cache of models ready to be called: read, decrypted and compiled once per version, rechecked every second.

A change of the model, its connector or who may access it, by whatever worker, replica or hand, is in force within
FRESH_SECONDS plus one check of the store. While the store is down, what was in force stays in force.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from time import monotonic

from opensearch_ml_stream.connectors.documents import read_model
from opensearch_ml_stream.connectors.errors import Forbidden, MLStreamError, Unavailable
from opensearch_ml_stream.connectors.sidecar_settings import read_sidecar_settings
from opensearch_ml_stream.connectors.syntax import jsontext
from opensearch_ml_stream.plugin.credentials.cipher import Cipher
from opensearch_ml_stream.plugin.limits.rate_limits import user_limiters
from opensearch_ml_stream.plugin.predictions.compiled_model import CompiledModel
from opensearch_ml_stream.plugin.registry.access.model_access import NOT_READ, ModelAccess
from opensearch_ml_stream.plugin.registry.stored_documents import Json, connector_of, existing_model
from opensearch_ml_stream.plugin.settings import LiveSettings
from opensearch_ml_stream.plugin.settings.disabled_feature_errors import remote_inference_disabled
from opensearch_ml_stream.plugin.store import Document, Index, Store, absent
from opensearch_ml_stream.rest_handlers.callers import Caller

FRESH_SECONDS = 1.0
CHECK_TIMEOUT_SECONDS = 0.8
MAX_CACHED_CHARACTERS = 64 * 1024 * 1024  # of the documents of all cached models; one may have as many as a body


EnsureDeployed = Callable[[str, Document], Awaitable[None]]
"""Deploys the model of that id and stored document, or raises why it may not be deployed."""


@dataclass(slots=True)
class _Entry:
    """A cached model, the documents that it was made of, and when they were last found unchanged (monotonic)."""

    model: CompiledModel
    access: Json | None  # the source of its group, as `ModelAccess.read` returns it; NOT_READ while it was switched off
    documents: tuple[tuple[Index, Document], ...]
    checked_at: float
    characters: int  # of the documents


class CompiledModels:
    """The cache. Only one task at a time reads a model from the store; the others wait for it."""

    def __init__(
        self, store: Store, cipher: Cipher, live_settings: LiveSettings, ensure_deployed: EnsureDeployed
    ) -> None:
        self._store = store
        self._cipher = cipher
        self._live_settings = live_settings
        self._ensure_deployed = ensure_deployed
        self._access = ModelAccess.of(store, live_settings)
        self._entries: dict[str, _Entry] = {}
        self._locks: dict[str, asyncio.Lock] = {}

    async def get(self, caller: Caller, model_id: str) -> CompiledModel:
        """Return the version in force.

        Raises InvalidRequest while remote inference is off, NotFound, Forbidden for a disabled model or one that the
        caller may not access, Unavailable if the store is down and the model is not cached, or what is wrong with the
        model or its connector.
        """
        if not self._live_settings.current.remote_inference_enabled:
            raise remote_inference_disabled()
        entry = self._fresh(model_id) or await self._load_fresh(caller, model_id)
        if caller.tenant_id is not None:
            caller.check_tenant(entry.model.definition.document)
        if not caller.is_admin:
            self._access.check_group(caller, entry.access)
        if not entry.model.definition.is_enabled:
            raise Forbidden("Model is disabled.")
        return entry.model

    async def _load_fresh(self, caller: Caller, model_id: str) -> "_Entry":
        lock = self._locks.setdefault(model_id, asyncio.Lock())
        try:
            async with lock:
                return self._fresh(model_id) or await self._refresh(caller, model_id)
        finally:
            if not lock.locked() and model_id not in self._entries:
                self._locks.pop(model_id, None)

    def _fresh(self, model_id: str) -> _Entry | None:
        entry = self._known(model_id)
        return entry if entry is not None and monotonic() - entry.checked_at < FRESH_SECONDS else None

    def _known(self, model_id: str) -> _Entry | None:
        """Return the entry, unless it is from before access control was switched on: it does not say who may access."""
        entry = self._entries.get(model_id)
        if entry is not None and entry.access is NOT_READ and self._live_settings.current.model_access_control_enabled:
            return None
        return entry

    async def _refresh(self, caller: Caller, model_id: str) -> _Entry:
        entry = self._known(model_id)
        if entry is not None:
            checked_at = monotonic()
            try:
                async with asyncio.timeout(CHECK_TIMEOUT_SECONDS):
                    changed = await self._changed(entry)
            except (Unavailable, TimeoutError):
                changed = False
            if not changed:
                entry.checked_at = checked_at
                return entry
        try:
            entry = self._entries[model_id] = await self._load(caller, model_id)
            self._evict(model_id)
        except Unavailable:
            if entry is None:
                raise
            entry.checked_at = monotonic()
        except MLStreamError:
            self._entries.pop(model_id, None)
            raise
        return entry

    def _evict(self, model_id: str) -> None:
        """Forget the models that were used longest ago, but not this one, until all documents fit into the cache."""
        characters = sum(entry.characters for entry in self._entries.values())
        for other in sorted(self._entries, key=lambda id: self._entries[id].checked_at):
            if characters <= MAX_CACHED_CHARACTERS:
                return
            if other != model_id and not self._locks[other].locked():
                characters -= self._entries.pop(other).characters
                del self._locks[other]

    async def _changed(self, entry: _Entry) -> bool:
        for index, document in entry.documents:
            if await self._store.changed(index, document.id, document.seq_no, document.primary_term):
                return True
        return False

    async def _load(self, caller: Caller, model_id: str) -> _Entry:
        """Read and compile the model, and deploy it if it is not: not for a caller who may not access it."""
        checked_at = monotonic()
        document = await existing_model(self._store, model_id)
        caller.check_tenant(document.source)
        documents = [(Index.MODEL, document)]
        access: Json | None = NOT_READ
        if self._live_settings.current.model_access_control_enabled:
            group, access = await self._access.read(document.source)
            documents += [] if group is None else [(Index.MODEL_GROUP, group)]
        self._access.check_group(caller, access)
        connector, connector_document = await connector_of(self._store, document.source)
        if connector_document is not None:
            caller.check_tenant(connector_document.source)
            documents.append((Index.CONNECTOR, connector_document))
        controller = absent(model_id)
        if document.source.get("is_controller_enabled") is True:
            controller = await self._store.get(Index.CONTROLLER, model_id) or controller
            documents.append((Index.CONTROLLER, controller))
        cipher = self._cipher.of(document.source.get("tenant_id"))
        credential = {name: await cipher.decrypt(text) for name, text in connector.credential.items()}
        external = self._live_settings.current.external_credentials_enabled
        settings = await self._store.get(Index.MODEL_SETTINGS, model_id) or absent(model_id)
        documents.append((Index.MODEL_SETTINGS, settings))
        model = CompiledModel(
            model_id,
            read_model(document.source),
            connector,
            credential,
            external_credentials_enabled=external,
            settings=read_sidecar_settings(settings.source.get("settings", {})),
            limiters_by_user=user_limiters(controller.source),
        )
        if document.source.get("guardrails"):
            await asyncio.to_thread(model.compile_guardrails)
        await self._ensure_deployed(model_id, document)
        characters = sum(len(jsontext.dumps(document.source)) for _, document in documents)
        return _Entry(model, access, tuple(documents), checked_at, characters)
