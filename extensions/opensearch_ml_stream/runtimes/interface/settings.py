"""Settings of a model and of a server, as MLServer's files and environment have them."""

import copy
import importlib
import inspect
import json
import os
import sys
import types
import typing
import uuid
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, ClassVar

from opensearch_ml_stream.runtimes.interface import json_bytes
from opensearch_ml_stream.runtimes.interface.types import MetadataTensor
from opensearch_ml_stream.runtimes.interface.types.base import BaseModel, Field

__version__ = "1.7.1"  # of the MLServer whose interface this is

ENV_PREFIX_SETTINGS = "MLSERVER_"
ENV_PREFIX_MODEL_SETTINGS = "MLSERVER_MODEL_"
DEFAULT_PARALLEL_WORKERS = 1
DEFAULT_ENVIRONMENTS_DIR = os.path.join(os.getcwd(), ".envs")
DEFAULT_METRICS_DIR = os.path.join(os.getcwd(), ".metrics")


def each(default: Any) -> Any:
    """Make a list or a dictionary a field's default, of which each record gets a copy."""
    return default


class BaseSettings(BaseModel):
    """A record whose fields may stand in the environment too, under `environment_prefix` and their name, in any case.

    Lists, dictionaries and records stand there as JSON. Defaults that can change are each record's own.
    """

    __slots__ = ("_defaults",)
    _defaults: frozenset[str]
    environment_prefix: ClassVar[str] = ""

    def __init__(self, /, **values: Any) -> None:
        object.__setattr__(self, "_defaults", frozenset[str]())
        cls = type(self)
        for name, field in cls.model_fields.items():
            if field.alias != name:
                values.pop(name, None)
                if field.alias in values:
                    values[name] = values.pop(field.alias)
        super().__init__(**{**_from_environment(cls, values), **values})
        fields = cls.model_fields.items()
        fresh = {name: field.default for name, field in fields if isinstance(field.default, list | dict)}
        fresh = {name: copy.deepcopy(default) for name, default in fresh.items() if name not in self.__dict__}
        self.__dict__.update(fresh)
        object.__setattr__(self, "_defaults", frozenset(fresh))

    def __setattr__(self, name: str, value: Any) -> None:
        super().__setattr__(name, value)
        object.__setattr__(self, "_defaults", self._defaults - {name})

    def _names_given(self) -> Iterable[str]:
        return [name for name in self.__dict__ if name not in self._defaults]

    def dict(
        self, *, by_alias: bool = True, exclude_unset: bool = True, exclude_none: bool = True, **kwargs: Any
    ) -> Any:
        """Make a dictionary of what was given, as a settings file has it."""
        return self.model_dump(exclude_unset, exclude_none, by_alias=by_alias, **kwargs)

    def json(
        self, *, by_alias: bool = True, exclude_unset: bool = True, exclude_none: bool = True, **kwargs: Any
    ) -> str:
        """Make JSON of what was given, as a settings file has it."""
        return self.model_dump_json(exclude_unset, exclude_none, by_alias=by_alias, **kwargs)

    def model_dump(self, exclude_unset: bool = False, exclude_none: bool = False, **kwargs: Any) -> Any:
        """Make a dictionary of all fields."""
        return super().model_dump(exclude_unset, exclude_none, **kwargs)

    def model_dump_json(self, exclude_unset: bool = False, exclude_none: bool = False, **kwargs: Any) -> str:
        """Make JSON of all fields."""
        return super().model_dump_json(exclude_unset, exclude_none, **kwargs)


def _from_environment(cls: type[BaseSettings], given: dict[str, Any]) -> dict[str, Any]:
    prefix = cls.environment_prefix.lower()
    there = {name.lower(): text for name, text in os.environ.items() if name.lower().startswith(prefix)}
    found: dict[str, Any] = {}
    for name, field in cls.model_fields.items():
        text = there.get(prefix + field.alias.lower())
        if text is not None and name not in given:
            found[name] = _value(field, text)
    return found


def _value(field: Field, text: str) -> Any:
    """Read JSON where the field holds more than text or a number; what is none stays text, for the error to show."""
    union = typing.get_origin(field.annotation) in (types.UnionType, typing.Union)
    hints = typing.get_args(field.annotation) if union else (field.annotation,)
    if all(hint in (str, int, float, bool, type(None)) for hint in hints):
        return text
    try:
        return json.loads(text)
    except ValueError:
        return text


class CORSSettings(BaseSettings):
    """Which other sites' pages may call MLServer; not used here."""

    environment_prefix: ClassVar[str] = ENV_PREFIX_SETTINGS

    allow_origins: list[str] | None = each([])
    allow_origin_regex: str | None = None
    allow_credentials: bool | None = False
    allow_methods: list[str] | None = each(["GET"])
    allow_headers: list[str] | None = each([])
    expose_headers: list[str] | None = each([])
    max_age: int | None = 600


