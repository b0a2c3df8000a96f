"""Models ready to be called: read, decrypted and compiled once per version, checked against the store every second.

A change of the model or its connector, by whatever worker, replica or hand, is in force within FRESH_SECONDS plus
one look at the store. While the store does not answer, what was in force stays in force.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from time import monotonic
from typing import Any

from opensearch_ml_stream.connectors.documents import Action, Connector, Model, read_connector, read_model
from opensearch_ml_stream.connectors.errors import Forbidden, MLStreamError, NotFound, Unavailable
from opensearch_ml_stream.connectors.predict import interface
from opensearch_ml_stream.connectors.predict.guardrails import Guardrails, read_guardrails
from opensearch_ml_stream.connectors.predict.inputs import PredictInput
from opensearch_ml_stream.connectors.rendering.action import CompiledAction
from opensearch_ml_stream.connectors.rendering.template import ConnectorParameters
from opensearch_ml_stream.connectors.selection.spec_for import spec_for
from opensearch_ml_stream.connectors.stream_spec import StreamSpec
from opensearch_ml_stream.connectors.syntax import jsontext
from opensearch_ml_stream.plugin.credentials.external import is_external, resolve_credential
from opensearch_ml_stream.plugin.credentials.master_key import Cipher
from opensearch_ml_stream.plugin.predictions.rate_limits import RateLimit, read_rate_limiter
from opensearch_ml_stream.plugin.settings import LiveSettings
from opensearch_ml_stream.plugin.settings.feature_switches import remote_inference_disabled
from opensearch_ml_stream.plugin.store import Document, Index, Store

FRESH_SECONDS = 1.0
CHECK_TIMEOUT_SECONDS = 0.8

_LLM_INTERFACE = "_llm_interface"


EnsureDeployed = Callable[[str, Document], Awaitable[None]]


class ReadyModel:
    """One version of a model with its connector. Holds the credentials in clear; never printed, never stored."""

    def __init__(
        self,
        model_id: str,
        model: Model,
        connector: Connector,
        credential: Mapping[str, str],
        *,
        external_credentials_enabled: bool = False,
    ) -> None:
        self.model_id = model_id
        self.model = model
        self.connector = connector
        self._stored_credential = credential
        self._has_external_credential = is_external(credential)
        self._external_credentials_enabled = external_credentials_enabled
        self._parameters = ConnectorParameters.compile(connector.parameters)
        self._compiled: dict[str, tuple[Mapping[str, str], CompiledAction]] = {}
        self._specs: dict[str, StreamSpec | MLStreamError] = {}

    @property
    def pool_key(self) -> str:
        """Whose `max_connection` counts: the connector's id, or the model's with an inline connector."""
        return self.model.connector_id or self.model_id

    @property
    def credential(self) -> Mapping[str, str]:
        """The credentials in clear, those kept outside (`env:`, `file:`) as they are now."""
        if not self._has_external_credential:
            return self._stored_credential
        return resolve_credential(self._stored_credential, self._external_credentials_enabled)

    def action(self, action_type: str = "PREDICT") -> CompiledAction:
        """The compiled action; compiled anew only when a credential that is kept outside has changed."""
        credential = self.credential
        known = self._compiled.get(action_type)
        if known is not None and known[0] == credential:
            return known[1]
        compiled = CompiledAction.compile(self.connector.action(action_type), self._parameters, credential)
        self._compiled[action_type] = (credential, compiled)
        return compiled

    def one_off(self, action: Action, parameters: Mapping[str, str]) -> CompiledAction:
        """Another action, compiled for one call, with `parameters` laid over the connector's."""
        own = ConnectorParameters.compile({**self.connector.parameters, **parameters})
        return CompiledAction.compile(action, own, self.credential)

    @cached_property
    def rate_limit(self) -> RateLimit | None:
        """The model's `rate_limiter`; InvalidRequest names what is wrong in it."""
        return read_rate_limiter(self.model.document.get("rate_limiter"))

    @cached_property
    def guardrails(self) -> Guardrails:
        """InvalidRequest names what is wrong in the model's `guardrails`: nothing passes then."""
        return read_guardrails(self.model.document.get("guardrails"))

    @cached_property
    def _schemas(self) -> Mapping[str, str]:
        """The texts of the model's `interface`, by side; their compiled forms are kept by `interface`."""
        sides = self.model.document.get("interface") or {}
        texts = {side: schema if isinstance(schema, str) else jsontext.dumps(schema) for side, schema in sides.items()}
        return {side: text for side, text in texts.items() if text not in ("", "null")}

    def check_input(self, given: PredictInput) -> None:
        """InvalidRequest if the model's interface does not allow the input."""
        if "input" in self._schemas:
            interface.validate_input(self._schemas["input"], given)

    def check_output(self, response: Mapping[str, Any]) -> None:
        """InvalidRequest if a whole predict response is not as the model's interface promises."""
        if "output" in self._schemas:
            interface.validate_output(self._schemas["output"], response)

    def spec(self, parameters: Mapping[str, str]) -> StreamSpec:
        """How this connector streams; InvalidRequest if it cannot."""
        interface = parameters.get(_LLM_INTERFACE, "")
        known = self._specs.get(interface)
        if known is None:
            given = {_LLM_INTERFACE: interface} if interface else {}
            try:
                known = spec_for(self.connector, self.connector.action(), given)
            except MLStreamError as error:
                known = error
            if len(self._specs) < 16:  # a caller may send any name
                self._specs[interface] = known
        if isinstance(known, MLStreamError):
            raise known.with_traceback(None)
        return known


