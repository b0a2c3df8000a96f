"""What an operator can set. Static settings are read once at start; dynamic ones also live in the store."""

from dataclasses import dataclass

DEFAULT_TRUSTED_ENDPOINTS = (
    r"^https://runtime\.sagemaker\.[a-z0-9-]+\.amazonaws\.com/.*$",
    r"^https://api\.sagemaker\.[a-z0-9-]+\.amazonaws\.com/.*$",
    r"^https://api\.openai\.com/.*$",
    r"^https://api\.cohere\.ai/.*$",
    r"^https://bedrock-runtime\.[a-z0-9-]+\.amazonaws\.com/.*$",
)


@dataclass(frozen=True, slots=True)
class Settings:
    """One snapshot of all settings; a change makes a new one. Times in seconds, sizes in bytes."""

    host: str = "127.0.0.1"
    port: int = 9510
    workers: int = 1
    store: str = ""
    index_prefix: str = ""

    # plugins.ml_commons.*
    trusted_connector_endpoints_regex: tuple[str, ...] = DEFAULT_TRUSTED_ENDPOINTS
    trusted_connector_private_endpoints_regex: tuple[str, ...] = ()
    restricted_ip_patterns: tuple[str, ...] = ()
    private_ip_enabled: bool = False
    remote_inference_enabled: bool = True
    stream_enabled: bool = True
    model_auto_deploy_enable: bool = True
    offline_batch_inference_enabled: bool = True
    max_batch_inference_tasks: int = 100
    max_json_size: int = 100_000_000
    master_key_cache_ttl_minutes: int = 5

    # opensearch_ml_stream.*
    max_body_size: int = 10 * 1024 * 1024
    shutdown_grace_seconds: float = 30
    first_event_wait_seconds: float = 5
    heartbeat_seconds: float = 15
    external_credentials_enabled: bool = False


class LiveSettings:
    """The settings in force now. `current` is replaced as a whole when a dynamic setting changes."""

    def __init__(self, current: Settings) -> None:
        self.current = current
