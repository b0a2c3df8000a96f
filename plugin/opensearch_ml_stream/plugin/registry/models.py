"""Model use cases: register, get, update, delete, search, deploy, undeploy."""

import asyncio
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from opensearch_ml_stream.connectors.errors import (
    Conflict,
    Forbidden,
    InvalidRequest,
    MLStreamError,
    NotFound,
    Unavailable,
)
from opensearch_ml_stream.connectors.model_options import ModelOptions
from opensearch_ml_stream.connectors.predict.guardrails.configuration import read_guardrails
from opensearch_ml_stream.plugin.clock import Clock
from opensearch_ml_stream.plugin.registry import model_settings
from opensearch_ml_stream.plugin.registry.connector_documents import (
    changed_document,
    hidden_fields,
    missing_value_warnings,
    with_warnings,
)
from opensearch_ml_stream.plugin.registry.default_model_interfaces import default_interface
from opensearch_ml_stream.plugin.registry.deployment_state_store import is_deployed, is_deploying
from opensearch_ml_stream.plugin.registry.document_access import (
    NO_PRIVILEGE,
    ModelAccess,
    VisibleDocuments,
    asked_access,
)
from opensearch_ml_stream.plugin.registry.model_connectors import ModelConnectors
from opensearch_ml_stream.plugin.registry.model_deployment import ModelDeployment
from opensearch_ml_stream.plugin.registry.model_documents import (
    check_function,
    check_guardrails,
    chunk_count,
    local_model_fields,
    model_view,
    settable_fields,
)
from opensearch_ml_stream.plugin.registry.model_groups import ModelGroups
from opensearch_ml_stream.plugin.registry.search import search
from opensearch_ml_stream.plugin.registry.state_search import ShownStates
from opensearch_ml_stream.plugin.registry.stored_documents import (
    Json,
    existing,
    existing_model,
    id_of,
    merged,
    name_of,
    rewrite,
    strings_of,
)
from opensearch_ml_stream.plugin.registry.tasks import record_task
from opensearch_ml_stream.plugin.security.access_control import AskedAccess
from opensearch_ml_stream.plugin.settings import LiveSettings, remote_inference_disabled
from opensearch_ml_stream.plugin.store import Cluster, Document, Index, Store
from opensearch_ml_stream.rest_handlers.callers import Caller

DEPLOY_SECONDS = 5.0
LOOK_SECONDS = 0.05
# What ML Commons holds of a deployed model, and reads again at a PUT of its own.
_HELD = frozenset({"connector", "connector_id", "is_enabled", "guardrails", "interface", "rate_limiter"})
_PIPELINE_KINDS = ("ingest", "search")


