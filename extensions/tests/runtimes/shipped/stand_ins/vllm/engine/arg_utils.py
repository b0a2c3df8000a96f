"""The arguments of the engine."""

from dataclasses import dataclass


@dataclass
class AsyncEngineArgs:
    model: str
    dtype: str = "auto"
    max_model_len: int | None = None
    tensor_parallel_size: int = 1
    gpu_memory_utilization: float = 0.9
