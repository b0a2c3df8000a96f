"""Documents that whoever needs them first makes, of all workers and replicas: the first one counts."""

from collections.abc import Callable, Mapping
from typing import Any

from opensearch_ml_stream.connectors.errors import Conflict, Unavailable
from opensearch_ml_stream.plugin.store import Document, Index, Store

MAX_ATTEMPTS = 10


async def made_once(store: Store, index: Index, id: str, make: Callable[[], Mapping[str, Any]]) -> Document:
    """Return the document of that id, made if there is none.

    One that another is just making may be taken before it can be read: it is read again then. Unavailable if that does
    not come to an end.
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
