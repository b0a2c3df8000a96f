"""The parameters of a generation."""

from dataclasses import dataclass
from enum import Enum

from vllm.exceptions import VLLMValidationError


class RequestOutputKind(Enum):
    CUMULATIVE = 0
    DELTA = 1
    FINAL_ONLY = 2


@dataclass
class SamplingParams:
    presence_penalty: float = 0.0
    frequency_penalty: float = 0.0
    repetition_penalty: float = 1.0
    temperature: float = 1.0
    top_p: float = 1.0
    top_k: int = 0
    min_p: float = 0.0
    seed: int | None = None
    stop: list[str] | None = None
    max_tokens: int | None = 16
    min_tokens: int = 0
    output_kind: RequestOutputKind = RequestOutputKind.CUMULATIVE

    def __post_init__(self) -> None:
        if self.temperature < 0:
            raise VLLMValidationError(f"temperature must be non-negative, got {self.temperature}.")
