"""The logger of models. It writes to standard error: a model's process has no output of its own."""

import json
import logging
import logging.config
import sys
from pathlib import Path
from typing import Any

from opensearch_ml_stream.runtimes.interface.context import model_name_var, model_version_var
from opensearch_ml_stream.runtimes.interface.settings import Settings

LoggerName = "mlserver"
logger = logging.getLogger(LoggerName)
_HANDLER = "stdout_stream_handler"


def get_logger() -> logging.Logger:
    """Get the logger."""
    return logger


class ModelLoggerFormatter(logging.Formatter):
    """Writes records with the name and version of the model, as text or, where the settings ask for it, as JSON."""

    def __init__(self, settings: Settings | None = None) -> None:
        super().__init__("%(asctime)s [%(name)s]%(model)s %(levelname)s - %(message)s")
        self.use_structured_logging = settings is not None and settings.use_structured_logging

    def format(self, record: logging.LogRecord) -> str:
        """Write a record."""
        name, version = model_name_var.get(""), model_version_var.get("")
        if self.use_structured_logging:
            return self._as_json(record, name, version)
        record.model = f"[{name}{':' if version else ''}{version}]" if name else ""
        return super().format(record)

    def _as_json(self, record: logging.LogRecord, name: str, version: str) -> str:
        fields = {"time": self.formatTime(record), "name": record.name, "level": record.levelname}
        fields["message"] = record.getMessage()
        fields |= {"model_name": name} if name else {}
        fields |= {"model_version": version} if name and version else {}
        if record.exc_info:
            fields["exception"] = self.formatException(record.exc_info)
        return json.dumps(fields, ensure_ascii=False)


def configure_logger(settings: Settings | None = None) -> logging.Logger:
    """Let the logger write, once, with the level and the format of the settings."""
    handler = next((handler for handler in logger.handlers if handler.get_name() == _HANDLER), None)
    if handler is None:
        handler = logging.StreamHandler(sys.stderr)
        handler.set_name(_HANDLER)
        logger.addHandler(handler)
    handler.setFormatter(ModelLoggerFormatter(settings))
    logger.setLevel(logging.DEBUG if settings and settings.debug else logging.INFO)
    if settings and settings.logging_settings:
        apply_logging_file(settings.logging_settings)
    return logger


def apply_logging_file(logging_settings: str | dict[str, Any]) -> None:
    """Configure logging by a dictionary, or by a file of JSON or of Python's own format."""
    if isinstance(logging_settings, dict):
        logging.config.dictConfig(logging_settings)
    elif not Path(logging_settings).is_file():
        logger.warning("Unable to parse logging_settings.")
    elif "json" in Path(logging_settings).suffix:
        logging.config.dictConfig(json.loads(Path(logging_settings).read_text("utf-8")))
    else:
        logging.config.fileConfig(logging_settings, disable_existing_loggers=False)
