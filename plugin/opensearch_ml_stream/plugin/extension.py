"""The contract of extensions: what one declares, what it is opened with, and what it contributes.

A capability beside the core is one package with an entry point in the group `opensearch_ml_stream.extensions`, which
names an `Extension`:

    [project.entry-points."opensearch_ml_stream.extensions"]
    greeting = "acme_greeting.extension:EXTENSION"

`EXTENSION` is the declaration: light to import, and always read, so that a configuration file with the extension's
settings is valid whether it is on or off. What is off is not imported beyond it. What is on is opened once in each
worker: `open` names a function that takes the `Core` and returns an async context manager of a `Contribution`. The
resources of an extension live in that block. Ours come in the same way as anybody's; those of other packages are used
only where the setting `opensearch_ml_stream.extensions` names them, since they run beside credentials.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

if TYPE_CHECKING:  # the declaration alone is read by every command
    from pathlib import Path

    from prometheus_client.registry import Collector
    from starlette.routing import BaseRoute
    from starlette.types import ASGIApp, Receive, Scope, Send

    from opensearch_ml_stream.connectors.model_options import ModelOption
    from opensearch_ml_stream.plugin.background_tasks import BackgroundTasks
    from opensearch_ml_stream.plugin.clock import Clock
    from opensearch_ml_stream.plugin.connector_protocol import ConnectorProtocol, ModelAdditions
    from opensearch_ml_stream.plugin.metrics import Metrics
    from opensearch_ml_stream.plugin.observation import Observations, Observer
    from opensearch_ml_stream.plugin.predictions.client_conversations import Conversations
    from opensearch_ml_stream.plugin.predictions.model_cache import ModelCache
    from opensearch_ml_stream.plugin.predictions.predictor import Predictor
    from opensearch_ml_stream.plugin.predictions.provider_call import ProviderCalls
    from opensearch_ml_stream.plugin.registry import Registry
    from opensearch_ml_stream.plugin.registry.deployment_state_store import DeploymentStateStore
    from opensearch_ml_stream.plugin.registry.visible_documents import VisibleDocuments
    from opensearch_ml_stream.plugin.settings import LiveSettings, Settings
    from opensearch_ml_stream.plugin.statistics.request_statistics import Statistics
    from opensearch_ml_stream.plugin.store import Store
    from opensearch_ml_stream.rest_handlers.base_path import Paths
    from opensearch_ml_stream.rest_handlers.callers import PassingGate
    from opensearch_ml_stream.rest_handlers.http.response_lifecycle import InFlightResponses
    from opensearch_ml_stream.rest_handlers.openapi.description import OperationDescription
    from opensearch_ml_stream.rest_handlers.resource_endpoint import ParsedRequest

GROUP = "opensearch_ml_stream.extensions"

PLAIN_ERRORS = "opensearch_ml_stream.rest_handlers.http.responses:plain_error_body"
"""Refers to errors as model servers have them, `{"error": "<reason>"}`."""

BEFORE_THE_ROUTER, BEFORE_LOCAL_ROUTES, BEHIND_THE_ROUTER = -20, -10, 10

T = TypeVar("T")


def load(reference: str) -> Any:
    """Return what a reference `package.module:name` names; its module is imported first."""
    module, _, name = reference.partition(":")
    return getattr(import_module(module), name)


# What an extension declares.


@dataclass(frozen=True, slots=True)
class ServeOption:
    """An option of `serve` that sets a setting, such as `--models DIR`; a flag, which takes no value, sets true."""

    name: str
    setting: str
    help: str
    metavar: str = ""
    is_flag: bool = False


@dataclass(frozen=True, slots=True)
class Command:
    """A command of the program. `reference` names its function, or a Typer of commands, and is loaded when called.

    `help` is its line in the list of commands, the first of its own help.
    """

    name: str
    reference: str
    help: str
    takes_model_id: bool = False  # which may begin with a dash


@dataclass(frozen=True, slots=True)
class ServerProcess:
    """A process that runs once for a server, beside its workers, watched and replaced as they are.

    Both references are functions. `prepare(settings, folder)` is called before any process starts; it raises
    InvalidRequest if the settings are wrong, and returns whether the process is needed. `run(settings, folder, paths)`
    returns an async context manager; what it yields has `drain(seconds)`, and `kill()` for a second signal. `folder` is
    shared by all processes of a server, and removed with it. The process is told to stop when all workers have ended.
    Where it `has_tasks`, `run` gets the BackgroundTasks that start and watch them, too, as its last argument.
    """

    title: str
    prepare: str
    run: str
    has_tasks: bool = False


def always(settings: Settings) -> bool:
    """Say that an extension is on, whatever the settings."""
    return True


@dataclass(frozen=True, slots=True)
class Extension:
    """The declaration of an extension. References are `package.module:name`, and loaded where it is on alone.

    `open` refers to `(Core) -> AbstractAsyncContextManager[Contribution]`, "" for nothing to open. `check` refers to
    what raises InvalidRequest before the server starts if the settings do not fit. `services` refer to
    `(Core) -> GrpcService`, called in each worker where the gRPC port is open. `providers` refer to Providers.

    `settings` is a frozen dataclass of `setting(...)` fields, whose values `core.settings.of(ITS_CLASS)` returns.
    `requires` names extensions that are opened before it, of which it may import the `face`: the module that an
    extension names for others, "" for none. `model_options` are members that it adds to a model's `_sidecar`. `paths`
    begin its routes and handlers beside `/_plugins/_ml`; `error_form` refers to what makes the body of errors there, a
    function `(MLStreamError) -> bytes`, such as PLAIN_ERRORS; "" for OpenSearch's.
    """

    name: str
    summary: str
    open: str = ""
    is_on: Callable[[Settings], bool] = always
    settings: type | None = None
    requires: tuple[str, ...] = ()
    face: str = ""
    model_options: Mapping[str, ModelOption] = field(default_factory=dict)
    serve_options: tuple[ServeOption, ...] = ()
    commands: tuple[Command, ...] = ()
    services: tuple[str, ...] = ()
    processes: tuple[ServerProcess, ...] = ()
    providers: tuple[str, ...] = ()
    check: str = ""
    paths: tuple[str, ...] = ()
    error_form: str = ""


# What it is opened with.


@dataclass(frozen=True, slots=True)
class Core:
    """The use cases of one worker, as an extension gets them.

    `folder` is shared by all processes of this server, `paths` says where its routes stand, `additions` is what
    all extensions add to models, `faces` holds what the extensions that it requires share. What is to go on beside
    requests is started by `background`, which watches it.
    """

    version: str
    live: LiveSettings
    paths: Paths
    clock: Clock
    folder: Path
    store: Store
    gate: PassingGate
    in_flight: InFlightResponses
    additions: ModelAdditions
    models: ModelCache
    calls: ProviderCalls
    predictions: Predictor
    conversations: Conversations
    registry: Registry
    states: DeploymentStateStore
    visible: VisibleDocuments
    observations: Observations
    metrics: Metrics
    statistics: Statistics
    background: BackgroundTasks
    faces: Mapping[type, Any] = field(default_factory=dict)

    @property
    def settings(self) -> Settings:
        """The settings as they are now."""
        return self.live.current

    def face(self, kind: type[T]) -> T:
        """Return what an extension that is required shares under that type."""
        face: T = self.faces[kind]
        return face


# What it contributes.


@dataclass(frozen=True, slots=True)
class Handler:
    """An ASGI application around the next one: with an `order` below 0 it stands before the router, else behind.

    One behind the router gets what no route has. `wrap` takes the next application and returns this one.
    """

    order: int
    wrap: Callable[[ASGIApp], ASGIApp]


class OtherServer(Protocol):
    """A server behind this one, which takes the requests that are not this one's. There is at most one."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request whose path or method nothing here has."""
        ...

    async def takes(self, scope: Scope, receive: Receive, send: Send, model_id: str) -> bool:
        """Handle a prediction of a model that runs there; return whether it does."""
        ...

    async def add_to(self, own: Mapping[str, Any], request: ParsedRequest) -> Mapping[str, Any]:
        """Return this server's statistics or profile with the other's merged in."""
        ...


@dataclass(frozen=True, slots=True)
class Contribution:
    """What an extension adds to a worker; all of it is optional.

    `operations` describe for OpenAPI what `handlers` take. `page` is where a browser that asks for `/` is sent.
    `protocols` call the models that the extension runs itself. `observers` are told of predictions. `collectors` add
    to the metrics, `profiles` to what `/profile` says of models, by their ids.
    """

    routes: Sequence[BaseRoute] = ()
    operations: Mapping[str, Mapping[str, OperationDescription]] = field(default_factory=dict)
    handlers: Sequence[Handler] = ()
    page: str = ""
    other_server: OtherServer | None = None
    protocols: Sequence[ConnectorProtocol] = ()
    observers: Sequence[Observer] = ()
    collectors: Sequence[Collector] = ()
    profiles: Callable[[], Mapping[str, Mapping[str, Any]]] = dict
    faces: Mapping[type, Any] = field(default_factory=dict)
    drain: Callable[[float], Coroutine[Any, Any, None]] | None = None
