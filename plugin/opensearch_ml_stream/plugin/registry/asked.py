"""Read what a request says of access."""

from opensearch_ml_stream.connectors.errors import InvalidRequest
from opensearch_ml_stream.plugin.registry.stored_documents import Json, flag_of, string_of, strings_of
from opensearch_ml_stream.plugin.security.access_control import ACCESS_MODES, AskedAccess


def asked_access(body: Json) -> AskedAccess:
    """Return `access_mode`, `backend_roles` and `add_all_backend_roles` of a body.

    InvalidRequest for a mode that is unknown, or a value of the wrong type.
    """
    mode = string_of(body, "access_mode")
    if mode is not None and mode.lower() not in ACCESS_MODES:
        raise InvalidRequest(f"access_mode must be one of {', '.join(ACCESS_MODES)}")
    roles = strings_of(body, "backend_roles")
    return AskedAccess(
        None if mode is None else mode.lower(),
        None if roles is None else tuple(roles),
        flag_of(body, "add_all_backend_roles"),
    )
