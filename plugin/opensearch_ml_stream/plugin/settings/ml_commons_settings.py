"""The settings `plugins.ml_commons.*`, which mean what they mean in ML Commons."""

from opensearch_ml_stream.plugin.settings.setting_metadata import Setting

_ML = "plugins.ml_commons."

ML_COMMONS_SETTINGS = (
    Setting(
        _ML + "trusted_connector_endpoints_regex",
        "trusted_connector_endpoints_regex",
        "endpoints",
        "URLs that connectors may call",
        dynamic=True,
    ),
    Setting(
        _ML + "trusted_connector_private_endpoints_regex",
        "trusted_connector_private_endpoints_regex",
        "endpoints",
        "URLs with private addresses that connectors may call (all, if empty)",
        dynamic=True,
    ),
    Setting(
        _ML + "connector.private_ip_enabled",
        "private_ip_enabled",
        "boolean",
        "Allow providers on private and loopback addresses",
        dynamic=True,
    ),
    Setting(
        _ML + "connector.restricted_ip_patterns",
        "restricted_ip_patterns",
        "regexes",
        "Addresses that no connector may call",
    ),
    Setting(
        _ML + "remote_inference.enabled", "remote_inference_enabled", "boolean", "Allow remote models", dynamic=True
    ),
    Setting(_ML + "stream_enabled", "stream_enabled", "boolean", "Allow _predict/stream", dynamic=True),
    Setting(
        _ML + "model_auto_deploy.enable",
        "model_auto_deploy_enable",
        "boolean",
        "Deploy a model at its first prediction",
        dynamic=True,
    ),
    Setting(
        _ML + "safe_delete_model",
        "safe_delete_model",
        "boolean",
        "Refuse to delete a model that a pipeline or an agent of the cluster uses",
        dynamic=True,
    ),
    Setting(
        _ML + "connector_access_control_enabled",
        "connector_access_control_enabled",
        "boolean",
        "Connectors have an owner and an access mode, where callers log in",
        dynamic=True,
    ),
    Setting(
        _ML + "model_access_control_enabled",
        "model_access_control_enabled",
        "boolean",
        "Model groups and their models have an owner and an access mode, where callers log in",
        dynamic=True,
    ),
    Setting(
        _ML + "multi_tenancy_enabled",
        "multi_tenancy_enabled",
        "boolean",
        "Keep apart what belongs to the tenants that the header X-Tenant-Id names, which every request then needs",
    ),
    Setting(
        _ML + "offline_batch_inference_enabled",
        "offline_batch_inference_enabled",
        "boolean",
        "Allow _batch_predict",
        dynamic=True,
    ),
    Setting(
        _ML + "max_batch_inference_tasks",
        "max_batch_inference_tasks",
        "integer",
        "Batch jobs that may be open at once",
        dynamic=True,
        minimum=0,
    ),
    Setting(
        _ML + "controller_enabled",
        "controller_enabled",
        "boolean",
        "Limit the users that a model's controller names",
        dynamic=True,
    ),
    Setting(
        _ML + "max_json_size",
        "max_json_size",
        "integer",
        "Largest response of a provider to a whole prediction, in bytes",
        dynamic=True,
        minimum=1,
    ),
    Setting(
        _ML + "master_key_cache_ttl_minutes",
        "master_key_cache_ttl_minutes",
        "integer",
        "How long the encryption key is kept in memory",
        minimum=0,
    ),
    Setting(
        _ML + "remote_job.status_field",
        "remote_job_status_field",
        "list",
        "Fields of a batch job that hold its state",
        dynamic=True,
    ),
    *(
        Setting(
            f"{_ML}remote_job.status_regex.{state}",
            f"remote_job_status_{state}",
            "regex",
            f"Words for a batch job that is {state}",
            dynamic=True,
        )
        for state in ("completed", "cancelled", "cancelling", "expired", "failed")
    ),
)
