"""The index of a data set: what it holds, where, with checksums. Nothing is copied."""

from __future__ import annotations

import json
import os
from typing import Any, Callable, Optional

from . import _native
from ._options import Source


class Index:
    """An opened index folder, made by :func:`build_index` or ``chiliad data index``.

    >>> index = chiliad.Index("photos.index")
    >>> len(index), index.key(0)
    """

    def __init__(self, folder: Source) -> None:
        self.folder = os.fspath(folder)
        self._native = _native.Index.open(self.folder)

    def __len__(self) -> int:
        """Samples, those that cannot be used too."""
        return len(self._native)

    @property
    def layout(self) -> str:
        """How the data set is laid out: webdataset, image_text, tuxpaint, jsonl or text."""
        return self._native.layout

    @property
    def root(self) -> str:
        """Where the data set lies."""
        return self._native.root

    @property
    def digest(self) -> str:
        """Identity of the data: equal for equal bytes under equal names."""
        return self._native.digest

    def key(self, sample: int) -> str:
        """Name of a sample, by its number (``batch["sample"]``)."""
        return self._native.key(sample)

    def stats(self) -> dict[str, Any]:
        """Counts, shapes and captions by language; no payload is read."""
        stats: dict[str, Any] = json.loads(self._native.stats_json())
        return stats

    def __repr__(self) -> str:
        return f"chiliad.Index({self.folder!r}): {len(self)} samples, layout {self.layout}"


def build_index(
    source: Source,
    out: Source,
    *,
    layout: str = "auto",
    threads: int = 2,
    replace: bool = False,
    progress: Optional[Callable[[int, int], object]] = None,
) -> Index:
    """Makes the index of a data set where it lies, as ``chiliad data index`` does.

    source: a folder of tars, of pictures with captions, of ``*.jsonl`` or ``*.txt`` documents; or one tar or .jsonl.
    out: folder of the index. The same call again goes on after a crash or an interrupt, and is quick when done.
    layout: auto, tuxpaint, image_text, webdataset, jsonl or text.
    replace: ``out`` may hold the index of another source, which is lost.
    progress: called with bytes done and bytes in all, now and then.

    Samples that cannot be used are counted, not fatal: ``bad.jsonl`` in ``out`` says why.
    """
    _native.build_index(os.fspath(source), os.fspath(out), layout, threads, replace, progress)
    return Index(out)
