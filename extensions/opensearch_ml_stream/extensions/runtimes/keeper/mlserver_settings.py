"""MLServer's settings of a server: `settings.json` and MLSERVER_... variables."""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from opensearch_ml_stream.extensions.runtimes.keeper.model_folders import json_value

SERVER_SETTINGS_FILE = "settings.json"
_PREFIX = "MLSERVER_"
_MODEL_PREFIX = "MLSERVER_MODEL_"
_OF_REPOSITORIES = "MLSERVER_MODEL_REPOSITORY_"  # of the server, although they begin like those of models

_NOT_NEEDED = {
    "parallel_workers": "each model has processes of its own: parameters.extra.processes",
    "parallel_workers_timeout": "opensearch_ml_stream.shutdown_grace_seconds",
    "gzip_enabled": "streams and gzip go together: opensearch_ml_stream.v2.gzip",
    "host": "--host",
    "http_port": "--port",
    "grpc_port": "--grpc-port",
    "grpc_max_message_length": "opensearch_ml_stream.max_body_size",
    "root_path": "a proxy's",
    "cors_settings": "opensearch_ml_stream.cors_origins",
    "metrics_endpoint": "GET /metrics",
    "metrics_port": "GET /metrics",
    "metrics_dir": "GET /metrics",
    "metrics_rest_server_prefix": "GET /metrics",
    "logging_settings": "opensearch_ml_stream.log_level",
    "use_structured_logging": "opensearch_ml_stream.log_format",
    "debug": "opensearch_ml_stream.log_level",
    "model_repository_root": "--models",
    "model_repository_implementation": "--models",
    "model_repository_implementation_args": "--models",
    "server_name": "GET /v2",
    "server_version": "GET /v2",
    "extensions": "GET /v2",
    "kafka_enabled": "there is no Kafka here",
    "kafka_servers": "there is no Kafka here",
    "kafka_topic_input": "there is no Kafka here",
    "kafka_topic_output": "there is no Kafka here",
    "tracing_server": "there is no tracing here",
    "cache_enabled": "there is no cache of responses here",
    "cache_size": "there is no cache of responses here",
}


def read_server_settings(directory: Path, environment: Mapping[str, str] = os.environ) -> tuple[dict[str, Any], str]:
    """Return the settings, in which the file overrides the environment, and what is wrong with the file."""
    settings = {
        name.removeprefix(_PREFIX).lower(): json_value(text)
        for name, text in sorted(environment.items())
        if name.startswith(_PREFIX) and (not name.startswith(_MODEL_PREFIX) or name.startswith(_OF_REPOSITORIES))
    }
    file = directory / SERVER_SETTINGS_FILE
    try:
        of_file = json.loads(file.read_text("utf-8"))
    except FileNotFoundError:
        return settings, ""
    except OSError as error:
        return settings, f"{file} cannot be read: {error.strerror}; it is ignored"
    except (ValueError, RecursionError) as error:
        return settings, f"{file} is not JSON ({error}); it is ignored"
    if not isinstance(of_file, dict):
        return settings, f"{file} must hold a JSON object; it is ignored"
    return {**settings, **of_file}, ""


def not_needed(settings: Mapping[str, Any]) -> str:
    """Return a line with the settings that are not needed here, and what replaces each; "" if there are none."""
    names = [name for name in settings if name in _NOT_NEEDED]
    if not names:
        return ""
    return "settings of MLServer that are not needed here: " + ", ".join(
        f"{name} ({_NOT_NEEDED[name]})" for name in names
    )
