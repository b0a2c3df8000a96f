"""Models small enough to be made by a test, with random weights and a vocabulary of 66 words or of all bytes."""

import json
from importlib import import_module
from pathlib import Path
from typing import Any

CHAT_TEMPLATE = "{% for message in messages %}{{ message.role }} {{ message.content }} {% endfor %}assistant"
CONTEXT = 256  # tokens, the least of llama.cpp
WIDTH = 64  # features of a Llama of Hugging Face's form
_SPECIAL = ("<unk>", "<s>", "</s>")
VOCABULARY = [*_SPECIAL, "user", "assistant", "system", *(f"w{number}" for number in range(60))]


def hugging_face_folder(folder: Path) -> None:
    """Save a Llama of one layer with a tokenizer of words, or what the stand-in reads."""
    transformers = import_module("transformers")
    (folder / "chat_template.jinja").write_text(CHAT_TEMPLATE)
    if not hasattr(transformers, "LlamaConfig"):  # the stand-in
        return
    tokenizers = import_module("tokenizers")
    words = tokenizers.models.WordLevel({word: number for number, word in enumerate(VOCABULARY)}, unk_token="<unk>")
    tokenizer = tokenizers.Tokenizer(words)
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.WhitespaceSplit()
    _save_tokenizer(folder, tokenizer)
    _llama(len(VOCABULARY)).save_pretrained(folder)


def folder_of_bytes(folder: Path) -> None:
    """Save a Llama of one layer that can write any text: a token is a byte.

    While anything else is allowed, it writes neither white space, of which JSON may have any amount, nor what is no
    ASCII.
    """
    tokenizers = import_module("tokenizers")
    alphabet = sorted(tokenizers.pre_tokenizers.ByteLevel.alphabet(), key=lambda letter: (letter > "~", letter))
    vocabulary = [*_SPECIAL, *alphabet]
    bytes_ = tokenizers.models.BPE({token: number for number, token in enumerate(vocabulary)}, [])
    tokenizer = tokenizers.Tokenizer(bytes_)
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = tokenizers.decoders.ByteLevel()
    _save_tokenizer(folder, tokenizer)
    llama = _llama(len(vocabulary))
    layer = llama.model.layers[0]
    for weights in (layer.self_attn.o_proj.weight, layer.mlp.down_proj.weight):
        weights.data *= 0.01
        weights.data[0] = 0
    llama.model.embed_tokens.weight.data[:, 0] = 10  # so the first feature is always positive
    llama.lm_head.weight.data[vocabulary.index("~") + 1 :, 0] = -100  # the alphabet has letters for bytes that are none
    llama.save_pretrained(folder)


def lora_adapter(folder: Path) -> None:
    """Save an adapter of either Llama, as the package peft does."""
    torch, safetensors = import_module("torch"), import_module("safetensors.torch")
    rank = 8
    modules = ("q_proj", "v_proj")
    random = torch.Generator().manual_seed(11)
    weights = {
        f"base_model.model.model.layers.0.self_attn.{module}.lora_{part}.weight": torch.randn(shape, generator=random)
        for module in modules
        for part, shape in (("A", (rank, WIDTH)), ("B", (WIDTH, rank)))
    }
    folder.mkdir()
    safetensors.save_file(weights, folder / "adapter_model.safetensors")
    config = {"peft_type": "LORA", "task_type": "CAUSAL_LM", "r": rank, "lora_alpha": rank, "target_modules": modules}
    (folder / "adapter_config.json").write_text(json.dumps(config))


def _save_tokenizer(folder: Path, tokenizer: Any) -> None:
    unknown, first, last = _SPECIAL
    import_module("transformers").PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, unk_token=unknown, bos_token=first, eos_token=last, chat_template=CHAT_TEMPLATE
    ).save_pretrained(folder)


def _llama(vocabulary: int) -> Any:
    transformers = import_module("transformers")
    import_module("torch").manual_seed(7)
    config = transformers.LlamaConfig(
        vocab_size=vocabulary, hidden_size=WIDTH, intermediate_size=WIDTH, num_hidden_layers=1, num_attention_heads=2,
        num_key_value_heads=2, max_position_embeddings=CONTEXT, bos_token_id=1, eos_token_id=2, initializer_range=1.0,
    )  # fmt: skip
    return transformers.LlamaForCausalLM(config)


def gguf_file(folder: Path) -> None:
    """Write a Llama of one layer to model.gguf."""
    gguf, numpy = import_module("gguf"), import_module("numpy")
    width, inner, heads = 32, 64, 2
    writer = gguf.GGUFWriter(str(folder / "model.gguf"), "llama")
    writer.add_context_length(CONTEXT)
    writer.add_embedding_length(width)
    writer.add_block_count(1)
    writer.add_feed_forward_length(inner)
    writer.add_head_count(heads)
    writer.add_head_count_kv(heads)
    writer.add_rope_dimension_count(width // heads)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_file_type(0)
    writer.add_tokenizer_model("llama")
    bytes_ = [f"<0x{number:02X}>" for number in range(256)]
    words = [word if word.startswith("<") else f"\u2581{word}" for word in VOCABULARY]
    normal, unknown, control, byte = 1, 2, 3, 6
    writer.add_token_list([*words, *bytes_])
    writer.add_token_scores([0.0] * len(words) + [-100.0] * len(bytes_))
    writer.add_token_types([unknown, control, control, *[normal] * (len(words) - 3), *[byte] * len(bytes_)])
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_unk_token_id(0)
    writer.add_chat_template(CHAT_TEMPLATE)
    random = numpy.random.default_rng(7)

    def add(name: str, *shape: int) -> None:
        writer.add_tensor(name, random.standard_normal(shape).astype(numpy.float32))

    vocabulary = len(words) + len(bytes_)
    add("token_embd.weight", vocabulary, width)
    output = random.standard_normal((vocabulary, width)).astype(numpy.float32)
    output[:6] = output[len(words) :] = 0  # words only
    writer.add_tensor("output.weight", output)
    writer.add_tensor("output_norm.weight", numpy.ones(width, numpy.float32))
    for name in ("attn_norm", "ffn_norm"):
        writer.add_tensor(f"blk.0.{name}.weight", numpy.ones(width, numpy.float32))
    for name in ("attn_q", "attn_k", "attn_v", "attn_output"):
        add(f"blk.0.{name}.weight", width, width)
    for name in ("ffn_gate", "ffn_up"):
        add(f"blk.0.{name}.weight", inner, width)
    add("blk.0.ffn_down.weight", width, inner)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def write_settings(folder: Path, implementation: str, **extra: object) -> None:
    """Write a model-settings.json."""
    parameters = {"version": "v1", "extra": extra}
    settings = {"name": "tiny", "implementation": implementation, "parameters": parameters}
    (folder / "model-settings.json").write_text(json.dumps(settings))
