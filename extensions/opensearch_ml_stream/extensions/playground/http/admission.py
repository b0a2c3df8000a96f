"""What each request of the page needs before it is read: its action, a query and ids that there can be."""

from starlette.requests import Request

from opensearch_ml_stream.connectors.errors import Forbidden
from opensearch_ml_stream.rest_handlers.callers import Caller, Gate
from opensearch_ml_stream.rest_handlers.http.requests import check_query, query
from opensearch_ml_stream.rest_handlers.resource_endpoint import check_ids


async def admit(request: Request, gate: Gate, action: str) -> Caller:
    """Return the caller, who may do the action; InvalidRequest for a query or an id that nothing can have."""
    caller = await gate.admit(request.scope, action)
    check_query(request.scope, query(request.scope))
    check_ids(request.path_params)
    return caller


async def may(request: Request, gate: Gate, action: str) -> bool:
    """Return whether the caller may do the action."""
    try:
        await gate.admit(request.scope, action)
    except Forbidden:
        return False
    return True
