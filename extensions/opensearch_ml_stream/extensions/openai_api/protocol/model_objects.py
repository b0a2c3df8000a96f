"""Models as OpenAI's API lists them."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

OWNER = "opensearch-ml-stream"


def model_object(id: str, source: Mapping[str, Any]) -> dict[str, Any]:
    """Return the object of a stored model, under the name or the id by which it is asked for."""
    created = source.get("created_time")
    return {
        "id": id,
        "object": "model",
        "created": created // 1000 if isinstance(created, int) else 0,
        "owned_by": OWNER,
    }


def model_list(models: Sequence[tuple[str, Mapping[str, Any]]]) -> dict[str, Any]:
    """Return the list of models with these ids: each by its name, or by its id where several have the name."""
    names = Counter(source.get("name") for _, source in models)
    data = [
        model_object(name if (name := source.get("name")) and names[name] == 1 else model_id, source)
        for model_id, source in models
    ]
    return {"object": "list", "data": data}
