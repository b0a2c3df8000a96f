"""Errors that a model raises, each with the status that a client sees."""


class MLServerError(Exception):
    """A call fails with a status: 400 unless said otherwise."""

    def __init__(self, msg: str, status_code: int = 400) -> None:
        super().__init__(msg)
        self.status_code = status_code


class InvalidModelURI(MLServerError):
    """A model's `parameters.uri` is missing, or nothing lies there."""

    def __init__(self, name: str, model_uri: str | None = None) -> None:
        place = f" ({model_uri})" if model_uri else ""
        super().__init__(f"Invalid URI specified for model {name}{place}", 422)


class ModelNotFound(MLServerError):
    """There is no model of that name, or not in that version."""

    def __init__(self, name: str, version: str | None = None) -> None:
        super().__init__(f"Model {name}{_with(version)} not found", 404)


class ModelNotReady(MLServerError):
    """A model is not loaded yet."""

    def __init__(self, name: str, version: str | None = None) -> None:
        super().__init__(f"Model {name}{_with(version)} is not ready yet.")


class InferenceError(MLServerError):
    """A request is not one that the model can answer."""

    def __init__(self, msg: str) -> None:
        super().__init__(msg)


class ModelParametersMissing(MLServerError):
    """A model's settings have no `parameters`."""

    def __init__(self, model_name: str) -> None:
        super().__init__(f"Parameters missing for model {model_name}")


def _with(version: str | None) -> str:
    return "" if version is None else f" with version {version}"
