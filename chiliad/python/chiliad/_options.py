"""Options as keyword arguments: what `--set section.key=value` is on the command line."""

from __future__ import annotations

import json
import os
from typing import Mapping, Union

from ._errors import InputError

Option = Union[
    bool,
    int,
    float,
    str,
    "os.PathLike[str]",
    "list[str]",
    "tuple[str, ...]",
    "list[int]",
    "list[dict[str, object]]",
]
Source = Union[str, "os.PathLike[str]"]


def _value(key: str, value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float)):
        return repr(value)
    if isinstance(value, (list, tuple)):
        return json.dumps(list(value), ensure_ascii=False)
    if isinstance(value, (str, os.PathLike)):
        return json.dumps(os.fspath(value), ensure_ascii=False)
    raise InputError(
        f"{key}: expected a bool, number, text, path or list, got {type(value).__name__}", key
    )


def _key(name: str) -> str:
    if "." in name:
        return name
    return "run.seed" if name == "seed" else f"data.{name}"


def _pictures(options: dict[str, object]) -> dict[str, object]:
    """One square shape of `resolution`, unless buckets are asked for; captions as text up to 1,024 bytes."""
    defaults: dict[str, object] = {}
    size = options.get("data.resolution", 256)
    defaults["data.resolution"] = size
    buckets = [f"data.bucket_{name}" for name in ("step", "min", "max")]
    if not any(key in options for key in buckets):
        defaults.update({key: size for key in buckets})
    step = options.get("data.bucket_step", defaults.get("data.bucket_step"))
    sides = [side for side in (8, 4, 2, 1) if isinstance(step, int) and step % side == 0]
    if options.get("data.languages", None) in ([], ()):
        defaults["model.family"] = "autoencoder"
        defaults["model.stage_channels"] = [32]
        defaults["objective.kind"] = "reconstruction"
    else:
        defaults["model.patch"] = sides[0] if sides else 1
        defaults["model.text_max_tokens"] = 1024
    return defaults


def _documents(options: dict[str, object]) -> dict[str, object]:
    length = options.get("data.sequence_length", 1024)
    tokens = max(length, 4096) if isinstance(length, int) else 4096
    return {
        "model.family": "llama",
        "model.mlp_width": 1024,
        "model.vocabulary": 1 << 20,  # at least that of any tokenizer
        "data.micro_batch_tokens": tokens,
    }


def overrides_of(index: str | None, named: Mapping[str, object]) -> list[str]:
    """Overrides of a run file; with `index` those of no run file, with defaults for a loader alone.

    They describe a model only as far as the loader needs one: to guess how much work an item is.
    """
    options = {_key(name): value for name, value in named.items() if value is not None}
    if index is not None:
        defaults: dict[str, object] = {"data.index": index}
        batch = options.get("data.batch", 32)
        defaults["data.micro_batch_items"] = batch
        defaults["data.cache_bytes"] = 0
        defaults["data.prefetch_steps"] = 2
        pack = options.get("data.mode") == "pack"
        defaults.update(_documents(options) if pack else _pictures(options))
        # What the user said comes first: errors are then about that.
        options.update({key: value for key, value in defaults.items() if key not in options})
    return [f"{key}={_value(key, value)}" for key, value in options.items()]


def is_index(source: Source) -> bool:
    return os.path.isfile(os.path.join(os.fspath(source), "manifest.json"))

