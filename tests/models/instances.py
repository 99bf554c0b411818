"""Small random models of every family, and the real one."""

from functools import cache
from typing import Any

import torch

import attnmargin as am

TEXTS = [[3, 4, 5, 6, 7, 8, 9], [5, 4, 3], [9, 9, 2, 1]]
REVIEWS = (
    "a warm and funny film with a fine cast",
    "the plot is slow , the jokes are old and the ending is bad",
    "i laughed , i cried , and i would see it again tomorrow",
    "do not waste two hours of your life on this dull picture",
)
_SIZES = {
    "vocab_size": 50, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4,
    "intermediate_size": 64, "max_position_embeddings": 64, "bos_token_id": 1, "eos_token_id": 2,
}  # fmt: skip
FAMILIES = ("bert", "distilbert", "roberta", "albert", "gpt2", "llama", "qwen2", "gpt_neox")


def small_model(family: str, **changes: Any) -> Any:
    """A model with random weights that are large enough for attention to differ from uniform."""
    import transformers

    sizes = _SIZES | changes
    if family == "distilbert":
        names = {"hidden_size": "dim", "num_hidden_layers": "n_layers",
                 "num_attention_heads": "n_heads", "intermediate_size": "hidden_dim"}  # fmt: skip
        sizes = {names.get(key, key): value for key, value in sizes.items()}
    if family in ("llama", "qwen2"):
        sizes = {"num_key_value_heads": 2} | sizes
    config = transformers.AutoConfig.for_model(family, **sizes)
    draw = torch.Generator().manual_seed(7)
    model = transformers.AutoModel.from_config(config)
    with torch.no_grad():
        for weights in model.parameters():
            weights.copy_(0.3 * torch.randn(weights.shape, generator=draw))
    return model.eval()


@cache
def minilm() -> Any:
    return am.models.load_model("minilm")


@cache
def minilm_heads() -> Any:
    loaded = minilm()
    return am.models.read_heads(loaded.model, REVIEWS, loaded.tokenizer)