@dataclass(frozen=True, slots=True)
class Models:
    """The model use cases, over the store."""

    store: Store
    live_settings: LiveSettings
    clock: Clock
    groups: ModelGroups
    deployment: ModelDeployment
    access: ModelAccess
    connectors: ModelConnectors
    visible: VisibleDocuments
    options: ModelOptions

    async def register(self, caller: Caller, body: Json, *, deploy: bool = False) -> Json:
        """Store a new model and its (finished) task; with `deploy` it is deployed before this returns.

        Without a `model_group_id` the model joins the group of its own name, created if there is none.
        """
        with self.deployment.count("register", None):
            response = await self._register(caller, body)
        if deploy:
            await self.deployment.deploy(response["model_id"])
        return response

    async def _register(self, caller: Caller, body: Json) -> Json:
        started = self.clock()
        if not self.live_settings.current.remote_inference_enabled:
            raise remote_inference_disabled()
        name = name_of(body, "model")
        check_function(body)
        asked = asked_access(body)
        self.access.groups.check_applies(caller, asked)
        fields = {**local_model_fields(body), **settable_fields(body)}
        await check_guardrails(fields.get("guardrails"))
        settings = await model_settings.changed_settings(self.store, None, body, self.options)
        connection, connector = await self.connectors.of_new(caller, body)
        if "interface" not in fields and (preset := _default_interface(connector)) is not None:
            fields["interface"] = preset
        group_id = id_of(body, "model_group_id")
        if group_id is not None:
            await self.groups.check_joinable(caller, group_id, asked)
        else:
            group_id = await self.groups.for_model(caller, name, fields.get("description"), asked)
        model_id = await self._create(name, group_id, {**fields, **connection, **caller.tenant_fields})
        await model_settings.put_settings(self.store, self.clock, model_id, settings)
        node = await self.deployment.states.prepare()  # what its first prediction is going to need, too
        fields = {"task_type": "REGISTER_MODEL", "model_id": model_id, "worker_node": [node], **caller.tenant_fields}
        task_id = await record_task(self.store, self.clock, started, fields)
        response = {"task_id": task_id, "status": "CREATED", "model_id": model_id}
        left = missing_value_warnings(body["connector"], connector) if "connector" in connection else []
        return with_warnings(response, [*left, *model_settings.unused_setting_warnings(settings, connector)])

    async def get(self, caller: Caller, model_id: str, *, dashboards: bool = False) -> Json:
        """Return the model without an inline connector's credentials; NotFound without it."""
        missing = NotFound(f"Failed to find model with the provided model id: {model_id}")
        document = await existing(self.store, Index.MODEL, model_id, missing)
        await self.access.check(caller, document.source)
        view = model_view(await self.deployment.states.view(model_id, document.source), dashboards=dashboards)
        settings = await model_settings.stored_settings(self.store, model_id)
        return {**view, model_settings.MEMBER: settings} if settings else view

    async def update(self, caller: Caller, model_id: str, body: Json) -> Json:
        """Change the model; Conflict while ML Commons is deploying it.

        Objects are merged field by field into the stored ones, as ML Commons does by OpenSearch's partial update.
        """
        missing = NotFound(f"Failed to find model to update with the provided model id: {model_id}")
        stored = (await existing(self.store, Index.MODEL, model_id, missing)).source
        await self.access.check(caller, stored, Forbidden(f"{NO_PRIVILEGE}, model ID {model_id}"))
        algorithm = stored.get("algorithm", "REMOTE")
        if algorithm != "REMOTE":
            raise Forbidden(f"The function category {algorithm} is not supported at this time.")
        if is_deploying(stored):
            raise Conflict("Model is deploying. Please wait for the model to complete deployment. model ID " + model_id)
        changes = settable_fields(body)
        if body.get("name") is not None:
            changes["name"] = name_of(body, "model")
        changes |= await self.connectors.changed_id(caller, stored, body)
        connector_changes = await self.connectors.inline_changes(stored, body)
        changes |= await self._group_change(caller, stored, body)
        sidecar = await model_settings.changed_settings(self.store, model_id, body, self.options)
        settings = self.live_settings.current
        before = stored
        changed_connector: Json | None = None
        guardrails = merged(stored, changes).get("guardrails")
        if "guardrails" in changes:  # those that are stored may be ones that only ML Commons can read
            await check_guardrails(guardrails)

        def change(document: Document) -> Json:
            nonlocal before, changed_connector
            before = document.source
            changed: dict[str, Any] = {**merged(document.source, changes), "last_updated_time": self.clock()}
            changed["model_id"] = model_id  # as ML Commons does, but not when it registers
            if "guardrails" in changes and changed.get("guardrails") != guardrails:  # another request was quicker
                read_guardrails(changed.get("guardrails"))
            if connector_changes is not None:
                changed_connector = changed_document(
                    document.source["connector"], connector_changes, settings, inline=True
                )
                changed["connector"] = changed_connector
            return changed

        written = await rewrite(self.store, Index.MODEL, model_id, change, missing)
        await model_settings.put_settings(self.store, self.clock, model_id, sidecar)
        fields = {*changes, *(["connector"] if connector_changes is not None else [])}
        await _reload_in_ml_commons(self.store, model_id, before, fields)
        warnings = missing_value_warnings(body["connector"], changed_connector) if changed_connector is not None else []
        if sidecar and (connector := await self.connectors.of_stored({**before, **changes})) is not None:
            warnings += model_settings.unused_setting_warnings(sidecar, changed_connector or connector)
        return with_warnings({} if written is None else written.response, warnings)

    async def delete(self, caller: Caller, model_id: str) -> Json:
        """Delete the model with its chunks, if it is one that ML Commons uploaded, its controller and its settings.

        InvalidRequest while it is deployed, Conflict if a safe deletion finds it in use.
        """
        document = await existing_model(self.store, model_id)
        await self.access.check(caller, document.source)
        source = await self.deployment.states.view(model_id, document.source)
        if is_deployed(source) or is_deploying(source):
            raise InvalidRequest(
                "Model cannot be deleted in deploying or deployed state. Try undeploy model first then delete",
                type="status_exception",
            )
        if self.live_settings.current.safe_delete_model and self.store.cluster is not None:
            await _refuse_if_used(self.store.cluster, model_id)
        with self.deployment.count("delete", model_id):
            await self.deployment.unload(model_id, source)
            response = (await self.store.delete(Index.MODEL, model_id)).response
            for number in range(chunk_count(source)):
                await self.store.delete(Index.MODEL, f"{model_id}_{number}")
        await self.deployment.states.forget(model_id)
        await self.store.delete(Index.CONTROLLER, model_id)
        await self.store.delete(Index.MODEL_SETTINGS, model_id)
        return response

    async def search(self, caller: Caller, body: Json, *, dashboards: bool = False) -> Json:
        """Search models; credentials of inline connectors are neither searched nor returned."""
        hidden = hidden_fields(dashboards=dashboards)
        visible = await self.visible.query(caller, Index.MODEL)
        view = self.deployment.states.view_all
        return await search(ShownStates(self.store), Index.MODEL, body, hidden, visible, view)

    async def deploy(self, caller: Caller, model_id: str, body: Json) -> Json:
        """Deploy the model; return its (finished) task. Nodes cannot be chosen."""
        if not self.live_settings.current.remote_inference_enabled:
            raise remote_inference_disabled()
        _check_no_nodes(body)
        if self.access.concerns(caller):
            await self.access.check(caller, (await existing_model(self.store, model_id)).source)
        task_id = await self.deployment.deploy(model_id)
        return {"task_id": task_id, "task_type": "DEPLOY_MODEL", "status": "COMPLETED"}

    async def undeploy(self, caller: Caller, model_id: str, body: Json) -> Json:
        """Undeploy the model, or those that the body names in its place; NotFound without it."""
        if strings_of(body, "model_ids"):
            return await self.undeploy_many(caller, body)
        _check_no_nodes(body)
        model = await existing_model(self.store, model_id)
        await self.access.check(caller, model.source, _cannot_undeploy(model_id))
        return await self.deployment.undeploy([model_id])

    async def undeploy_many(self, caller: Caller, body: Json) -> Json:
        """Undeploy the models that the body names in `model_ids`; NotFound if none of them exists."""
        model_ids = strings_of(body, "model_ids")
        if not model_ids:
            raise InvalidRequest("Must set specific model ids to undeploy")
        _check_no_nodes(body)
        query = {"query": {"ids": {"values": model_ids}}, "size": 1}
        if not (await self.store.search(Index.MODEL, query))["hits"]["hits"]:
            raise NotFound("Failed to find model")
        for model_id in model_ids if self.access.concerns(caller) else ():
            if (model := await self.store.get(Index.MODEL, model_id)) is not None:
                await self.access.check(caller, model.source, _cannot_undeploy(model_id))
        return await self.deployment.undeploy(model_ids)

    async def _create(self, name: str, group_id: str, fields: Json) -> str:
        missing = NotFound(f"Failed to find the model group with the provided model group id: {group_id}")
        version = await self.groups.next_version(group_id, missing)
        now = self.clock()
        document: dict[str, Any] = {
            "name": name,
            "algorithm": "REMOTE",
            "model_version": str(version),
            "model_group_id": group_id,
            "model_state": "REGISTERED",
            "created_time": now,
            "last_updated_time": now,
            "is_hidden": False,
            **fields,
        }
        return (await self.store.create(Index.MODEL, document)).id

    async def _group_change(self, caller: Caller, stored: Json, body: Json) -> Json:
        group_id = id_of(body, "model_group_id")
        if group_id is None or group_id == stored.get("model_group_id"):
            return {}
        missing = NotFound(
            "Failed to find the model group with the provided model group id in the update model input, "
            f"MODEL_GROUP_ID: {group_id}"
        )
        await self.groups.check_joinable(caller, group_id, AskedAccess(), _cannot_move(group_id))
        version = await self.groups.next_version(group_id, missing)
        return {"model_group_id": group_id, "model_version": str(version)}


