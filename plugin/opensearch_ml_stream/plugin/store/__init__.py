"""The store of connectors, models, groups, tasks and settings: one protocol, two implementations.

Index names are logical (`Index.MODEL`, ...); an implementation adds the prefix. Documents are in the shape of
ML Commons' indices (ML Commons contract, section 2).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Protocol

from opensearch_ml_stream.connectors.errors import Conflict, Unavailable

ABSENT_SEQUENCE = (-2, 0)  # OpenSearch's own, of an unassigned sequence number
IMPERSONATION = "opendistro_security_impersonate_as"
"""The header in which a caller asks to be another user; the cluster's configuration says who may."""
MAX_ATTEMPTS = 10


class Index(StrEnum):
    """The indices of ML Commons, and some of our own."""

    MODEL = ".plugins-ml-model"
    CONNECTOR = ".plugins-ml-connector"
    TASK = ".plugins-ml-task"
    MODEL_GROUP = ".plugins-ml-model-group"
    CONFIG = ".plugins-ml-config"
    CONTROLLER = ".plugins-ml-controller"
    DEPLOYMENT = ".plugins-ml-stream-deployment"  # in a cluster: what the sidecar has deployed
    ACCOUNT = ".plugins-ml-stream-account"  # users and keys of the sidecar's own
    MODEL_SETTINGS = ".plugins-ml-stream-model-settings"  # the `_sidecar` objects of models, under their ids
    LEASE = ".plugins-ml-stream-lease"  # the servers that share the store
    SPENDING = ".plugins-ml-stream-spending"  # what was spent of budgets, by model, user and window


@dataclass(frozen=True, slots=True)
class Document:
    """A stored document. `seq_no` and `primary_term` change with every write; pass them back to write safely."""

    id: str
    source: Mapping[str, Any]
    version: int
    seq_no: int
    primary_term: int


def absent(id: str) -> Document:
    """Return the placeholder of a missing document, with which `changed` says whether it was created since."""
    return Document(id, {}, 0, *ABSENT_SEQUENCE)


@dataclass(frozen=True, slots=True)
class Written:
    """The outcome of a write; `response` is OpenSearch's: `{"_index", "_id", "_version", "result", ...}`."""

    id: str
    seq_no: int
    primary_term: int
    response: Mapping[str, Any]


class Cluster(Protocol):
    """What the store's OpenSearch cluster has beside documents. Every method raises Unavailable if it is down."""

    async def settings(self) -> Mapping[str, object]:
        """Return the settings `plugins.ml_commons.*` that were changed in the cluster, by full name.

        Forbidden if the store's user may not read them.
        """
        ...

    async def pipelines(self, kind: str) -> Mapping[str, Mapping[str, Any]]:
        """Return the cluster's pipelines of a kind, `ingest` or `search`, by name; none if it knows no such kind."""
        ...

    async def agents_using(self, model_id: str) -> Sequence[str]:
        """Return ids of ML Commons' agents whose tools or language model call the model."""
        ...

    async def undeploy(self, model_id: str) -> bool:
        """Undeploy the model in ML Commons on the cluster; False if there is none, or if it has no such model."""
        ...

    async def deploy(self, model_id: str) -> bool:
        """Deploy the model in ML Commons on the cluster; False if there is none, or if it has no such model."""
        ...

    async def ml_commons_refusal(self) -> str | None:
        """Return why ML Commons on the cluster refuses the store's user a search; None if it does not, or is absent."""
        ...


class SecurityPlugin(Protocol):
    """The security plugin of an OpenSearch cluster. Every method raises Unavailable if the cluster does not say."""

    async def is_installed(self) -> bool:
        """Whether the cluster has the plugin, and it is not disabled."""
        ...

    async def auth_info(self, headers: Mapping[str, str]) -> Mapping[str, Any] | None:
        """Return who sends these headers, and nothing else, as OpenSearch says (`authinfo`); None if it refuses.

        Forbidden for a known caller who may not be the user in IMPERSONATION.
        """
        ...

    async def roles(self) -> Mapping[str, Mapping[str, Any]]:
        """Return `{"cluster_permissions": [...]}` by role. Forbidden if the store's user may not read roles."""
        ...

    async def action_groups(self) -> Mapping[str, Mapping[str, Any]]:
        """Return `{"allowed_actions": [...]}` by action group. Forbidden if the store's user may not read them."""
        ...


