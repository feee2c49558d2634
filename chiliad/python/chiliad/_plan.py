"""The plan: which items each step holds, before anything is read."""

from __future__ import annotations

import json
import os
from typing import Any, NamedTuple, Union

from . import _native
from ._index import Index
from ._options import Option, Source, is_index, overrides_of


class Item(NamedTuple):
    """An item of a step."""

    sample: int  #: number in the index
    key: str
    width: int  #: of the shape that it gets; 0 for documents
    height: int


class Plan:
    """The order of items of a run, a pure function of data, settings and seed.

    source: a run file (``run.yaml``), an index folder, or an :class:`Index`.
    options: keys of section ``data`` of a run file, such as ``batch=64`` (items a step, over all ranks),
    ``resolution=256``, ``flip=True``, ``languages=["en"]``; ``seed`` is ``run.seed``; other sections are written
    ``**{"model.patch": 16}``. ``chiliad docs run-file`` lists all.

    Without a run file pictures get one square shape of ``resolution`` (256); ``bucket_step``, ``bucket_min`` and
    ``bucket_max`` ask for aspect buckets.
    """

    def __init__(self, source: Union[Source, Index], **options: Option) -> None:
        path = source.folder if isinstance(source, Index) else os.fspath(source)
        if is_index(path):
            self._native = _native.Run.open("", overrides_of(path, options))
        else:
            self._native = _native.Run.open(path, overrides_of(None, options))

    @property
    def num_items(self) -> int:
        """Items of an epoch; each is shown once."""
        return self._native.num_items

    @property
    def num_steps(self) -> int:
        """Steps of an epoch, for any number of ranks."""
        return self._native.num_steps

    @property
    def coverage(self) -> dict[str, int]:
        """How many items of the index are left out, and why."""
        return self._native.coverage

    def num_batches(self, epoch: int = 0, world_size: int = 1) -> int:
        """Micro-batches of each rank in an epoch, counted from the plan."""
        return self._native.num_batches(epoch, world_size)

    def items(self, step: int) -> list[Item]:
        """The items of a step, of all ranks, in order."""
        return [Item(*item) for item in self._native.items(step)]

    def report(self, epoch: int = 0, world_size: int = 1) -> dict[str, Any]:
        """What ``chiliad data plan --json`` prints: steps, padding, balance, coverage, shuffle quality."""
        report: dict[str, Any] = json.loads(self._native.report_json(epoch, world_size))
        return report

    def table(self, epoch: int = 0, world_size: int = 1) -> str:
        """The same for people."""
        return self._native.report_table(epoch, world_size)

    def run_yaml(self) -> str:
        """All settings, as a run file."""
        return self._native.run_yaml()

    def __repr__(self) -> str:
        return f"chiliad.Plan: {self.num_items} items in {self.num_steps} steps an epoch"
