"""Cache of models ready to be called: read, decrypted and compiled once per version, rechecked every second.

A change of the model, its connector or who may access it, by whatever worker, replica or hand, is in force within
FRESH_SECONDS plus one check of the store. While the store is down, what was in force stays in force.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from time import monotonic
from types import MappingProxyType
from typing import Any

from opensearch_ml_stream.connectors.documents import PREDICT, Action, Connector, Model, read_connector, read_model
from opensearch_ml_stream.connectors.errors import Forbidden, MLStreamError, Unavailable
from opensearch_ml_stream.connectors.predict.guardrails.configuration import Guardrails, read_guardrails
from opensearch_ml_stream.connectors.predict.inputs import PredictInput
from opensearch_ml_stream.connectors.predict.model_interface import InterfaceSchema
from opensearch_ml_stream.connectors.rendering.action import CompiledAction
from opensearch_ml_stream.connectors.rendering.template import ConnectorParameters
from opensearch_ml_stream.connectors.selection.spec_for import spec_for
from opensearch_ml_stream.connectors.sidecar_settings import SidecarSettings, read_sidecar_settings
from opensearch_ml_stream.connectors.stream_spec import StreamSpec
from opensearch_ml_stream.connectors.syntax import jsontext
from opensearch_ml_stream.plugin.credentials.cipher import Cipher
from opensearch_ml_stream.plugin.credentials.external import is_external, resolve_credential
from opensearch_ml_stream.plugin.credentials.redaction import Redactor
from opensearch_ml_stream.plugin.limits.rate_limits import RateLimit, read_rate_limiter, user_limiters
from opensearch_ml_stream.plugin.registry.access.model_access import NOT_READ, ModelAccess
from opensearch_ml_stream.plugin.registry.stored_documents import Json, existing_connector, existing_model
from opensearch_ml_stream.plugin.settings import LiveSettings
from opensearch_ml_stream.plugin.settings.disabled_feature_errors import remote_inference_disabled
from opensearch_ml_stream.plugin.store import Document, Index, Store, absent
from opensearch_ml_stream.rest_handlers.callers import Caller

FRESH_SECONDS = 1.0
CHECK_TIMEOUT_SECONDS = 0.8
MAX_CACHED_CHARACTERS = 64 * 1024 * 1024  # of the documents of all cached models; one may have as many as a body
MAX_CACHED_SPECS = 16  # per model: a caller may send any `_llm_interface`
MAX_INTERFACE_CHARS = 100  # of an `_llm_interface` whose spec is cached

NO_SETTINGS = SidecarSettings()

_LLM_INTERFACE = "_llm_interface"

EnsureDeployed = Callable[[str, Document], Awaitable[None]]
"""Deploys the model of that id and stored document, or raises why it may not be deployed."""


class CompiledModel:
    """One version of a model with its connector, ready to be called.

    Holds the credentials in clear: never printed, never stored.
    """

    def __init__(
        self,
        model_id: str,
        definition: Model,
        connector: Connector,
        credential: Mapping[str, str],
        *,
        external_credentials_enabled: bool = False,
        settings: SidecarSettings = NO_SETTINGS,
        limiters_by_user: Mapping[str, Any] = MappingProxyType({}),
    ) -> None:
        self.model_id = model_id
        self.definition = definition
        self.connector = connector
        self.settings = settings
        self._limiters_by_user = limiters_by_user
        self._stored_credential = credential
        self._has_external_credential = is_external(credential)
        self._external_credentials_enabled = external_credentials_enabled
        self._parameters = ConnectorParameters.compile(connector.parameters)
        self._compiled: dict[str, tuple[Mapping[str, str], CompiledAction]] = {}
        self._redactor: tuple[Mapping[str, str], Redactor] | None = None
        self._specs: dict[tuple[str, str], StreamSpec | MLStreamError] = {}

    @property
    def pool_key(self) -> str:
        """The id of what `max_connection` limits: the connector, or the model if its connector is inline."""
        return self.definition.connector_id or self.model_id

    @property
    def credential(self) -> Mapping[str, str]:
        """The credentials in clear, external ones (`env:`, `file:`) as they are now."""
        if not self._has_external_credential:
            return self._stored_credential
        return resolve_credential(self._stored_credential, self._external_credentials_enabled)

    @property
    def redactor(self) -> Redactor:
        """What takes the credentials out of the provider's responses; made again only if one has changed."""
        credential = self.credential
        if self._redactor is None or self._redactor[0] != credential:
            self._redactor = (credential, Redactor(credential))
        return self._redactor[1]

    def action(self, action_type: str = PREDICT) -> CompiledAction:
        """Return the compiled action; it is compiled again only if an external credential has changed."""
        credential = self.credential
        cached = self._compiled.get(action_type)
        if cached is not None and cached[0] == credential:
            return cached[1]
        compiled = CompiledAction.compile(self.connector.action(action_type), self._parameters, credential)
        self._compiled[action_type] = (credential, compiled)
        return compiled

    def compile_action(self, action: Action, parameters: Mapping[str, str]) -> CompiledAction:
        """Compile another action for one call, with `parameters` laid over the connector's."""
        merged = ConnectorParameters.compile({**self.connector.parameters, **parameters})
        return CompiledAction.compile(action, merged, self.credential)

    @cached_property
    def rate_limit(self) -> RateLimit | None:
        """The model's `rate_limiter`, None without one. Raises InvalidRequest that names what is wrong in it."""
        return read_rate_limiter(self.definition.document.get("rate_limiter"))

    def user_limit(self, user: str) -> RateLimit | None:
        """Return a user's limit in the model's controller, None without one or for "", who has not logged in.

        Raises InvalidRequest that names what is wrong in it.
        """
        return read_rate_limiter(self._limiters_by_user.get(user), f"user_rate_limiter.{user}") if user else None

    @cached_property
    def is_timed(self) -> bool:
        """Whether the model's own limits bound the times of its provider calls."""
        return self.settings.limits.are_of_time

    @cached_property
    def guardrails(self) -> Guardrails:
        """The model's `guardrails`. Raises InvalidRequest that names what is wrong in them: nothing passes then."""
        return read_guardrails(self.definition.document.get("guardrails"))

    def check_input(self, predict_input: PredictInput, steps: Sequence[Mapping[str, str]] | None = None) -> None:
        """Raise InvalidRequest if the model's interface does not allow the input.

        With `steps` it must allow it with the parameters of each of them, in place of its own.
        """
        if (schema := self._input_schema) is not None:
            schema.validate_input(predict_input, [predict_input.parameters] if steps is None else steps)

    def check_output(self, response: Mapping[str, Any]) -> None:
        """Raise InvalidRequest if a whole predict response is not as the model's interface promises."""
        if (schema := self._output_schema) is not None:
            schema.validate(response)

    @cached_property
    def _input_schema(self) -> InterfaceSchema | None:
        return self._schema("input")

    @cached_property
    def _output_schema(self) -> InterfaceSchema | None:
        return self._schema("output")

    def _schema(self, side: str) -> InterfaceSchema | None:
        """Return the schema of one side of the model's `interface`, None without one."""
        schema = (self.definition.document.get("interface") or {}).get(side)
        text = schema if schema is None or isinstance(schema, str) else jsontext.dumps(schema)
        return None if text in (None, "", "null") else InterfaceSchema.compile(text, side)

    def spec(self, parameters: Mapping[str, str], action_type: str = PREDICT) -> StreamSpec:
        """Return how this connector's action streams; InvalidRequest if it cannot."""
        name = parameters.get(_LLM_INTERFACE, "")
        key = (action_type, name)
        spec = self._specs.get(key)
        if spec is None:
            try:
                action = self.connector.action(action_type)
                spec = spec_for(self.connector, action, {_LLM_INTERFACE: name} if name else {})
            except MLStreamError as error:
                spec = error
            if len(self._specs) < MAX_CACHED_SPECS and len(name) <= MAX_INTERFACE_CHARS:
                self._specs[key] = spec
        if isinstance(spec, MLStreamError):
            raise spec.with_traceback(None)
        return spec


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
        definition = read_model(document.source)
        connector = definition.connector
        if connector is None:
            connector_document = await existing_connector(self._store, definition.connector_id)
            caller.check_tenant(connector_document.source)
            documents.append((Index.CONNECTOR, connector_document))
            connector = read_connector(connector_document.source)
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
            definition,
            connector,
            credential,
            external_credentials_enabled=external,
            settings=read_sidecar_settings(settings.source.get("settings", {})),
            limiters_by_user=user_limiters(controller.source),
        )
        await self._ensure_deployed(model_id, document)
        characters = sum(len(jsontext.dumps(document.source)) for _, document in documents)
        return _Entry(model, access, tuple(documents), checked_at, characters)
