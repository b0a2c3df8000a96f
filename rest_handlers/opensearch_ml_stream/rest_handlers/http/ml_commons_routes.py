"""The routes of ML Commons that are not here, and the sentence that says so."""

import re

from opensearch_ml_stream.rest_handlers.base_path import BASE_PATH

ONLY_THERE = {
    "agents": r"agents(?:/.*)?",
    "conversation memories": r"memory(?:/.*)?",
    "memory containers": r"memory_containers(?:/.*)?",
    "tools": r"tools(?:/.*)?",
    "MCP servers": r"mcp(?:/.*)?",
    "batch ingestions": r"_batch_ingestion",
    "uploads of local models": r"models/(?:_register_meta|meta|[^/]+/(?:upload_)?chunk/[^/]+)",
    "templates of context management": r"context_management(?:/.*)?",
    "trainings": r"_train(?:_predict|AndPredict)?(?:/.*)?",
    "executions of functions and tools": r"_execute(?:/.*)?",
    "insights of indices": r"insights/.*|index_insight_config",
}
_PATTERNS = {what: re.compile(f"{re.escape(BASE_PATH)}/(?:{pattern})/?") for what, pattern in ONLY_THERE.items()}


def only_in_ml_commons(path: str) -> str | None:
    """Return the sentence for a path that ML Commons alone has, None for any other."""
    for what, pattern in _PATTERNS.items():
        if pattern.fullmatch(path):
            return f"ML Commons has {what}, the sidecar does not; with --pass-through such requests go to the cluster"
    return None