@dataclass(slots=True)
class _Entry:
    model: ReadyModel
    stamps: tuple[tuple[Index, Document], ...]
    checked: float


class ReadyModels:
    """The cache. One look at the store at a time per model; the others wait for it."""

    def __init__(self, store: Store, cipher: Cipher, live: LiveSettings, ensure_deployed: EnsureDeployed) -> None:
        self._store = store
        self._cipher = cipher
        self._live = live
        self._ensure_deployed = ensure_deployed
        self._entries: dict[str, _Entry] = {}
        self._locks: dict[str, asyncio.Lock] = {}

    async def get(self, model_id: str) -> ReadyModel:
        """Return the version in force.

        Errors: InvalidRequest while remote inference is off, NotFound, Forbidden for a disabled model, Unavailable if
        the store is down and the model unknown here, or whatever is wrong with the model.
        """
        if not self._live.current.remote_inference_enabled:
            raise remote_inference_disabled()
        model = (self._fresh(model_id) or await self._load_fresh(model_id)).model
        if not model.model.is_enabled:
            raise Forbidden("Model is disabled.")
        return model

    async def _load_fresh(self, model_id: str) -> "_Entry":
        lock = self._locks.setdefault(model_id, asyncio.Lock())
        try:
            async with lock:
                return self._fresh(model_id) or await self._refresh(model_id)
        finally:
            if not lock.locked() and model_id not in self._entries:
                self._locks.pop(model_id, None)

    def _fresh(self, model_id: str) -> _Entry | None:
        entry = self._entries.get(model_id)
        return entry if entry is not None and monotonic() - entry.checked < FRESH_SECONDS else None

    async def _refresh(self, model_id: str) -> _Entry:
        entry = self._entries.get(model_id)
        if entry is not None:
            asked = monotonic()
            try:
                async with asyncio.timeout(CHECK_TIMEOUT_SECONDS):
                    changed = await self._changed(entry)
            except (Unavailable, TimeoutError):
                changed = False
            if not changed:
                entry.checked = asked
                return entry
            del self._entries[model_id]
        entry = self._entries[model_id] = await self._load(model_id)
        return entry

    async def _changed(self, entry: _Entry) -> bool:
        for index, document in entry.stamps:
            if await self._store.changed(index, document.id, document.seq_no, document.primary_term):
                return True
        return False

    async def _load(self, model_id: str) -> _Entry:
        read = monotonic()
        document = await self._store.get(Index.MODEL, model_id)
        if document is None:
            raise NotFound("Failed to find model")
        model = read_model(document.source)
        stamps = [(Index.MODEL, document)]
        connector = model.connector
        if connector is None:
            found = await self._store.get(Index.CONNECTOR, model.connector_id or "")
            if found is None:
                raise NotFound(f"Failed to find connector:{model.connector_id}")
            stamps.append((Index.CONNECTOR, found))
            connector = read_connector(found.source)
        credential = {name: await self._cipher.decrypt(text) for name, text in connector.credential.items()}
        external = self._live.current.external_credentials_enabled
        ready = ReadyModel(model_id, model, connector, credential, external_credentials_enabled=external)
        await self._ensure_deployed(model_id, document)
        return _Entry(ready, tuple(stamps), read)
