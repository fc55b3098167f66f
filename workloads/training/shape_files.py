"""Shapes of models from files: those of the project, and the ``config.json`` of a release on Hugging Face."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any, Final

import yaml

from workloads.imported.errors import WorkloadFileError
from workloads.imported.text_file import read_json_object
from workloads.training.transformer import Experts, LatentAttention, Transformer

EXPECTED: Final = "a config.json of Hugging Face"
_PLAIN_MODELS: Final = frozenset({"gpt2", "gpt_neox", "gptj", "opt", "bloom", "bert", "vit"})
"""``model_type`` of models whose feed-forward blocks are not gated."""
_KEYS: Final[Mapping[str, tuple[str, ...]]] = {
    "layers": ("num_hidden_layers", "n_layer", "num_layers"),
    "hidden": ("hidden_size", "n_embd", "d_model"),
    "heads": ("num_attention_heads", "n_head"),
    "vocabulary": ("vocab_size",),
    "feed_forward": ("intermediate_size", "n_inner", "ffn_dim"),
}
"""What is read, and the keys that different families have for it."""


@cache
def shapes() -> Mapping[str, Transformer]:
    """Name -> shape, of every model that the project knows."""
    folder = files("workloads.training") / "shapes"
    found = {}
    for each in sorted(folder.iterdir(), key=lambda path: path.name):
        if each.name.endswith(".yaml"):
            name = each.name.removesuffix(".yaml")
            found[name] = _of_mapping(name, yaml.safe_load(each.read_text()))
    return found


def _of_mapping(name: str, given: Mapping[str, Any]) -> Transformer:
    parts = dict(given)
    experts, latent = parts.pop("experts", None), parts.pop("latent", None)
    return Transformer(
        name=name,
        experts=None if experts is None else Experts(**experts),
        latent=None if latent is None else LatentAttention(**latent),
        sources=tuple(parts.pop("sources")),
        **parts,
    )


def read_config(path: Path) -> Transformer:
    """Return the shape that a ``config.json`` of Hugging Face describes.

    Llama, Mistral, Mixtral, Qwen, DeepSeek, GPT-2 and what has their keys. Raises :class:`WorkloadFileError` naming the
    key that is missing or wrong.
    """
    given = read_json_object(path, EXPECTED)
    given = given.get("text_config", given) if "hidden_size" not in given else given
    return _Config(str(path), given).shape()


class _Config:
    """The keys of one file."""

    def __init__(self, file: str, given: Mapping[str, Any]) -> None:
        self._file, self._given = file, given

    def shape(self) -> Transformer:
        kind = str(self._given.get("model_type", ""))
        layers, hidden, heads, vocabulary = (
            self._number(name, _KEYS[name]) for name in ("layers", "hidden", "heads", "vocabulary")
        )
        plain = kind in _PLAIN_MODELS
        try:
            return Transformer(
                name=Path(self._file).stem,
                title=kind or "a transformer",
                layers=layers,
                hidden=hidden,
                heads=heads,
                vocabulary=vocabulary,
                key_value_heads=self._optional("num_key_value_heads") or heads,
                head_size=self._optional("head_dim") or hidden // heads,
                feed_forward=self._feed_forward(plain, hidden),
                gated=not plain,
                biases=plain,
                tied=bool(self._given.get("tie_word_embeddings", plain)),
                positions=self._optional("n_positions") if plain else 0,
                query_norms=kind.startswith("qwen3"),
                experts=self._experts(),
                latent=self._latent(),
                sources=(f"file: {self._file}",),
            )
        except ValueError as error:
            raise WorkloadFileError(self._file, None, *_parted(str(error))) from None

    def _number(self, name: str, keys: tuple[str, ...]) -> int:
        for key in keys:
            if self._given.get(key) is not None:
                return self._whole(key)
        raise WorkloadFileError(self._file, None, f"no {keys[0]}", f"the model's {name.replace('_', ' ')}")

    def _feed_forward(self, plain: bool, hidden: int) -> int:
        if plain and all(self._given.get(key) is None for key in _KEYS["feed_forward"]):
            return 4 * hidden
        return self._number("feed_forward", _KEYS["feed_forward"])

    def _whole(self, key: str) -> int:
        value = self._given[key]
        if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= 10**9:
            raise WorkloadFileError(self._file, None, f"{key} is {json.dumps(value)[:60]}", "a whole number")
        return value

    def _optional(self, *keys: str) -> int:
        return next((self._whole(key) for key in keys if self._given.get(key) is not None), 0)

    def _experts(self) -> Experts | None:
        count = self._optional("n_routed_experts", "num_local_experts", "num_experts")
        if count < 2:
            return None
        hidden = self._optional("moe_intermediate_size") or self._number("feed_forward", _KEYS["feed_forward"])
        layers = self._number("layers", _KEYS["layers"])
        return Experts(
            count=count,
            per_token=self._number("experts per token", ("num_experts_per_tok", "num_experts_per_token")),
            hidden=hidden,
            shared=self._optional("n_shared_experts"),
            dense_layers=min(layers, self._optional("first_k_dense_replace")),
            most_nodes=self._optional("topk_group"),
        )

    def _latent(self) -> LatentAttention | None:
        if self._given.get("kv_lora_rank") is None:
            return None
        names = ("kv_lora_rank", "qk_rope_head_dim", "qk_nope_head_dim", "v_head_dim")
        rank, rotary, plain, value = (self._number(name, (name,)) for name in names)
        return LatentAttention(self._optional("q_lora_rank"), rank, rotary, plain, value)


def _parted(error: str) -> tuple[str, str]:
    what, _, expected = error.partition(", expected ")
    return what, expected or EXPECTED
