"""Convert connectors between their forms: a caller's body, the stored document, the response without credentials."""

from collections.abc import Mapping, Sequence
from typing import Any

from opensearch_ml_stream.connectors.documents import connector_document, parameter_texts, read_connector
from opensearch_ml_stream.connectors.errors import InvalidRequest
from opensearch_ml_stream.connectors.rendering.caller_parameters import CALLER_PARAMETERS, read_caller_parameters
from opensearch_ml_stream.connectors.rendering.unfilled_values import left_in_connector
from opensearch_ml_stream.connectors.stream_parameter import read_stream_spec
from opensearch_ml_stream.connectors.syntax.jsontext import scalar_texts
from opensearch_ml_stream.plugin.credentials.cipher import Cipher
from opensearch_ml_stream.plugin.registry.document_access import asked_access
from opensearch_ml_stream.plugin.registry.stored_documents import Json, in_order, object_of
from opensearch_ml_stream.plugin.settings import Settings
from opensearch_ml_stream.plugin.upstream.addresses import AddressPolicy, PrivateAddress, literal_address
from opensearch_ml_stream.plugin.upstream.target import parse_target
from opensearch_ml_stream.plugin.upstream.tls_contexts import check_mutual_tls
from opensearch_ml_stream.plugin.upstream.trusted_endpoints import check_connector_url, fill_url

HIDDEN = ("credential", "connector.credential", "content", "model_content")
UI_METADATA = "ui_metadata"
_STREAM = "_stream"

_CHANGEABLE = ("name", "description", "version", "protocol", "actions", "client_config")
_FIELDS = (
    "name", "version", "description", "protocol", "parameters", "actions", "backend_roles", "owner", "access",
    "created_time", "last_updated_time", "client_config", "tenant_id", "provisioned_by",
)  # fmt: skip


def new_document(body: Json, settings: Settings, *, inline: bool = False) -> dict[str, Any]:
    """Return the document for a new connector (or an `inline` one, of a model), its credentials still to be encrypted.

    InvalidRequest says what is wrong with the body.
    """
    access = {name: value for name, value in _access_fields(body).items() if value}
    document = connector_document(body, inline=inline) | access
    check_connector(document, settings)
    return document


async def encrypted_changes(body: Json, cipher: Cipher) -> dict[str, Any]:
    """Return the fields of an update's body that may change, its credentials encrypted."""
    changes = {name: body[name] for name in _CHANGEABLE if body.get(name) is not None} | _access_fields(body)
    if (parameters := object_of(body, "parameters")) is not None:
        changes["parameters"] = parameter_texts(parameters)
    if (credential := object_of(body, "credential")) is not None:
        plain = scalar_texts(dict(credential), "credential")
        changes["credential"] = await cipher.encrypt_all(plain)
    return changes


def changed_document(stored: Json, changes: Json, settings: Settings, *, inline: bool = False) -> dict[str, Any]:
    """Return the stored document with `encrypted_changes` applied; InvalidRequest if the result is wrong.

    Parameters and credentials are merged key by key, other fields replaced as a whole. A stored `client_config` that is
    not changed is kept as it is: a newer ML Commons may have written it.
    """
    merged = {name: value for name, value in stored.items() if name != "client_config"} | dict(changes)
    for name in ("parameters", "credential"):
        if name in changes:
            merged[name] = {**(stored.get(name) or {}), **changes[name]}
    document = connector_document(merged, inline=inline)
    check_connector(document, settings)
    return {**stored, **changes, **document}


def check_connector(document: Json, settings: Settings) -> None:
    """Raise InvalidRequest for an untrusted URL, or wrong TLS options, `_stream` or `_caller_parameters`.

    A header may name a credential that the connector lacks (blueprints of the managed service get theirs from a role).
    This is not refused here; the first prediction fails.
    """
    connector = read_connector(document)
    if (spec := connector.parameters.get(_STREAM)) is not None:
        read_stream_spec(spec)
    read_caller_parameters(connector.parameters.get(CALLER_PARAMETERS))
    for action in connector.actions:
        check_connector_url(action.url, connector.parameters, settings)
        filled = fill_url(action.url, connector.parameters)
        check_mutual_tls(filled, connector.client_config)
        _check_written_address(filled, settings)


def missing_value_warnings(body: Json, document: Json) -> list[str]:
    """Return warnings about the values that a connector leaves for its callers to give.

    `document` is the connector as stored, `body` the request for it, which has the credential in clear text.
    """
    return list(left_in_connector({**document, "credential": object_of(body, "credential")}))


def with_warnings(response: Json, warnings: Sequence[str]) -> dict[str, Any]:
    """Return a response with `warnings`, if there are any."""
    return {**response, "warnings": list(warnings)} if warnings else dict(response)


def without_secrets(source: Json, *, dashboards: bool) -> dict[str, Any]:
    """Return a connector's or model's source without its credentials and those of its inline connector."""
    hidden = hidden_fields(dashboards=dashboards)
    shown = {name: value for name, value in source.items() if name not in hidden}
    if isinstance(inline := shown.get("connector"), Mapping):
        shown["connector"] = connector_view(inline, dashboards=dashboards)
    return shown


def connector_view(source: Json, *, dashboards: bool) -> dict[str, Any]:
    """Return what GET responds for a stored connector: no credentials, ML Commons' order of fields."""
    return in_order(without_secrets(source, dashboards=dashboards), _FIELDS)


def hidden_fields(*, dashboards: bool) -> tuple[str, ...]:
    """Return the fields that are never returned; only OpenSearch Dashboards gets `ui_metadata`."""
    return HIDDEN if dashboards else (*HIDDEN, UI_METADATA)


def require_predict_action(document: Json) -> None:
    """Raise InvalidRequest if a model's inline connector has no action to predict with."""
    if not any(action["action_type"] == "PREDICT" for action in document["actions"]):
        raise InvalidRequest("Connector endpoint is required when creating a remote model without connector id!")


def _check_written_address(url: str, settings: Settings) -> None:
    """Raise InvalidRequest for a private address in the URL, which no prediction could reach.

    The addresses of a host name are checked where the connection is opened.
    """
    try:
        target = parse_target(url)
    except InvalidRequest:  # only a request fills its host
        return
    policy = AddressPolicy.of(settings).for_url(url)
    literal = literal_address(target.host)
    try:
        if literal is None:
            policy.check_name(target.host)
        else:
            policy.check(target.host, (literal,))
    except PrivateAddress as error:
        origin = target.origins[0]
        advice = f"If it is to be called: opensearch-ml-stream endpoints allow {origin}"
        raise InvalidRequest(f"{error.reason}. {advice}") from None


def _access_fields(body: Json) -> dict[str, Any]:
    """Return the roles and access mode of a body, as stored where access control does not apply."""
    asked = asked_access(body)
    fields: dict[str, Any] = {} if asked.roles is None else {"backend_roles": list(asked.roles)}
    return fields if asked.mode is None else {**fields, "access": asked.mode}