class Settings(BaseSettings):
    """MLServer's settings of a server; here they are read, and mostly not needed."""

    environment_prefix: ClassVar[str] = ENV_PREFIX_SETTINGS

    debug: bool = True
    parallel_workers: int = DEFAULT_PARALLEL_WORKERS
    parallel_workers_timeout: int = 5
    environments_dir: str = DEFAULT_ENVIRONMENTS_DIR
    model_repository_implementation: str | None = None
    model_repository_root: str = "."
    model_repository_implementation_args: dict[str, Any] = each({})
    load_models_at_startup: bool = True
    server_name: str = "mlserver"
    server_version: str = __version__
    extensions: list[str] = each([])
    host: str = "0.0.0.0"
    http_port: int = 8080
    root_path: str = ""
    grpc_port: int = 8081
    grpc_max_message_length: int | None = None
    cors_settings: CORSSettings | None = None
    metrics_endpoint: str | None = "/metrics"
    metrics_port: int = 8082
    metrics_rest_server_prefix: str = "rest_server"
    metrics_dir: str = DEFAULT_METRICS_DIR
    use_structured_logging: bool = False
    logging_settings: str | dict[str, Any] | None = None
    kafka_enabled: bool = False
    kafka_servers: str = "localhost:9092"
    kafka_topic_input: str = "mlserver-input"
    kafka_topic_output: str = "mlserver-output"
    tracing_server: str | None = None
    cache_enabled: bool = False
    cache_size: int = 100
    gzip_enabled: bool = True


class ModelParameters(BaseSettings, extra=True):
    """Settings of one instance of a model; others than these may be given and are attributes too."""

    environment_prefix: ClassVar[str] = ENV_PREFIX_MODEL_SETTINGS

    uri: str | None = None
    version: str | None = None
    environment_path: str | None = None
    environment_tarball: str | None = None
    inference_pool_gid: str | None = None
    autogenerate_inference_pool_gid: bool = False
    format: str | None = None
    content_type: str | None = None
    extra: dict[str, Any] | None = each({})

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any: ...

    def __init__(self, /, **values: Any) -> None:
        super().__init__(**values)
        if self.autogenerate_inference_pool_gid and self.inference_pool_gid is None:
            self.inference_pool_gid = str(uuid.uuid4())


class ModelSettings(BaseSettings):
    """Settings of a model: `implementation` is its class, in the settings the class's dotted name.

    `_source` is the file they come from; its folder is where the class is looked for too.
    """

    environment_prefix: ClassVar[str] = ENV_PREFIX_MODEL_SETTINGS
    _aliases: ClassVar[dict[str, str]] = {"implementation_": "implementation"}

    _source: str | None = None
    implementation_: str
    name: str = ""
    platform: str = ""
    versions: list[str] = each([])
    inputs: list[MetadataTensor] = each([])
    outputs: list[MetadataTensor] = each([])
    parallel_workers: int | None = None
    warm_workers: bool = False
    max_batch_size: int = 0
    max_batch_time: float = 0.0
    parameters: ModelParameters | None = None
    cache_enabled: bool = False

    def __init__(self, /, **values: Any) -> None:
        if inspect.isclass(values.get("implementation")):
            values["implementation"] = _dotted_name(values["implementation"])
        super().__init__(**values)

    @classmethod
    def parse_file(cls, path: str | os.PathLike[str]) -> "ModelSettings":
        """Read a `model-settings.json`."""
        with open(path, "rb") as file:
            return cls.model_validate({**json_bytes.loads(file.read()), "_source": os.fspath(path)})

    @classmethod
    def model_validate(cls, obj: Any, **_: Any) -> "ModelSettings":
        """Make settings of a mapping, whose `_source` is the file it comes from."""
        if isinstance(obj, cls):
            return obj
        settings = super().model_validate({name: obj[name] for name in obj if name != "_source"})
        settings._source = obj.get("_source")
        return settings

    @property
    def implementation(self) -> type[Any]:
        """The model's class, imported from its folder or from what is installed."""
        if not self._source:
            return _imported(self.implementation_)
        with _first_on_path(os.path.dirname(self._source)):
            return _imported(self.implementation_)

    @implementation.setter
    def implementation(self, value: type[Any]) -> None:
        self.implementation_ = _dotted_name(value)

    @property
    def version(self) -> str | None:
        """The model's version, which stands in its parameters."""
        return None if self.parameters is None else self.parameters.version


def _dotted_name(implementation: type[Any]) -> str:
    return f"{implementation.__module__}.{implementation.__name__}"


def _imported(name: str) -> type[Any]:
    """Import `module.Class` or `module:Class`; ImportError where there is none."""
    module, _, attribute = name.replace(":", ".").rpartition(".")
    if not module:
        raise ImportError(f"{name!r} names no class: module.Class is needed")
    implementation: type[Any] | None = getattr(importlib.import_module(module), attribute, None)
    if implementation is None:
        raise ImportError(f"Module {module!r} has no {attribute!r}", name=module)
    return implementation


@contextmanager
def _first_on_path(folder: str) -> Iterator[None]:
    sys.path.insert(0, folder)
    try:
        yield
    finally:
        if folder in sys.path:
            sys.path.remove(folder)
