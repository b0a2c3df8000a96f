"""What the runtime for vLLM uses of it."""

from vllm.sampling_params import SamplingParams

__all__ = ["SamplingParams"]
