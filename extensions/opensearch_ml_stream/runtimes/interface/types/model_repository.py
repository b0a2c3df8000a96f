"""Requests and responses of the model repository, with MLServer's names and fields."""

from enum import Enum
from typing import Annotated

from opensearch_ml_stream.runtimes.interface.types.base import BaseModel
from opensearch_ml_stream.runtimes.interface.types.roots import RootModel


class RepositoryIndexRequest(BaseModel):
    """Which models are asked for."""

    ready: bool | None = None


class State(Enum):
    """How far a model is."""

    UNKNOWN = "UNKNOWN"
    READY = "READY"
    UNAVAILABLE = "UNAVAILABLE"
    LOADING = "LOADING"
    UNLOADING = "UNLOADING"


class RepositoryIndexResponseItem(BaseModel):
    """A model of the repository."""

    name: str
    version: str | None = None
    state: Annotated[str, State]
    reason: str


class RepositoryIndexResponse(RootModel):
    """The models of the repository."""

    root: list[RepositoryIndexResponseItem]


class RepositoryLoadErrorResponse(BaseModel):
    """Why a model is not loaded."""

    error: str | None = None


class RepositoryUnloadErrorResponse(BaseModel):
    """Why a model is not unloaded."""

    error: str | None = None
