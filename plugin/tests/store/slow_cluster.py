"""A cluster that keeps documents, and takes one second of virtual time for each response: seconds are round trips."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from opensearchpy import AsyncOpenSearch

from tests.store.canned_cluster import Canned, CannedCluster, Sent, connection_to, refusal

_EMPTY = {"total": {"value": 0}, "hits": list[Any]()}


@dataclass
class SlowCluster(CannedCluster):
    """`indices` are documents by id, by the index's name; it has no ML Commons. `hangs` once it answers no more."""

    indices: dict[str, dict[str, Mapping[str, Any]]] = field(default_factory=dict)
    hangs: bool = False

    def client(self) -> AsyncOpenSearch:
        cluster = self

        class SlowConnection(connection_to(self)):  # type: ignore[misc] # the class of this cluster
            async def perform_request(self, *arguments: Any, **options: Any) -> Any:
                await asyncio.sleep(3600 if cluster.hangs else 1)
                return await super().perform_request(*arguments, **options)

        return AsyncOpenSearch(hosts=["cluster.example"], connection_class=SlowConnection, max_retries=0)

    def respond(self, request: Sent) -> Canned:
        self.sent.append(request)
        name, _, rest = request.path.removeprefix("/").partition("/")
        documents = self.indices.get(name)
        if request.method == "HEAD":
            return Canned("", 404 if documents is None else 200)
        if rest == "_search":
            return Canned({"hits": _EMPTY})
        if request.method == "PUT" and not rest:
            self.indices[name] = {}
            return Canned({"acknowledged": True})
        if documents is None:
            assert request.method == "GET", "the index was not created before the write"
            return refusal(404, "index_not_found_exception", f"no such index [{name}]")
        return self._document(request, documents, rest.removeprefix("_doc").removeprefix("/"))

    def _document(self, request: Sent, documents: dict[str, Mapping[str, Any]], id: str) -> Canned:
        sequence = {"_version": 1, "_seq_no": 1, "_primary_term": 1}
        if request.method == "GET":
            found = id in documents
            return Canned({"_id": id, "found": found, "_source": documents.get(id), **sequence}, 200 if found else 404)
        id = id or f"made-{len(documents)}"
        if request.params.get("op_type") == "create" and id in documents:
            return refusal(409, "version_conflict_engine_exception", "document already exists")
        documents[id] = request.body
        return Canned({"_id": id, "result": "created", **sequence}, 201)
