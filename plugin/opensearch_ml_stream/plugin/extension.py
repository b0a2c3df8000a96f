"""The contract of extensions: what one declares, what it is opened with, and what it contributes.

An extension is a package with an entry point in the group `opensearch_ml_stream.extensions`, which names an
`Extension`:

    [project.entry-points."opensearch_ml_stream.extensions"]
    greeting = "acme_greeting.extension:EXTENSION"

`EXTENSION` is the declaration. It is always read, so that a configuration file with the extension's settings is valid
even if the extension is disabled; so it must import little. Of a disabled extension only the declaration is imported.
An enabled one is opened once in each worker: `open` names a function that takes the `Core` and returns an async context
manager of a `Contribution`, in which the extension's resources live. The extensions of this package are found in the
same way as those of others. Those of others are used only if the setting `opensearch_ml_stream.extensions` names them,
since they run in a process that holds credentials.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

if TYPE_CHECKING:  # every command imports this module, with the declarations
    from pathlib import Path

    from prometheus_client.registry import Collector
    from starlette.routing import BaseRoute
    from starlette.types import ASGIApp, Receive, Scope, Send

    from opensearch_ml_stream.connectors.model_options import ModelOption
    from opensearch_ml_stream.plugin.background_tasks import BackgroundTasks
    from opensearch_ml_stream.plugin.clock import Clock
    from opensearch_ml_stream.plugin.connector_protocol import ConnectorProtocol, ModelAdditions
    from opensearch_ml_stream.plugin.metrics import Metrics
    from opensearch_ml_stream.plugin.monitoring.statistics import Statistics
    from opensearch_ml_stream.plugin.observation import Observations, Observer
    from opensearch_ml_stream.plugin.predictions.client_conversations import Conversations
    from opensearch_ml_stream.plugin.predictions.model_cache import ModelCache
    from opensearch_ml_stream.plugin.predictions.predictor import Predictor
    from opensearch_ml_stream.plugin.predictions.provider_call import ProviderCalls
    from opensearch_ml_stream.plugin.registry import Registry
    from opensearch_ml_stream.plugin.registry.deployment_state_store import DeploymentStateStore
    from opensearch_ml_stream.plugin.registry.document_access import VisibleDocuments
    from opensearch_ml_stream.plugin.settings import LiveSettings, Settings
    from opensearch_ml_stream.plugin.store import Store
    from opensearch_ml_stream.rest_handlers.base_path import Paths
    from opensearch_ml_stream.rest_handlers.callers import PassingGate
    from opensearch_ml_stream.rest_handlers.http.response_lifecycle import InFlightResponses
    from opensearch_ml_stream.rest_handlers.operation_description import OperationDescription
    from opensearch_ml_stream.rest_handlers.resource_endpoint import ParsedRequest

GROUP = "opensearch_ml_stream.extensions"

PLAIN_ERRORS = "opensearch_ml_stream.rest_handlers.http.responses:plain_error_body"
"""The `error_form` of model servers: `{"error": "<reason>"}`."""

BEFORE_THE_ROUTER, BEFORE_LOCAL_ROUTES, BEHIND_THE_ROUTER = -20, -10, 10

T = TypeVar("T")


def load(reference: str) -> Any:
    """Import the module of a reference `package.module:name`, and return what it names."""
    module, _, name = reference.partition(":")
    return getattr(import_module(module), name)


# What an extension declares.


@dataclass(frozen=True, slots=True)
class ServeOption:
    """An option of `serve` that sets a setting, such as `--models DIR`. A flag takes no value and sets true."""

    name: str
    setting: str
    help: str
    metavar: str = ""
    is_flag: bool = False


@dataclass(frozen=True, slots=True)
class Command:
    """A command of the program. `reference` names its function or a Typer app, and is loaded when the command runs.

    `help` is its line in the list of commands and the first line of its own help.
    """

    name: str
    reference: str
    help: str
    takes_model_id: bool = False  # which may begin with a dash


@dataclass(frozen=True, slots=True)
class ServerProcess:
    """A process that a server runs once, beside its workers; it is watched and replaced as they are.

    Both references name functions. `prepare(settings, folder)` is called before any process starts; it raises
    InvalidRequest if the settings are wrong, and returns whether the process is needed. `run(settings, folder, paths)`
    returns an async context manager of an object with `drain(seconds)`, and `kill()` for a second signal. All processes
    of a server share the `folder`, which is removed at its end. The process is told to stop when all workers have
    ended. If it `has_tasks`, `run` gets the process's BackgroundTasks as its last argument.
    """

    title: str
    prepare: str
    run: str
    has_tasks: bool = False


def always(settings: Settings) -> bool:
    """Enable an extension whatever the settings are."""
    return True


@dataclass(frozen=True, slots=True)
class Extension:
    """The declaration of an extension. References are `package.module:name`; they are loaded only if it is enabled.

    `open` names a function `(Core) -> AbstractAsyncContextManager[Contribution]`; "" if there is nothing to open.
    `check` names a function of the Settings, which raises InvalidRequest before the server starts if they are wrong.
    `services` name functions `(Core) -> GrpcService`, called in each worker if the gRPC port is open. `providers` name
    Providers.

    `settings` is a frozen dataclass of `setting(...)` fields; `core.settings.of(ITS_CLASS)` returns their values.
    `requires` names extensions that are opened before it, whose `face` it may import: the module that an extension
    offers to others, "" for none. `model_options` are members that it adds to a model's `_sidecar`. `paths` are the
    prefixes of its routes and handlers beside `/_plugins/_ml`; `error_form` names a function `(MLStreamError) -> bytes`
    that makes the body of errors there, such as PLAIN_ERRORS; "" for OpenSearch's form.
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
    """The use cases of one worker, which an extension is opened with.

    All processes of the server share the `folder`. `paths` are the prefixes of the server's routes, `additions` what
    all extensions add to models, `faces` the objects of the extensions that this one requires. `background` starts
    tasks that run beside requests.
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
        """Return the object of that type that a required extension offers."""
        face: T = self.faces[kind]
        return face


# What it contributes.


@dataclass(frozen=True, slots=True)
class Handler:
    """An ASGI application around the next one. With an `order` below 0 it is called before the router, else after it.

    One after the router gets requests for which there is no route. `wrap` takes the next application and returns this.
    """

    order: int
    wrap: Callable[[ASGIApp], ASGIApp]


class OtherServer(Protocol):
    """A server behind this one, which gets the requests that this one has no route for. There is at most one."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request for which there is no route here."""
        ...

    async def takes(self, scope: Scope, receive: Receive, send: Send, model_id: str) -> bool:
        """Handle a prediction if its model is the other server's; return whether it is."""
        ...

    async def add_to(self, own: Mapping[str, Any], request: ParsedRequest) -> Mapping[str, Any]:
        """Return this server's statistics or profile with the other's merged in."""
        ...


@dataclass(frozen=True, slots=True)
class Contribution:
    """What an extension adds to a worker; all of it is optional.

    `operations` describe the requests that `handlers` answer, for OpenAPI. `page` is the path to which a browser is
    sent that requests `/`. `protocols` call the models that the extension runs itself. `observers` are told of
    predictions. `collectors` add to the metrics, `profiles` to what `/profile` says of models, by their ids.
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
