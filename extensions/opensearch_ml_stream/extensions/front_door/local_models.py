"""Requests for local models, which run in ML Commons on the cluster: they are forwarded to it.

The path names the model; in requests that register a model or undeploy several, the body does. The body also says
whether a connector is for agents, which run in the cluster as well.
"""

import re
from collections import deque
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from math import inf
from typing import Any

from starlette.requests import ClientDisconnect, Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from opensearch_ml_stream.connectors.errors import InvalidRequest, MLStreamError
from opensearch_ml_stream.connectors.syntax import jsontext
from opensearch_ml_stream.plugin.refreshing_cache import RefreshingCache
from opensearch_ml_stream.plugin.store import Index, Store
from opensearch_ml_stream.rest_handlers.base_path import BASE_PATH
from opensearch_ml_stream.rest_handlers.callers import Gate
from opensearch_ml_stream.rest_handlers.http.body_memory import BodyMemory, BodyReservation
from opensearch_ml_stream.rest_handlers.http.requests import json_body, read_body
from opensearch_ml_stream.rest_handlers.http.responses import error_response

MAX_MODEL_IDS = 10_000  # of one request to undeploy

_SEARCHED = 1000  # ids in one search
_MAX_MODELS = 10_000  # of a worker; an id has 20 characters

_OPERATIONS = "_predict|_batch_predict|_deploy|_load|_undeploy|_unload"
_OF_ONE_MODEL = re.compile(
    f"POST {BASE_PATH}/models/([^/]+)/(?:{_OPERATIONS})/?"
    f"|POST {BASE_PATH}/_predict/[^/]+/([^/]+)/?"
    f"|(?:PUT|DELETE) {BASE_PATH}/models/([^/]+)/?"
    f"|(?:POST|PUT|DELETE) {BASE_PATH}/controllers/([^/]+)/?"
)
_REGISTER = re.compile(f"POST {BASE_PATH}/models/(?:[^/]+/[^/]+/)?(?:_register|_upload)/?")
_UNDEPLOY = re.compile(f"POST {BASE_PATH}/models/(?:_undeploy|_unload)/?")
_CREATE_CONNECTOR = re.compile(f"POST {BASE_PATH}/connectors/_create/?")

IsOfCluster = Callable[[Mapping[str, Any]], Awaitable[bool]]
"""Whether a request with that body is the cluster's."""


