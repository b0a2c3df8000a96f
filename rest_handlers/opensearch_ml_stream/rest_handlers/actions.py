"""Actions: what callers need permission for.

The names are those of ML Commons' transport actions, so that a role that works there works here.
"""

ML_ACTIONS = "cluster:admin/opensearch/ml/"
"""How the names of ML Commons' actions begin: those that models, connectors and tasks are managed and called by."""

_ML = ML_ACTIONS

CONFIG_GET = _ML + "config/get"
CONNECTOR_CREATE = _ML + "create_connector"
CONNECTOR_DELETE = _ML + "connectors/delete"
CONNECTOR_GET = _ML + "connectors/get"
CONNECTOR_SEARCH = _ML + "connectors/search"
CONNECTOR_UPDATE = _ML + "connectors/update"
CONTROLLER_CREATE = _ML + "controllers/create"
CONTROLLER_DELETE = _ML + "controllers/delete"
CONTROLLER_GET = _ML + "controllers/get"
CONTROLLER_UPDATE = _ML + "controllers/update"
MODEL_DELETE = _ML + "models/delete"
MODEL_DEPLOY = _ML + "deploy_model"
MODEL_GET = _ML + "models/get"
MODEL_REGISTER = _ML + "register_model"
MODEL_SEARCH = _ML + "models/search"
MODEL_UNDEPLOY = _ML + "undeploy_models"
MODEL_UPDATE = _ML + "models/update"
MODEL_GROUP_DELETE = _ML + "model_groups/delete"
MODEL_GROUP_GET = _ML + "model_groups/get"
MODEL_GROUP_REGISTER = _ML + "register_model_group"
MODEL_GROUP_SEARCH = _ML + "model_groups/search"
MODEL_GROUP_UPDATE = _ML + "update_model_group"
PREDICT = _ML + "predict"
PREDICT_STREAM = _ML + "predict/stream"
PROFILE_GET = _ML + "profile/nodes"
STATS_GET = _ML + "stats/nodes"
TASK_CANCEL = _ML + "tasks/cancel"
TASK_DELETE = _ML + "tasks/delete"
TASK_GET = _ML + "tasks/get"
TASK_SEARCH = _ML + "tasks/search"
"""The actions of ML Commons' routes (its transport actions, 3.6.0)."""

SETTINGS_GET = "cluster:monitor/settings"
SETTINGS_UPDATE = "cluster:admin/settings/update"
METRICS_GET = "cluster:monitor/nodes/stats"
"""The actions of the sidecar's own routes: those that OpenSearch has for what is alike."""

PASS_THROUGH = "opensearch_ml_stream:pass_through"
"""What users and keys of the sidecar's own need for requests that go on to the cluster: one name, for all of them."""
