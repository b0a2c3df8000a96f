"""Models small enough to be made by a test, with random weights and a vocabulary of 66 words."""

import json
from importlib import import_module
from pathlib import Path

CHAT_TEMPLATE = "{% for message in messages %}{{ message.role }} {{ message.content }} {% endfor %}assistant"
CONTEXT = 256  # tokens, the least of llama.cpp
VOCABULARY = ["<unk>", "<s>", "</s>", "user", "assistant", "system", *(f"w{number}" for number in range(60))]


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
    transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, unk_token="<unk>", bos_token="<s>", eos_token="</s>", chat_template=CHAT_TEMPLATE
    ).save_pretrained(folder)
    import_module("torch").manual_seed(7)
    config = transformers.LlamaConfig(
        vocab_size=len(VOCABULARY), hidden_size=64, intermediate_size=64, num_hidden_layers=1, num_attention_heads=2,
        num_key_value_heads=2, max_position_embeddings=CONTEXT, bos_token_id=1, eos_token_id=2, initializer_range=1.0,
    )  # fmt: skip
    transformers.LlamaForCausalLM(config).save_pretrained(folder)


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