class StoredModelKinds:
    """Whether models are local, according to the store.

    The kind of a stored model never changes, so it is looked up once; a model that is not stored is looked up again.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._is_local = RefreshingCache[str, bool](inf, inf, _MAX_MODELS)

    def known(self, model_id: str) -> bool | None:
        """Whether the model is not a remote one; None if the store has not been asked about it."""
        return self._is_local.held(model_id)

    async def local_among(self, model_ids: Collection[str]) -> frozenset[str]:
        """Return the ids of those models that are stored and not remote; Unavailable if the store does not respond."""
        local = {model_id for model_id in model_ids if self._is_local.held(model_id)}
        for model_id, source in await self._stored([id for id in model_ids if id not in self._is_local]):
            is_local = source.get("algorithm", "REMOTE") != "REMOTE"
            self._is_local.put(model_id, is_local)
            if is_local:
                local.add(model_id)
        return frozenset(local)

    async def _stored(self, model_ids: Sequence[str]) -> list[tuple[str, Mapping[str, Any]]]:
        if len(model_ids) == 1:  # found as soon as it is stored, whoever stored it
            document = await self._store.get(Index.MODEL, model_ids[0])
            return [] if document is None else [(document.id, document.source)]
        hits = []
        for start in range(0, len(model_ids), _SEARCHED):
            query = {"ids": {"values": model_ids[start : start + _SEARCHED]}}
            body = {"query": query, "size": _SEARCHED, "_source": ["algorithm"]}
            hits += (await self._store.search(Index.MODEL, body))["hits"]["hits"]
        return [(hit["_id"], hit["_source"]) for hit in hits]


class ModelsOfCluster:
    """Sends requests for one local model to `cluster`."""

    def __init__(self, kinds: StoredModelKinds, cluster: ASGIApp, gate: Gate) -> None:
        self._kinds = kinds
        self._cluster = cluster
        self._gate = gate

    async def takes(self, scope: Scope, receive: Receive, send: Send, model_id: str) -> bool:
        """Send a request for this model to the cluster if the model is local; return whether it is."""
        is_local = self._kinds.known(model_id)
        if is_local is None:
            try:
                await self._gate.admit(scope)  # only admitted callers make the store look up ids
                is_local = bool(await self._kinds.local_among([model_id]))
            except MLStreamError:
                return False
        if is_local:
            await self._cluster(scope, receive, send)
        return is_local


class LocalModels:
    """Sends requests for local models to `cluster`, all others to `own`.

    A body that cannot be read and a caller who is not admitted are left to `own`, which says what is wrong.
    """

    def __init__(self, kinds: StoredModelKinds, cluster: ASGIApp, own: ASGIApp, gate: Gate, bodies: BodyMemory) -> None:
        self._kinds = kinds
        self._cluster = cluster
        self._models = ModelsOfCluster(kinds, cluster, gate)
        self._own = own
        self._gate = gate
        self._bodies = bodies

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request."""
        if scope["type"] != "http" or not scope["path"].startswith(BASE_PATH):
            await self._own(scope, receive, send)
            return
        line = f"{scope['method']} {scope['path']}"
        if (match := _OF_ONE_MODEL.fullmatch(line)) is not None:
            if not await self._models.takes(scope, receive, send, match[match.lastindex or 0]):
                await self._own(scope, receive, send)
        elif (is_of_cluster := self._rule_for_body(line)) is not None:
            await self._by_body(scope, receive, send, is_of_cluster)
        else:
            await self._own(scope, receive, send)

    def _rule_for_body(self, line: str) -> IsOfCluster | None:
        """Return the rule by which the body of this request decides; None if only the path counts."""
        if _REGISTER.fullmatch(line):
            return _registers_local
        if _UNDEPLOY.fullmatch(line):
            return self._undeploys_local
        return _creates_for_agents if _CREATE_CONNECTOR.fullmatch(line) else None

    async def _by_body(self, scope: Scope, receive: Receive, send: Send, is_of_cluster: IsOfCluster) -> None:
        body = ReplayedBody(receive)
        goes_on = False
        with BodyReservation(self._bodies) as reservation:
            try:
                goes_on = await is_of_cluster(await self._read(scope, body, reservation))
            except _MixedModels as error:
                await error_response(Request(scope), error)(scope, receive, send)
                return
            except (MLStreamError, ClientDisconnect):
                pass  # the next reader gets the same error
            if goes_on:
                await self._cluster(scope, body.again, send)
        if not goes_on:
            await self._own(scope, body.again, send)

    async def _read(self, scope: Scope, body: "ReplayedBody", reservation: BodyReservation) -> Mapping[str, Any]:
        """Return the body of a caller who is let in; the pieces that came are kept, however it ends."""
        await self._gate.admit(scope)
        data = await read_body(scope, body.first, reservation)
        try:
            return jsontext.load_object(json_body(scope, data))
        except RecursionError:
            raise jsontext.too_deep() from None

    async def _undeploys_local(self, body: Mapping[str, Any]) -> bool:
        model_ids = body.get("model_ids")
        if not isinstance(model_ids, list) or len(model_ids) > MAX_MODEL_IDS:
            return False
        named = frozenset(model_id for model_id in model_ids if isinstance(model_id, str))
        local = await self._kinds.local_among(named) if named else named
        if local and local != named:
            raise _MixedModels(
                "model_ids names models that run in the cluster and others: undeploy them in two requests. In the "
                f"cluster runs, for one, {min(local)}"
            )
        return bool(local)


class _MixedModels(InvalidRequest):
    """Local and remote models in one request to undeploy."""


async def _registers_local(body: Mapping[str, Any]) -> bool:
    """Whether a model that is not remote is registered. ML Commons takes one without a function for a local one."""
    function = body.get("function_name")
    if function is None:
        return "connector" not in body and "connector_id" not in body
    return isinstance(function, str) and function.upper() != "REMOTE"


async def _creates_for_agents(body: Mapping[str, Any]) -> bool:
    """Whether a connector to an MCP server is created: agents alone use it."""
    protocol = body.get("protocol")
    return isinstance(protocol, str) and protocol.startswith("mcp_")


class ReplayedBody:
    """A request body that is read twice: `first` keeps what it receives, and `again` returns that before the rest."""

    def __init__(self, receive: Receive) -> None:
        self._receive = receive
        self._kept: deque[Message] = deque()

    async def first(self) -> Message:
        """Receive a message for the first reader."""
        message = await self._receive()
        self._kept.append(message)
        return message

    async def again(self) -> Message:
        """Receive a message for the second reader."""
        return self._kept.popleft() if self._kept else await self._receive()
