"""What the OpenSearch cluster of a store has beside its documents: settings, pipelines, ML Commons, security plugin."""

from collections.abc import Mapping, Sequence
from typing import Any

from opensearchpy import (
    AsyncOpenSearch,
    AuthenticationException,
    AuthorizationException,
    NotFoundError,
    RequestError,
    TransportError,
)

from opensearch_ml_stream.connectors.errors import Forbidden, Unavailable
from opensearch_ml_stream.plugin.store import IMPERSONATION
from opensearch_ml_stream.plugin.store.opensearch_errors import (
    error_reason,
    is_no_route,
    mapped_errors,
    not_opensearch,
    reading,
)
from opensearch_ml_stream.plugin.store.opensearch_responses import (
    check_security_health,
    read_auth_info,
    read_changed_settings,
    read_objects,
    read_search,
)

SETTINGS_PREFIX = "plugins.ml_commons."
MAX_AGENTS = 100

_AGENT_INDEX = ".plugins-ml-agent"
_AGENT_FIELDS = (
    "tools.parameters.model_id",
    "tools.parameters.embedding_model_id",
    "tools.parameters.inference_model_id",
    "llm.model_id",
)
_PATH = "/_plugins/_security"


class OpenSearchCluster:
    """A Cluster behind the store's client. `shares_documents`: whether ML Commons' indices are those of the store."""

    def __init__(self, client: AsyncOpenSearch, *, shares_documents: bool) -> None:
        self._client = client
        self._shares_documents = shares_documents

    async def settings(self) -> Mapping[str, object]:
        """Return the settings `plugins.ml_commons.*` that were changed in the cluster; transient beats persistent."""
        response = await self._send("GET", "/_cluster/settings?flat_settings=true", "cluster:monitor/state")
        changed = read_changed_settings(response)
        return {name: value for name, value in changed.items() if name.startswith(SETTINGS_PREFIX)}

    async def pipelines(self, kind: str) -> Mapping[str, Mapping[str, Any]]:
        """Return the pipelines of a kind (`ingest`, `search`) by name; none if this version knows no such pipelines."""
        action = f"cluster:admin/{'ingest' if kind == 'ingest' else 'search'}/pipeline/get"
        return read_objects(await self._send("GET", f"/_{kind}/pipeline", action) or {})

    async def agents_using(self, model_id: str) -> Sequence[str]:
        """Return ids (at most MAX_AGENTS) of the agents that call the model; none without ML Commons."""
        terms = [{"term": {field: model_id}} for field in _AGENT_FIELDS]
        body = {"query": {"bool": {"should": terms, "minimum_should_match": 1}}, "size": MAX_AGENTS, "_source": False}
        with mapped_errors("read"):
            response = await self._client.search(index=_AGENT_INDEX, body=body, params={"ignore_unavailable": "true"})
        return [str(hit["_id"]) for hit in read_search(response)["hits"]["hits"]]

    async def undeploy(self, model_id: str) -> bool:
        """Undeploy the model in ML Commons; False if there is none, or if it has no such model."""
        return await self._tell_ml_commons(model_id, "_undeploy", "undeploy_models")

    async def deploy(self, model_id: str) -> bool:
        """Deploy the model in ML Commons; False if there is none, or if it has no such model."""
        return await self._tell_ml_commons(model_id, "_deploy", "deploy_model")

    async def ml_commons_refusal(self) -> str | None:
        """Return why ML Commons refuses the store's user a search (403); None if it does not, or is not there."""
        if not self._shares_documents:
            return None
        with mapped_errors("read"):
            try:
                await self._client.transport.perform_request(
                    "POST", "/_plugins/_ml/models/_search", body={"query": {"match_all": {}}, "size": 0}
                )
            except AuthorizationException as error:
                return error_reason(error)
            except (NotFoundError, RequestError):
                pass
        return None

    async def _tell_ml_commons(self, model_id: str, what: str, permission: str) -> bool:
        if not self._shares_documents:
            return False
        path = f"/_plugins/_ml/models/{model_id}/{what}"
        return await self._send("POST", path, f"cluster:admin/opensearch/ml/{permission}") is not None

    async def _send(self, method: str, path: str, permission: str) -> Any:
        """Return the response, None if the cluster has no such route or object; Forbidden names the permission."""
        with mapped_errors("read"):
            try:
                return await self._client.transport.perform_request(method, path)
            except NotFoundError:
                return None
            except (AuthenticationException, AuthorizationException):
                raise Forbidden(
                    f"OpenSearch does not let the store's user {method} {path.partition('?')[0]}; it needs the "
                    f"permission {permission}"
                ) from None
            except RequestError as error:
                if is_no_route(error):
                    return None
                raise


class OpenSearchSecurity:
    """A SecurityPlugin. `service` is the store's client, `callers` one of the same cluster without credentials."""

    def __init__(self, service: AsyncOpenSearch, callers: AsyncOpenSearch, read_seconds: float = 4.5) -> None:
        self._service = service
        self._callers = callers
        self._read_seconds = read_seconds

    async def is_installed(self) -> bool:
        """Whether the cluster has the plugin; Unavailable if the response is not OpenSearch's.

        Only OpenSearch's own "no handler found" means no. Any other 404 may come from a proxy in front of the cluster.
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
