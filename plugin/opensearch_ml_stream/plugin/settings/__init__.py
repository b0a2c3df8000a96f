"""Settings: what an operator can set. Static ones are read once at start, dynamic ones are also kept in the store."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any, TypeVar

from opensearch_ml_stream.connectors.errors import FeatureDisabled, Forbidden, InvalidRequest
from opensearch_ml_stream.connectors.known_providers import SHIPPED
from opensearch_ml_stream.connectors.predict.remote_job_rules import RemoteJobRules
from opensearch_ml_stream.plugin.settings.setting_metadata import Setting, setting, settings_of, switch_of

T = TypeVar("T")

_JOBS = RemoteJobRules()

# Hosts that ML Commons trusts and that are of no provider of streams, then those of the providers; where a host serves
# more than models, or is the customer's own, only the paths of its models. A host name is spelt [a-z0-9-] because
# nothing else may stand between two dots. See `endpoint_patterns` for how a pattern is matched.
DEFAULT_TRUSTED_ENDPOINTS = (
    r"^https://bedrock-agent-runtime\.[a-z0-9-]+\.amazonaws\.com(\.cn)?/.*$",
    r"^https://bedrock\.[a-z0-9-]+\.amazonaws\.com(\.cn)?/.*$",
    r"^https://textract\.[a-z0-9-]+\.amazonaws\.com(\.cn)?/?$",
    r"^https://comprehend\.[a-z0-9-]+\.amazonaws\.com(\.cn)?/?$",
    r"^https://rekognition\.[a-z0-9-]+\.amazonaws\.com(\.cn)?/?$",
    *SHIPPED.trusted_endpoints,
)


def _job_words(state: str, default: str) -> str:
    return setting(
        default,
        f"Words for a batch job that is {state}",
        name=f"plugins.ml_commons.remote_job.status_regex.{state}",
        kind="regex",
        dynamic=True,
    )


@dataclass(frozen=True, slots=True)
class Settings:
    """One snapshot of all settings; a change makes a new one. Times in seconds, sizes in bytes.

    `sections` are the settings of extensions, by class. `extensions` are the switches of all extensions, None where no
    source sets one.
    """

    host: str = setting("127.0.0.1", "Address to listen on", name="opensearch_ml_stream.host")
    port: int = setting(9510, "Port to listen on", name="opensearch_ml_stream.port", minimum=0, maximum=65535)
    grpc_port: int | None = setting(
        None,
        "Port to listen on for gRPC; none unless it is set",
        name="opensearch_ml_stream.grpc_port",
        minimum=0,
        maximum=65535,
    )
    grpc_compression: str = setting(
        "none",
        "Compression of responses over gRPC, for clients that take it",
        name="opensearch_ml_stream.grpc_compression",
        choices=("none", "gzip", "deflate"),
    )
    workers: int = setting(1, "Worker processes", name="opensearch_ml_stream.workers", minimum=1, maximum=256)
    store: str = setting(
        "",
        "Where models live: sqlite:///PATH, or http(s)://user:pass@host:port of a cluster's hosts, with commas",
        name="opensearch_ml_stream.store",
    )
    index_prefix: str = setting("", "Put before the names of all indices", name="opensearch_ml_stream.index_prefix")
    store_timeout_seconds: float = setting(
        4.5,  # below `first_event_wait_seconds`: a stream that fails is a 503 then
        "How long a request waits for an answer of the store's cluster before it is refused with 503",
        name="opensearch_ml_stream.store_timeout_seconds",
        minimum=0.1,
        maximum=10,
    )
    max_body_size: int = setting(
        10 * 1024 * 1024, "Largest request body, in bytes", name="opensearch_ml_stream.max_body_size", minimum=1
    )
    max_total_body_size: int = setting(
        256 * 1024 * 1024,
        "Largest sum of all request bodies in a worker's memory, in bytes",
        name="opensearch_ml_stream.max_total_body_size",
        minimum=1,
    )
    request_timeout_seconds: float = setting(
        300,
        "How long a client may take to send a whole request",
        name="opensearch_ml_stream.request_timeout_seconds",
        minimum=1,
    )
    max_connections: int = setting(
        10_000,
        "Most open connections of clients, for each worker",
        name="opensearch_ml_stream.max_connections",
        minimum=1,
    )
    max_streams: int = setting(
        5_000, "Most predictions in flight, for each worker", name="opensearch_ml_stream.max_streams", minimum=1
    )
    max_streams_per_server: int = setting(
        0,
        "Most predictions in flight, over all workers of a server; 0 for any number",
        name="opensearch_ml_stream.max_streams_per_server",
        dynamic=True,
        minimum=0,
    )
    max_streams_per_user: int = setting(
        0,
        "Most predictions of one user in flight, over all workers of a server; 0 for any number",
        name="opensearch_ml_stream.max_streams_per_user",
        dynamic=True,
        minimum=0,
    )
    stream_queue_seconds: float = setting(
        2,
        "How long a caller waits where a cap on predictions in flight is reached",
        name="opensearch_ml_stream.stream_queue_seconds",
        dynamic=True,
        minimum=0,
        maximum=60,
    )
    stream_queue_size: int = setting(
        100,
        "Callers that may wait at one cap, for each worker",
        name="opensearch_ml_stream.stream_queue_size",
        dynamic=True,
        minimum=0,
    )
    shutdown_grace_seconds: float = setting(
        30,
        "How long running streams may go on after SIGTERM",
        name="opensearch_ml_stream.shutdown_grace_seconds",
        minimum=0,
    )
    first_event_wait_seconds: float = setting(
        5,
        "How long a stream waits for the provider's first event before it responds with 200",
        name="opensearch_ml_stream.first_event_wait_seconds",
        minimum=0,
    )
    heartbeat_seconds: float = setting(
        15, "Silence after which a heartbeat is sent", name="opensearch_ml_stream.heartbeat_seconds", minimum=0.1
    )
    circuit_breaker_failures: int = setting(
        10,
        "Calls to a connector's provider that fail in a row before calls are suspended for a while; 0 for never",
        name="opensearch_ml_stream.circuit_breaker_failures",
        dynamic=True,
        minimum=0,
        maximum=1_000_000,
    )
    circuit_breaker_seconds: float = setting(
        5,
        "How long calls are suspended at first; twice as long after each further failure, up to 60 s",
        name="opensearch_ml_stream.circuit_breaker_seconds",
        dynamic=True,
        minimum=0.1,
        maximum=60,
    )
    security: str = setting(
        "auto",
        "Who may call: users of the store's cluster (opensearch), those with a user or key of this sidecar (own), "
        "everyone (none); auto is opensearch if the cluster has the security plugin, else own as soon as there is one",
        name="opensearch_ml_stream.security",
        choices=("auto", "opensearch", "own", "none"),
    )
    role_permissions: tuple[tuple[str, tuple[str, ...]], ...] = setting(
        (),
        "Actions that roles of OpenSearch allow, where the store's user may not read the cluster's roles",
        name="opensearch_ml_stream.role_permissions",
        kind="permissions",
    )
    proxy_auth_trusted_addresses: tuple[str, ...] = setting(
        (),
        "Addresses of the proxy that may name users of OpenSearch in a header, such as 10.0.1.0/24",
        name="opensearch_ml_stream.proxy_auth.trusted_addresses",
        kind="networks",
    )
    proxy_auth_user_header: str = setting(
        "x-proxy-user",
        "Header in which the proxy names the user",
        name="opensearch_ml_stream.proxy_auth.user_header",
        kind="header",
    )
    proxy_auth_roles_header: str = setting(
        "",
        "Header in which the proxy names the user's backend roles, separated by commas, if it sets one",
        name="opensearch_ml_stream.proxy_auth.roles_header",
        kind="header",
    )
    external_credentials_enabled: bool = setting(
        False,
        "Allow credentials of the form env:NAME and file:PATH, read at use",
        name="opensearch_ml_stream.external_credentials_enabled",
    )
    proxy_resolves_names: bool = setting(
        False,
        "Allow calls through an HTTP proxy of hosts that only the proxy can resolve: their addresses are not checked",
        name="opensearch_ml_stream.proxy_resolves_names",
    )
    cors_origins: tuple[str, ...] = setting(
        (),
        "Origins of web pages that may call, such as https://app.example.com",
        name="opensearch_ml_stream.cors_origins",
        kind="origins",
    )
    allowed_hosts: tuple[str, ...] = setting(
        (),
        "Host names under which clients may call, beside loopback names, IP addresses and the bound host",
        name="opensearch_ml_stream.allowed_hosts",
        kind="hosts",
    )
    guardrail_held_characters: int = setting(
        256,
        "Last characters of a stream that are held back where an output guardrail has a pattern",
        name="opensearch_ml_stream.guardrail_held_characters",
        minimum=0,
        maximum=100_000,
    )
    access_log: bool = setting(
        False, "Log a line for each request", name="opensearch_ml_stream.access_log", dynamic=True
    )
    log_level: str = setting(
        "info",
        "Least severe lines that are logged",
        name="opensearch_ml_stream.log_level",
        choices=("debug", "info", "warning", "error"),
    )
    log_format: str = setting(
        "text", "Form of a log line", name="opensearch_ml_stream.log_format", choices=("text", "json")
    )
    tls_certificate: str = setting(
        "",
        "File of the port's certificate, PEM with its chain or PKCS #12; with it the port speaks HTTPS only",
        name="opensearch_ml_stream.tls.certificate",
    )
    tls_key: str = setting(
        "", "PEM file of the certificate's key, if it has one of its own", name="opensearch_ml_stream.tls.key"
    )
    tls_key_password: str = setting(
        "",
        "Password of the key or the PKCS #12 file: env:NAME or file:PATH",
        name="opensearch_ml_stream.tls.key_password",
        kind="secret",
    )
    tls_client_certificates: str = setting(
        "none",
        "Whether clients are asked for a certificate: none, optional or required",
        name="opensearch_ml_stream.tls.client_certificates",
        choices=("none", "optional", "required"),
    )
    tls_client_authorities: str = setting(
        "",
        "PEM file of the authorities that may have issued the clients' certificates",
        name="opensearch_ml_stream.tls.client_authorities",
    )

    trusted_connector_endpoints_regex: tuple[str, ...] = setting(
        DEFAULT_TRUSTED_ENDPOINTS,
        "URLs that connectors may call",
        name="plugins.ml_commons.trusted_connector_endpoints_regex",
        kind="endpoints",
        dynamic=True,
    )
    trusted_connector_private_endpoints_regex: tuple[str, ...] = setting(
        (),
        "URLs with private addresses that connectors may call (all, if empty)",
        name="plugins.ml_commons.trusted_connector_private_endpoints_regex",
        kind="endpoints",
        dynamic=True,
    )
    private_ip_enabled: bool = setting(
        False,
        "Allow providers on private and loopback addresses",
        name="plugins.ml_commons.connector.private_ip_enabled",
        dynamic=True,
    )
    restricted_ip_patterns: tuple[str, ...] = setting(
        (),
        "Addresses that no connector may call",
        name="plugins.ml_commons.connector.restricted_ip_patterns",
        kind="regexes",
    )
    remote_inference_enabled: bool = setting(
        True, "Allow remote models", name="plugins.ml_commons.remote_inference.enabled", dynamic=True
    )
    stream_enabled: bool = setting(
        True, "Allow _predict/stream", name="plugins.ml_commons.stream_enabled", dynamic=True
    )
    model_auto_deploy_enable: bool = setting(
        True, "Deploy a model at its first prediction", name="plugins.ml_commons.model_auto_deploy.enable", dynamic=True
    )
    safe_delete_model: bool = setting(
        False,
        "Refuse to delete a model that a pipeline or an agent of the cluster uses",
        name="plugins.ml_commons.safe_delete_model",
        dynamic=True,
    )
    connector_access_control_enabled: bool = setting(
        False,
        "Connectors have an owner and an access mode, where callers log in",
        name="plugins.ml_commons.connector_access_control_enabled",
        dynamic=True,
    )
    model_access_control_enabled: bool = setting(
        False,
        "Model groups and their models have an owner and an access mode, where callers log in",
        name="plugins.ml_commons.model_access_control_enabled",
        dynamic=True,
    )
    multi_tenancy_enabled: bool = setting(
        False,
        "Keep apart what belongs to the tenants that the header X-Tenant-Id names, which every request then needs",
        name="plugins.ml_commons.multi_tenancy_enabled",
    )
    offline_batch_inference_enabled: bool = setting(
        True, "Allow _batch_predict", name="plugins.ml_commons.offline_batch_inference_enabled", dynamic=True
    )
    max_batch_inference_tasks: int = setting(
        100,
        "Batch jobs that may be open at once",
        name="plugins.ml_commons.max_batch_inference_tasks",
        dynamic=True,
        minimum=0,
    )
    controller_enabled: bool = setting(
        True,
        "Limit the users that a model's controller names",
        name="plugins.ml_commons.controller_enabled",
        dynamic=True,
    )
    max_json_size: int = setting(
        100_000_000,
        "Largest response of a provider to a whole prediction, in bytes",
        name="plugins.ml_commons.max_json_size",
        dynamic=True,
        minimum=1,
    )
    master_key_cache_ttl_minutes: int = setting(
        5,
        "How long the encryption key is kept in memory",
        name="plugins.ml_commons.master_key_cache_ttl_minutes",
        minimum=0,
    )
    remote_job_status_field: tuple[str, ...] = setting(
        _JOBS.status_field,
        "Fields of a batch job that hold its state",
        name="plugins.ml_commons.remote_job.status_field",
        dynamic=True,
    )
    remote_job_status_completed: str = _job_words("completed", _JOBS.completed)
    remote_job_status_cancelled: str = _job_words("cancelled", _JOBS.cancelled)
    remote_job_status_cancelling: str = _job_words("cancelling", _JOBS.cancelling)
    remote_job_status_expired: str = _job_words("expired", _JOBS.expired)
    remote_job_status_failed: str = _job_words("failed", _JOBS.failed)

    sections: Mapping[type, Any] = field(default_factory=dict)
    extensions: Mapping[str, bool | None] = field(default_factory=dict)

    def of(self, section: type[T]) -> T:
        """Return the values of a section, its defaults if these settings were made without it."""
        values: T | None = self.sections.get(section)
        return section() if values is None else values

    def with_section(self, values: object) -> "Settings":
        """Return these settings with such values of a section."""
        return replace(self, sections={**self.sections, type(values): values})

    def definitions(self) -> Mapping[str, Setting]:
        """Return the settings that these are the values of, by full name. InvalidRequest if one is defined twice."""
        sections = (Settings, *self.sections)
        defined = [*chain.from_iterable(map(settings_of, sections)), *map(switch_of, self.extensions)]
        by_name: dict[str, Setting] = {}
        for one in defined:
            if by_name.setdefault(one.name, one) is not one:
                raise InvalidRequest(f"Two extensions, or one and the core, define the setting [{one.name}]")
        return by_name

    def value(self, setting: Setting) -> Any:
        """Return the value of a setting."""
        if setting.section is None:
            return self.extensions.get(setting.field)
        return getattr(self if setting.section is Settings else self.of(setting.section), setting.field)

    def changed(self, values: Mapping[Setting, Any]) -> "Settings":
        """Return these settings with other values of some."""
        settings = self
        for one, value in values.items():
            settings = settings._with_value(one, value)
        return settings

    def _with_value(self, setting: Setting, value: object) -> "Settings":
        change: dict[str, Any] = {setting.field: value}
        if setting.section is None:
            return replace(self, extensions={**self.extensions, **change})
        if setting.section is Settings:
            return replace(self, **change)
        return self.with_section(replace(self.of(setting.section), **change))


class LiveSettings:
    """The current settings. `current` is replaced as a whole when a dynamic setting changes.

    `definitions` are those of the settings, by full name. `at_start` holds the values of file, environment and command
    line; `of_cluster` holds those with the changes in the store's cluster applied. A dynamic setting is reset to
    `of_cluster`.
    """

    def __init__(self, at_start: Settings) -> None:
        self.definitions = at_start.definitions()
        self.at_start = at_start
        self.of_cluster = at_start
        self.current = at_start


def remote_inference_disabled() -> FeatureDisabled:
    """Return the error for a call of a remote model while these are off, in ML Commons' words."""
    return FeatureDisabled(
        "Remote Inference is currently disabled. To enable it, update the setting "
        '"plugins.ml_commons.remote_inference.enabled" to true.'
    )


def streaming_disabled() -> Forbidden:
    """Return the error for `_predict/stream` while streaming is off, in ML Commons' words."""
    return Forbidden(
        'Streaming is currently disabled. To enable it, update the setting "plugins.ml_commons.stream_enabled" to true.'
    )


def batch_inference_disabled() -> Forbidden:
    """Return the error for `_batch_predict` while batch jobs are off, in ML Commons' words."""
    return Forbidden(
        "Offline batch inference is currently disabled. To enable it, update the setting "
        '"plugins.ml_commons.offline_batch_inference_enabled" to true.'
    )