def _default_interface(connector: Json) -> dict[str, str] | None:
    first: Json = next(iter(connector.get("actions") or ()), {})
    return default_interface(connector.get("parameters") or {}, first.get("post_process_function"))


def _check_no_nodes(body: Json) -> None:
    if strings_of(body, "node_ids"):
        raise InvalidRequest("Don't allow custom deployment plan")


def _cannot_undeploy(model_id: str) -> InvalidRequest:
    return InvalidRequest(f"No permission to undeploy model {model_id}")


def _cannot_move(group_id: str) -> Forbidden:
    return Forbidden(
        "User Doesn't have privilege to re-link this model to the target model group due to no access to the target "
        f"model group with model group ID {group_id}"
    )


async def _reload_in_ml_commons(store: Store, model_id: str, source: Json, written: Iterable[str]) -> None:
    """Undeploy and deploy the model in ML Commons, if it has it deployed and holds one of the fields `written`.

    `source` is the model as it was stored before. Unavailable if ML Commons does not do so: the change is stored, and
    in force in the sidecar alone.
    """
    if store.cluster is None or _HELD.isdisjoint(written) or not is_deployed(source):
        return
    try:
        if await store.cluster.undeploy(model_id) and await store.cluster.deploy(model_id):
            async with asyncio.timeout(DEPLOY_SECONDS):
                await _deployed_again(store, model_id, source)
    except (MLStreamError, TimeoutError) as error:
        why = error.reason if isinstance(error, MLStreamError) else f"It has not deployed it in {DEPLOY_SECONDS:g} s."
        raise Unavailable(
            "The model was changed here, but ML Commons on the cluster may still use it as it was; send the request "
            f"again, or undeploy it there. {why}"
        ) from None


