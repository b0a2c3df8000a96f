"""What the runtime for transformers uses of it."""

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch
from jinja2 import Environment
from words import END, decode, encode, next_token


class AutoTokenizer:
    eos_token_id = END
    pad_token_id = None

    def __init__(self, chat_template: str | None) -> None:
        self.chat_template = chat_template

    @classmethod
    def from_pretrained(cls, folder: str) -> "AutoTokenizer":
        file = Path(folder) / "chat_template.jinja"
        return cls(file.read_text() if file.exists() else None)

    def __call__(self, text: str, *, return_tensors: str) -> dict[str, Any]:
        assert return_tensors == "pt"
        tokens = encode(text)
        return {"input_ids": torch.Tensor([tokens]), "attention_mask": torch.Tensor([[1] * len(tokens)])}

    def apply_chat_template(
        self, conversation: list[dict[str, str]], *, add_generation_prompt: bool, return_tensors: str, return_dict: bool
    ) -> dict[str, Any]:
        assert return_dict
        if self.chat_template is None:
            raise ValueError("Cannot use chat template functions because tokenizer.chat_template is not set")
        template = Environment(autoescape=False).from_string(self.chat_template)
        text = template.render(messages=conversation, add_generation_prompt=add_generation_prompt)
        return self(text, return_tensors=return_tensors)

    def decode(self, tokens: list[int], *, skip_special_tokens: bool, clean_up_tokenization_spaces: bool) -> str:
        return str(decode(tokens, skip_special_tokens=skip_special_tokens))


class LogitsProcessorList(list[Callable[..., Any]]):
    """Not called: there are no scores here."""


class TemperatureLogitsWarper:
    def __init__(self, value: float) -> None:
        self.value = value

    def __call__(self, input_ids: Any, scores: Any) -> Any:
        return scores


TopKLogitsWarper = TopPLogitsWarper = MinPLogitsWarper = TemperatureLogitsWarper


class StoppingCriteriaList(list[Callable[..., Any]]):
    pass


class AutoModelForCausalLM:
    device = "cpu"

    def __init__(self) -> None:
        self.generation_config = SimpleNamespace(eos_token_id=END, max_new_tokens=None)
        self.config = SimpleNamespace(max_position_embeddings=256)
        self._hooks: list[Callable[..., None]] = []

    @classmethod
    def from_pretrained(cls, folder: str, *, dtype: str) -> "AutoModelForCausalLM":
        if not Path(folder).is_dir():
            raise OSError(f"{folder} is not a local folder")
        return cls()

    def to(self, device: str) -> "AutoModelForCausalLM":
        assert device == "cpu"
        return self

    def eval(self) -> "AutoModelForCausalLM":
        return self

    def register_forward_hook(self, hook: Callable[..., None]) -> None:
        self._hooks.append(hook)

    def generate(
        self,
        *,
        input_ids: Any,
        attention_mask: Any,
        streamer: Any,
        stopping_criteria: StoppingCriteriaList,
        max_new_tokens: int,
        **sampling: Any,
    ) -> Any:
        known = {"min_new_tokens", "temperature", "top_p", "top_k", "min_p", "repetition_penalty", "do_sample"}
        assert set(sampling) <= {*known, "pad_token_id"}
        tokens = input_ids.tolist()[0][:]
        streamer.put(torch.Tensor([tokens[:]]))
        for _ in range(max_new_tokens):
            for hook in self._hooks:
                hook(self, None, None)
            tokens.append(next_token(tokens))
            streamer.put(torch.Tensor([tokens[-1]]))
            is_over = any([criterion(torch.Tensor([tokens]), None).any() for criterion in stopping_criteria])
            if is_over or tokens[-1] == END:
                break
        streamer.end()
        return torch.Tensor([tokens])