class Store(Protocol):
    """What the use cases need of a store; a write returns when searches find it. No document has an empty id.

    Every method raises Unavailable (503) if the store is down. `put` with `if_seq_no` and `if_primary_term` raises
    Conflict (409) if the document has changed since.
    """

    async def get(self, index: Index, id: str) -> Document | None:
        """Return the document as of its last write (realtime), or None."""
        ...

    async def changed(self, index: Index, id: str, seq_no: int, primary_term: int) -> bool:
        """Whether the document was changed, deleted or created since that write. Cheap: no source is sent.

        ABSENT_SEQUENCE stands for no document.
        """
        ...

    async def create(self, index: Index, source: Mapping[str, Any], id: str | None = None) -> Written:
        """Store a new document, under an id that the store makes if there is none; Conflict if the id is taken."""
        ...

    async def prepare(self, *indices: Index) -> None:
        """Create the missing ones of these indices ahead of time, so that the next write to each is one request."""
        ...

    async def put(
        self,
        index: Index,
        id: str,
        source: Mapping[str, Any],
        *,
        if_seq_no: int | None = None,
        if_primary_term: int | None = None,
    ) -> Written:
        """Store the document, replacing all of an older one. `response["result"]` is "updated" or "created"."""
        ...

    async def delete(self, index: Index, id: str) -> Written:
        """Delete the document. `response["result"]` is "deleted" or "not_found"."""
        ...

    async def search(self, index: Index, body: Mapping[str, Any]) -> dict[str, Any]:
        """Return OpenSearch's search response, hits with `_version`, `_seq_no` and `_primary_term`.

        An index that does not exist has no hits. InvalidRequest for a body that the store cannot search by.
        """
        ...

    async def search_for_caller(self, index: Index, body: Mapping[str, Any]) -> dict[str, Any]:
        """Search for a caller, separately from the sidecar's own searches.

        Throttled (429) if too many such searches run already.
        """
        ...

    async def ping(self) -> None:
        """Raise Unavailable if the store is down."""
        ...

    async def run_painless(self, source: str, params: Mapping[str, Any]) -> str | None:
        """Return a Painless script's result as a string; InvalidRequest if it fails or the store cannot run scripts."""
        ...

    async def percolate(self, index_name: str, document: Mapping[str, Any]) -> bool:
        """Whether a query that is stored in the field `query` of a user's index matches the document.

        InvalidRequest if the store cannot percolate or the index holds no queries, Unavailable if there is no index.
        """
        ...

    @property
    def cluster(self) -> Cluster | None:
        """The cluster of the store, in which ML Commons may use the same documents, now or later; None if embedded."""
        ...

    @property
    def security(self) -> SecurityPlugin | None:
        """The security plugin of the store's cluster, which may lack it; None if the store is embedded."""
        ...

    async def index_statuses(self) -> Mapping[Index, str] | None:
        """Return `green`, `yellow` or `red` for each index that exists; None if the store has none or may not say."""
        ...

    async def close(self) -> None:
        """Release connections and threads; the store cannot be used afterwards."""
        ...


async def get_or_create(store: Store, index: Index, id: str, make: Callable[[], Mapping[str, Any]]) -> Document:
    """Return the document of that id, created if there is none.

    If another worker is creating it, it may exist before it can be read, and is then read again. Unavailable if it
    still cannot be read after MAX_ATTEMPTS.
    """
    for _ in range(MAX_ATTEMPTS):
        document = await store.get(index, id)
        if document is not None:
            return document
        source = make()
        try:
            written = await store.create(index, source, id)
        except Conflict:
            continue
        return Document(id, source, 1, written.seq_no, written.primary_term)
    raise Unavailable(f"Document {id} of index {index} can be neither read nor created; see the log of OpenSearch")