async def _deployed_again(store: Store, model_id: str, before: Json) -> None:
    """Wait until the document shows that ML Commons has deployed the model again: it responds before it has."""
    while True:
        source = (await existing_model(store, model_id)).source
        if is_deployed(source) and source.get("last_deployed_time") != before.get("last_deployed_time"):
            return
        await asyncio.sleep(LOOK_SECONDS)


async def _refuse_if_used(cluster: Cluster, model_id: str) -> None:
    """Raise Conflict, as ML Commons does, if a pipeline or an agent of the cluster calls the model."""
    for kind in _PIPELINE_KINDS:
        pipelines = await cluster.pipelines(kind)
        if using := [name for name, pipeline in pipelines.items() if _names_model(pipeline, model_id)]:
            raise _still_used(using, f"{kind} pipelines", "the pipelines first:")
    if agents := await cluster.agents_using(model_id):
        raise _still_used(agents, "agents", "the agents first, all visible agents are:")


def _still_used(users: Iterable[str], kind: str, first: str) -> Conflict:
    names = sorted(users)
    return Conflict(
        f"{len(names)} {kind} are still using this model, please delete or update {first} [{', '.join(names)}]"
    )


def _names_model(configuration: Any, model_id: str) -> bool:
    """Whether a `model_id`, at any depth, is that of the model."""
    waiting = [configuration]
    while waiting:
        part = waiting.pop()
        if isinstance(part, Mapping):
            if part.get("model_id") == model_id:
                return True
            waiting.extend(part.values())
        elif isinstance(part, list):
            waiting.extend(part)
    return False
