"""Setting metadata: name, kind of value, limits and help text of each setting, and whether it can change at run time.

The configuration file, the environment, `_plugins/_ml/_settings`, the command line's listing and the README's table
are all made from them.
"""

from dataclasses import dataclass, fields
from difflib import get_close_matches
from typing import Any, Literal

from opensearch_ml_stream.connectors.errors import InvalidRequest
from opensearch_ml_stream.plugin.settings import Settings

Kind = Literal[
    "boolean", "integer", "number", "string", "list", "regex", "regexes", "endpoints", "origins", "hosts", "secret",
    "networks", "header", "permissions",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting. `field` is its name in Settings; `minimum` and `maximum` bound numbers, `choices` strings."""

    name: str
    field: str
    kind: Kind
    help: str
    dynamic: bool = False
    minimum: float | None = None
    maximum: float | None = None
    choices: tuple[str, ...] = ()

    @property
    def default(self) -> object:
        """The value where no source sets it."""
        return DEFAULTS[self.field]


DEFAULTS: dict[str, Any] = {field.name: field.default for field in fields(Settings)}

_ML = "plugins.ml_commons."
_OWN = "opensearch_ml_stream."

SETTINGS = (
    Setting(_OWN + "host", "host", "string", "Address to listen on"),
    Setting(_OWN + "port", "port", "integer", "Port to listen on", minimum=0, maximum=65535),
    Setting(_OWN + "workers", "workers", "integer", "Worker processes", minimum=1, maximum=256),
    Setting(_OWN + "store", "store", "string", "Where models live: sqlite:///PATH or http(s)://user:pass@host:port"),
    Setting(_OWN + "index_prefix", "index_prefix", "string", "Put before the names of all indices"),
    Setting(_OWN + "max_body_size", "max_body_size", "integer", "Largest request body, in bytes", minimum=1),
    Setting(
        _OWN + "max_total_body_size",
        "max_total_body_size",
        "integer",
        "Largest sum of all request bodies in a worker's memory, in bytes",
        minimum=1,
    ),
    Setting(
        _OWN + "request_timeout_seconds",
        "request_timeout_seconds",
        "number",
        "How long a client may take to send a whole request",
        minimum=1,
    ),
    Setting(
        _OWN + "max_connections",
        "max_connections",
        "integer",
        "Most open connections of clients, for each worker",
        minimum=1,
    ),
    Setting(
        _OWN + "max_streams",
        "max_streams",
        "integer",
        "Most responses in flight, for each worker",
        minimum=1,
    ),
    Setting(
        _OWN + "shutdown_grace_seconds",
        "shutdown_grace_seconds",
        "number",
        "How long running streams may go on after SIGTERM",
        minimum=0,
    ),
    Setting(
        _OWN + "first_event_wait_seconds",
        "first_event_wait_seconds",
        "number",
        "How long a stream waits for the provider's first event before it responds with 200",
        minimum=0,
    ),
    Setting(
        _OWN + "heartbeat_seconds",
        "heartbeat_seconds",
        "number",
        "Silence after which a heartbeat is sent",
        minimum=0.1,
    ),
    Setting(
        _OWN + "circuit_breaker_failures",
        "circuit_breaker_failures",
        "integer",
        "Calls of a connector's provider that fail in a row before it is left alone for a while; 0 for never",
        dynamic=True,
        minimum=0,
        maximum=1_000_000,
    ),
    Setting(
        _OWN + "circuit_breaker_seconds",
        "circuit_breaker_seconds",
        "number",
        "How long it is left alone at first; twice as long each time that it fails again, up to 60 s",
        dynamic=True,
        minimum=0.1,
        maximum=60,
    ),
    Setting(
        _OWN + "security",
        "security",
        "string",
        "Who may call: users of the store's cluster (opensearch), those with a user or key of this sidecar (own), "
        "everyone (none); auto is opensearch if the cluster has the security plugin, else own as soon as there is one",
        choices=("auto", "opensearch", "own", "none"),
    ),
    Setting(
        _OWN + "role_permissions",
        "role_permissions",
        "permissions",
        "Actions that roles of OpenSearch allow, where the store's user may not read the cluster's roles",
    ),
    Setting(
        _OWN + "proxy_auth.trusted_addresses",
        "proxy_auth_trusted_addresses",
        "networks",
        "Addresses of the proxy that may name users of OpenSearch in a header, such as 10.0.1.0/24",
    ),
    Setting(_OWN + "proxy_auth.user_header", "proxy_auth_user_header", "header", "Header with which it names the user"),
    Setting(
        _OWN + "proxy_auth.roles_header",
        "proxy_auth_roles_header",
        "header",
        "Header with which it names the user's backend roles, separated by commas, if it sets one",
    ),
    Setting(
        _OWN + "external_credentials_enabled",
        "external_credentials_enabled",
        "boolean",
        "Allow credentials of the form env:NAME and file:PATH, read at use",
    ),
    Setting(
        _OWN + "upstream",
        "upstream",
        "string",
        "Client for providers; aiohttp is taken by itself where an HTTP proxy is set",
        choices=("native", "aiohttp"),
    ),
    Setting(
        _OWN + "cors_origins",
        "cors_origins",
        "origins",
        "Origins of web pages that may call, such as https://app.example.com",
    ),
    Setting(
        _OWN + "allowed_hosts",
        "allowed_hosts",
        "hosts",
        "Host names under which clients may call, beside loopback names, IP addresses and the bound host",
    ),
    Setting(
        _OWN + "guardrail_held_characters",
        "guardrail_held_characters",
        "integer",
        "Last characters of a stream that are held back where an output guardrail has a pattern",
        minimum=0,
        maximum=100_000,
    ),
    Setting(_OWN + "access_log", "access_log", "boolean", "Log a line for each request", dynamic=True),
    Setting(
        _OWN + "log_level",
        "log_level",
        "string",
        "Least severe lines that are logged",
        choices=("debug", "info", "warning", "error"),
    ),
    Setting(_OWN + "log_format", "log_format", "string", "Form of a log line", choices=("text", "json")),
    Setting(
        _OWN + "tls.certificate",
        "tls_certificate",
        "string",
        "File of the port's certificate, PEM with its chain or PKCS #12; with it the port speaks HTTPS only",
    ),
    Setting(_OWN + "tls.key", "tls_key", "string", "PEM file of the certificate's key, if it has one of its own"),
    Setting(
        _OWN + "tls.key_password",
        "tls_key_password",
        "secret",
        "Password of the key or the PKCS #12 file: env:NAME or file:PATH",
    ),
    Setting(
        _OWN + "tls.client_certificates",
        "tls_client_certificates",
        "string",
        "Whether clients are asked for a certificate: none, optional or required",
        choices=("none", "optional", "required"),
    ),
    Setting(
        _OWN + "tls.client_authorities",
        "tls_client_authorities",
        "string",
        "PEM file of the authorities that may have issued the clients' certificates",
    ),
    Setting(
        _ML + "trusted_connector_endpoints_regex",
        "trusted_connector_endpoints_regex",
        "endpoints",
        "URLs that connectors may call",
        dynamic=True,
    ),
    Setting(
        _ML + "trusted_connector_private_endpoints_regex",
        "trusted_connector_private_endpoints_regex",
        "endpoints",
        "URLs with private addresses that connectors may call (all, if empty)",
        dynamic=True,
    ),
    Setting(
        _ML + "connector.private_ip_enabled",
        "private_ip_enabled",
        "boolean",
        "Allow providers on private and loopback addresses",
        dynamic=True,
    ),
    Setting(
        _ML + "connector.restricted_ip_patterns",
        "restricted_ip_patterns",
        "regexes",
        "Addresses that no connector may call",
    ),
    Setting(
        _ML + "remote_inference.enabled", "remote_inference_enabled", "boolean", "Allow remote models", dynamic=True
    ),
    Setting(_ML + "stream_enabled", "stream_enabled", "boolean", "Allow _predict/stream", dynamic=True),
    Setting(
        _ML + "model_auto_deploy.enable",
        "model_auto_deploy_enable",
        "boolean",
        "Deploy a model at its first prediction",
        dynamic=True,
    ),
    Setting(
        _ML + "safe_delete_model",
        "safe_delete_model",
        "boolean",
        "Refuse to delete a model that a pipeline or an agent of the cluster uses",
        dynamic=True,
    ),
    Setting(
        _ML + "offline_batch_inference_enabled",
        "offline_batch_inference_enabled",
        "boolean",
        "Allow _batch_predict",
        dynamic=True,
    ),
    Setting(
        _ML + "max_batch_inference_tasks",
        "max_batch_inference_tasks",
        "integer",
        "Batch jobs that may be open at once",
        dynamic=True,
        minimum=0,
    ),
    Setting(
        _ML + "max_json_size",
        "max_json_size",
        "integer",
        "Largest response of a provider to a whole prediction, in bytes",
        dynamic=True,
        minimum=1,
    ),
    Setting(
        _ML + "master_key_cache_ttl_minutes",
        "master_key_cache_ttl_minutes",
        "integer",
        "How long the encryption key is kept in memory",
        minimum=0,
    ),
    Setting(
        _ML + "remote_job.status_field",
        "remote_job_status_field",
        "list",
        "Fields of a batch job that hold its state",
        dynamic=True,
    ),
    *(
        Setting(
            f"{_ML}remote_job.status_regex.{state}",
            f"remote_job_status_{state}",
            "regex",
            f"Words for a batch job that is {state}",
            dynamic=True,
        )
        for state in ("completed", "cancelled", "cancelling", "expired", "failed")
    ),
)

BY_NAME = {setting.name: setting for setting in SETTINGS}


def setting_named(name: str) -> Setting:
    """Return the setting of that full name. InvalidRequest, with the most similar name, if there is none."""
    if name in BY_NAME:
        return BY_NAME[name]
    similar = get_close_matches(name, BY_NAME, n=1, cutoff=0.5)
    hint = f", did you mean [{similar[0]}]?" if similar else ""
    raise InvalidRequest(f"setting [{name}] not recognized{hint}")
