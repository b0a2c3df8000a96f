"""Where a model's files are, and helpers that runtimes import from `mlserver.utils`."""

import asyncio
import inspect
import os
import urllib.parse
import uuid
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

from opensearch_ml_stream.runtimes.interface.errors import InvalidModelURI
from opensearch_ml_stream.runtimes.interface.settings import ModelSettings
from opensearch_ml_stream.runtimes.interface.types import InferenceRequest, InferenceResponse, Parameters


async def get_model_uri(settings: ModelSettings, wellknown_filenames: Sequence[str] = ()) -> str:
    """Find a model's file, or its folder, by `parameters.uri`, which is relative to the folder of its settings.

    In a folder the first of the well-known names that is there is the file. A URI with another scheme than `file` is
    given back as it is. InvalidModelURI where there is none, or nothing lies there.
    """
    uri = settings.parameters.uri if settings.parameters else None
    if not uri:
        raise InvalidModelURI(settings.name)
    parts = urllib.parse.urlparse(uri, scheme="file")
    if parts.scheme != "file":
        return uri
    path = _existing(to_absolute_path(settings, parts.path), wellknown_filenames)
    if path is None:
        raise InvalidModelURI(settings.name, to_absolute_path(settings, parts.path))
    return path


def _existing(path: str, wellknown_filenames: Sequence[str]) -> str | None:
    if os.path.isdir(path):
        files = (os.path.join(path, name) for name in wellknown_filenames)
        return next(filter(os.path.isfile, files), path)
    return path if os.path.isfile(path) else None


def to_absolute_path(model_settings: ModelSettings, uri: str) -> str:
    """Join a path to the folder of the settings' file, if there is one."""
    source = getattr(model_settings, "_source", None)
    return uri if source is None else os.path.normpath(os.path.join(os.path.dirname(source), uri))


def get_wrapped_method(f: Callable[..., Any]) -> Callable[..., Any]:
    """Find the function that decorators wrap."""
    unwrapped: Callable[..., Any] = inspect.unwrap(f)
    return unwrapped


def generate_uuid() -> str:
    """Make an identifier."""
    return str(uuid.uuid4())


def insert_headers(inference_request: InferenceRequest, headers: dict[str, str]) -> InferenceRequest:
    """Put headers into a request's parameters, in place of those that are there."""
    if inference_request.parameters is None:
        inference_request.parameters = Parameters()
    inference_request.parameters.headers = headers
    return inference_request


def extract_headers(inference_response: InferenceResponse) -> dict[str, str] | None:
    """Take the headers out of a response's parameters."""
    parameters = inference_response.parameters
    if parameters is None or parameters.headers is None:
        return None
    headers, parameters.headers = parameters.headers, None
    return headers


def schedule_with_callback(coro: Coroutine[Any, Any, Any], cb: Callable[[asyncio.Task[Any]], object]) -> Any:
    """Start a task, and call `cb` at its end."""
    task = asyncio.create_task(coro)
    task.add_done_callback(cb)
    return task
