"""The security plugin of a store's cluster: whether there is one, who a caller is, and what roles may do."""

from collections.abc import Mapping
from typing import Any

from opensearchpy import AsyncOpenSearch, AuthenticationException, AuthorizationException, TransportError

from opensearch_ml_stream.connectors.errors import Forbidden, Unavailable
from opensearch_ml_stream.plugin.store import IMPERSONATION
from opensearch_ml_stream.plugin.store.opensearch_errors import error_reason, is_no_route, not_opensearch, reading
from opensearch_ml_stream.plugin.store.opensearch_responses import check_security_health, read_auth_info, read_objects

_PATH = "/_plugins/_security"


class OpenSearchSecurity:
    """A SecurityPlugin. `service` is the store's client, `callers` one of the same cluster without credentials."""

    def __init__(self, service: AsyncOpenSearch, callers: AsyncOpenSearch, read_seconds: float = 4.5) -> None:
        self._service = service
        self._callers = callers
        self._read_seconds = read_seconds

    async def is_installed(self) -> bool:
        """Whether the cluster has the plugin; Unavailable if it does not say so as OpenSearch does.

        Only OpenSearch's own "no handler found" means no. Any other 404 may come from what stands before the cluster.
        """
        async with reading(self._read_seconds):
            try:
                response = await self._service.transport.perform_request("GET", f"{_PATH}/health")
            except (AuthenticationException, AuthorizationException) as error:
                raise Unavailable(
                    f"The cluster does not say whether it has the security plugin (GET {_PATH}/health: "
                    f"{error.status_code}); set opensearch_ml_stream.security to opensearch or own"
                ) from None
            except TransportError as error:
                if is_no_route(error):
                    return False
                raise not_opensearch() if error.status_code in (400, 404) else error from None
        check_security_health(response)
        return True

    async def auth_info(self, headers: Mapping[str, str]) -> Mapping[str, Any] | None:
        """Return what `authinfo` says of these headers, with a `user_name`; None if OpenSearch refuses them."""
        async with reading(self._read_seconds):
            try:
                response = await self._callers.transport.perform_request(
                    "GET", f"{_PATH}/authinfo", headers=dict(headers)
                )
            except AuthorizationException as error:
                if IMPERSONATION in headers:  # the caller is known, and may not be whom they ask to be
                    raise Forbidden(error_reason(error), type="security_exception") from None
                return None
            except AuthenticationException:
                return None
            except TransportError as error:
                if is_no_route(error):
                    raise Unavailable("The cluster has no security plugin that could say who calls") from None
                raise not_opensearch() if error.status_code in (400, 404) else error from None
        return read_auth_info(response)

    async def roles(self) -> Mapping[str, Mapping[str, Any]]:
        """Return the permissions of each role on the cluster; Forbidden if the store's user may not read them."""
        return await self._list("roles", "cluster_permissions")

    async def action_groups(self) -> Mapping[str, Mapping[str, Any]]:
        """Return the actions of each action group; Forbidden if the store's user may not read them."""
        return await self._list("actiongroups", "allowed_actions")

    async def _list(self, what: str, member: str) -> Mapping[str, Mapping[str, Any]]:
        async with reading(self._read_seconds):
            try:
                response = await self._service.transport.perform_request(
                    "GET", f"{_PATH}/api/{what}", params={"filter_path": f"*.{member}"}
                )
            except AuthorizationException:
                raise Forbidden(f"OpenSearch does not let the store's user GET {_PATH}/api/{what}") from None
            except TransportError as error:
                raise not_opensearch() if error.status_code in (400, 404) else error from None
        return read_objects(response)
