"""Settings: what an operator can set. Static ones are read once at start, dynamic ones are also kept in the store."""

from dataclasses import dataclass

from opensearch_ml_stream.connectors.predict.batch_job import RemoteJobRules

_JOBS = RemoteJobRules()

# The hosts that ML Commons trusts, and those of the other blueprints; where a host serves more than models, or is the
# customer's own, only the paths of its models. A host name is spelt [a-z0-9-] because nothing
# else may stand between two dots. See `endpoint_patterns` for how a pattern is matched.
DEFAULT_TRUSTED_ENDPOINTS = (
    r"^https://runtime\.sagemaker\.[a-z0-9-]+\.amazonaws\.com(\.cn)?/.*$",
    r"^https://api\.sagemaker\.[a-z0-9-]+\.amazonaws\.com(\.cn)?/.*$",
    r"^https://bedrock-runtime\.[a-z0-9-]+\.amazonaws\.com(\.cn)?/.*$",
    r"^https://bedrock-agent-runtime\.[a-z0-9-]+\.amazonaws\.com(\.cn)?/.*$",
    r"^https://bedrock\.[a-z0-9-]+\.amazonaws\.com(\.cn)?/.*$",
    r"^https://textract\.[a-z0-9-]+\.amazonaws\.com(\.cn)?/?$",
    r"^https://comprehend\.[a-z0-9-]+\.amazonaws\.com(\.cn)?/?$",
    r"^https://rekognition\.[a-z0-9-]+\.amazonaws\.com(\.cn)?/?$",
    r"^https://api\.openai\.com/.*$",
    r"^https://[a-z0-9-]+\.openai\.azure\.com/.*$",
    r"^https://[a-z0-9-]+\.services\.ai\.azure\.com/.*$",
    r"^https://api\.anthropic\.com/.*$",
    r"^https://api\.cohere\.(ai|com)/.*$",
    r"^https://api\.deepseek\.com/.*$",
    r"^https://api\.mistral\.ai/.*$",
    r"^https://generativelanguage\.googleapis\.com/.*$",
    r"^https://([a-z0-9-]+-)?aiplatform\.googleapis\.com/.*$",
    r"^https://openrouter\.ai/.*$",
    r"^https://router\.huggingface\.co/.*$",
    r"^https://api\.groq\.com/.*$",
    r"^https://api\.x\.ai/.*$",
    r"^https://api\.perplexity\.ai/.*$",
    r"^https://api\.fireworks\.ai/.*$",
    r"^https://api\.together\.(xyz|ai)/.*$",
    r"^https://dashscope(-intl|-us)?\.aliyuncs\.com/.*$",
    r"^https://[a-z0-9-]+\.ml\.cloud\.ibm\.com/.*$",
    r"^https://[a-z0-9-]+\.cloud\.databricks\.com/serving-endpoints/.*$",
    r"^https://adb-[0-9]+\.[0-9]+\.azuredatabricks\.net/serving-endpoints/.*$",
    r"^https://[0-9]+\.[0-9]+\.gcp\.databricks\.com/serving-endpoints/.*$",
    r"^https://api\.cloudflare\.com/client/v4/accounts/[a-z0-9]+/ai/.*$",
)


@dataclass(frozen=True, slots=True)
class Settings:
    """One snapshot of all settings; a change makes a new one. Times in seconds, sizes in bytes."""

    host: str = "127.0.0.1"
    port: int = 9510
    grpc_port: int | None = None
    workers: int = 1
    store: str = ""
    index_prefix: str = ""
    store_timeout_seconds: float = 4.5  # below `first_event_wait_seconds`: a stream that fails is a 503 then

    # plugins.ml_commons.*
    trusted_connector_endpoints_regex: tuple[str, ...] = DEFAULT_TRUSTED_ENDPOINTS
    trusted_connector_private_endpoints_regex: tuple[str, ...] = ()
    restricted_ip_patterns: tuple[str, ...] = ()
    private_ip_enabled: bool = False
    remote_inference_enabled: bool = True
    stream_enabled: bool = True
    model_auto_deploy_enable: bool = True
    safe_delete_model: bool = False
    connector_access_control_enabled: bool = False
    model_access_control_enabled: bool = False
    multi_tenancy_enabled: bool = False
    offline_batch_inference_enabled: bool = True
    max_batch_inference_tasks: int = 100
    controller_enabled: bool = True
    max_json_size: int = 100_000_000
    master_key_cache_ttl_minutes: int = 5
    remote_job_status_field: tuple[str, ...] = _JOBS.status_field
    remote_job_status_completed: str = _JOBS.completed
    remote_job_status_cancelled: str = _JOBS.cancelled
    remote_job_status_cancelling: str = _JOBS.cancelling
    remote_job_status_expired: str = _JOBS.expired
    remote_job_status_failed: str = _JOBS.failed

    # opensearch_ml_stream.*
    pass_through: bool = False
    max_body_size: int = 10 * 1024 * 1024
    max_total_body_size: int = 256 * 1024 * 1024
    request_timeout_seconds: float = 300
    max_connections: int = 10_000
    max_streams: int = 5_000
    max_streams_per_server: int = 0
    max_streams_per_user: int = 0
    stream_queue_seconds: float = 2
    stream_queue_size: int = 100
    shutdown_grace_seconds: float = 30
    first_event_wait_seconds: float = 5
    heartbeat_seconds: float = 15
    circuit_breaker_failures: int = 10
    circuit_breaker_seconds: float = 5
    security: str = "auto"
    role_permissions: tuple[tuple[str, tuple[str, ...]], ...] = ()
    proxy_auth_trusted_addresses: tuple[str, ...] = ()
    proxy_auth_user_header: str = "x-proxy-user"
    proxy_auth_roles_header: str = ""
    external_credentials_enabled: bool = False
    upstream: str = "native"
    cors_origins: tuple[str, ...] = ()
    allowed_hosts: tuple[str, ...] = ()
    grpc_stream_response: str = "mlserver"
    grpc_compression: str = "none"
    guardrail_held_characters: int = 256
    v2_gzip: bool = True
    generate_stream_model: str = ""
    playground: bool = True
    models: str = ""
    models_watch: bool = False
    runtime_queue_size: int = 100
    access_log: bool = False
    log_level: str = "info"
    log_format: str = "text"
    tls_certificate: str = ""
    tls_key: str = ""
    tls_key_password: str = ""
    tls_client_certificates: str = "none"
    tls_client_authorities: str = ""


class LiveSettings:
    """The current settings. `current` is replaced as a whole when a dynamic setting changes.

    `at_start` holds the values of file, environment and command line, `of_cluster` those and over them what was changed
    in the cluster of the store: to these a dynamic setting is reset.
    """

    def __init__(self, at_start: Settings) -> None:
        self.at_start = at_start
        self.of_cluster = at_start
        self.current = at_start
