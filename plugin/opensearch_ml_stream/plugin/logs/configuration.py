"""Sets up Python's logging for every process of the server."""

import logging
import sys

from opensearch_ml_stream.plugin.logs.flood_filter import FloodFilter
from opensearch_ml_stream.plugin.logs.line_format import JSONFormat, TextFormat
from opensearch_ml_stream.plugin.settings import Settings

LOGGER = "opensearch_ml_stream"
ACCESS_LOGGER = f"{LOGGER}.access"


def configure_logging(settings: Settings) -> None:
    """Log on standard error, at the level and in the format of the settings.

    Libraries log warnings and errors only: at lower levels some write whole requests, with what is secret in them.
    """
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JSONFormat() if settings.log_format == "json" else TextFormat())
    handler.addFilter(FloodFilter(unbounded=ACCESS_LOGGER))
    root = logging.getLogger()
    for other in root.handlers[:]:
        if type(other) is logging.StreamHandler:
            root.removeHandler(other)
    root.addHandler(handler)
    root.setLevel(logging.WARNING)
    logging.getLogger(LOGGER).setLevel(getattr(logging, settings.log_level.upper()))
    logging.getLogger(ACCESS_LOGGER).setLevel(logging.INFO)  # its own setting turns it on
    logging.getLogger("opensearch").setLevel(logging.ERROR)  # its errors are reported to the client
    logging.captureWarnings(capture=True)
