"""The loader: one rank's batches, read and decoded ahead by native threads."""

from __future__ import annotations

import json
import os
from types import TracebackType
from typing import Any, Dict, Iterator, NoReturn, Optional, Type, Union

from . import _native
from ._index import Index
from ._options import Option, Source
from ._plan import Plan

Batch = Dict[str, Any]


class Loader:
    """Batches of one rank, in the order of the plan.

    >>> loader = chiliad.Loader("photos.index", batch=64, resolution=256, rank=rank, world_size=world_size)
    >>> for epoch in range(10):
    ...     for batch in loader:                                # one epoch
    ...         pixels = torch.from_dlpack(batch["pixels"])     # uint8 [B, H, W, 3], no copy

    source: a run file, an index folder, an :class:`Index` or a :class:`Plan`; options: as those of :class:`Plan`.
    rank, world_size: which share of each step this process gets. Any world size gives the same items in each step.
    threads: that read and decode. prefetch_steps, prefetch_bytes: how far ahead (one step always). cache_bytes:
    decoded pictures kept. These four change speed and memory, never what comes.
    held_bytes: bytes of batches that you may refer to; more is an error in place of memory that runs out.
    epochs: after so many, iteration gives nothing more. None: without end.
    on_bad: what becomes of an item whose bytes are damaged. "mask": it keeps its place with zero pixels and weight
    0, and is listed in ``batch["bad"]``; above ``max_bad_fraction`` of this rank's items the run stops. "raise":
    CorruptDataError. None: as ``data.on_bad_item`` says (mask).
    read_deadline: seconds without any progress after which UnavailableError is raised (60).
    journal: ``journal.jsonl`` of a Chiliad run: items that it agreed to leave out have weight 0 here too.

    A batch is a dict; which keys it has depends on the data:

    ====================  ==============================================================================
    pixels                uint8 [B, H, W, 3]
    captions, keys        lists of B strings; no caption is ""
    tokens, token_counts  int32 [B, T] bytes of the captions + 2, int32 [B]; mode pack: int32 [T]
    targets, cu_seqlens   mode pack: int32 [T] next tokens (-100: none), int32 [D + 1] where documents begin
    tiles, pictures       of conversations (``vision.template``): uint8 [N, side, side, 3]; a list of (row of
                          ``keys``, first position, positions, first tile, tiles), one a picture in order
    latents, text,        of models on latents: columns of ``chiliad encode``; bf16 ones have ``__dlpack__`` alone
    pooled, classes
    weight                float32 [B]: 1, or 0 for an item that could not be used
    sample, draw_key      int64 [B] number in the index; uint64 [B] key for your random draws, equal after resume
    bad                   list of (row, reason)
    step, epoch           of the batch
    slot, num_slots       which micro-batch of the step this is, and how many each rank has
    num_items             of the step, over all ranks, as planned: divide the loss by it
    num_tokens            the same of tokens
    ====================  ==============================================================================

    Arrays are views of the loader's memory that keep it: they stay valid as long as you refer to them, also when the
    loader is gone. They are yours to change.

    The loader belongs to the process that made it: in a fork it raises, and it cannot be pickled. It may be closed,
    left or collected at any time.
    """

    def __init__(
        self,
        source: Union[Source, Index, Plan],
        *,
        rank: int = 0,
        world_size: int = 1,
        threads: Optional[int] = None,
        prefetch_bytes: Optional[int] = None,
        prefetch_steps: Optional[int] = None,
        cache_bytes: Optional[int] = None,
        held_bytes: Optional[int] = None,
        epochs: Optional[int] = None,
        on_bad: Optional[str] = None,
        read_deadline: Optional[float] = None,
        journal: Optional[Source] = None,
        **options: Option,
    ) -> None:
        if isinstance(source, Plan) and options:
            raise TypeError("chiliad.Loader: options belong to the Plan: " + ", ".join(options))
        self.plan = source if isinstance(source, Plan) else Plan(source, **options)
        self.rank = rank
        self.world_size = world_size
        self._lengths: dict[int, int] = {}
        self._native = _native.RankLoader.make(
            self.plan._native,
            rank=rank,
            num_ranks=world_size,
            threads=threads,
            prefetch_bytes=prefetch_bytes,
            prefetch_steps=prefetch_steps,
            cache_bytes=cache_bytes,
            held_bytes=held_bytes,
            read_deadline=read_deadline,
            epochs=0 if epochs is None else epochs,
            on_bad="" if on_bad is None else on_bad,
            journal="" if journal is None else os.fspath(journal),
        )

    def __iter__(self) -> Iterator[Batch]:
        """The rest of the epoch: all of it after the last one ended, what was left after a `break`."""
        return iter(self._native)

    def __len__(self) -> int:
        """Batches of the epoch that the next one belongs to, from its begin; equal on all ranks."""
        epoch = self.epoch
        if epoch not in self._lengths:
            self._lengths = {epoch: self.plan.num_batches(epoch, self.world_size)}
        return self._lengths[epoch]

    @property
    def epoch(self) -> int:
        """Of the batch that comes next."""
        return self._native.epoch

    @property
    def next_step(self) -> int:
        """The first step that was not handed over whole."""
        return self._native.next_step

    def state_dict(self) -> dict[str, Any]:
        """Where to go on: a few numbers for JSON, equal on all ranks at the same step.

        A step counts once its last batch was handed over; of a step begun, all batches come again.
        """
        state: dict[str, Any] = json.loads(self._native.state_json())
        return state

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Goes on from there, at any rank and world size. Raises InputError naming what differs."""
        self._native.resume(json.dumps(state))

    def seek(self, step: int) -> None:
        """Goes to the begin of a step, counted from the first epoch."""
        self._native.seek(step)

    def plan_report(self, epoch: int = 0) -> dict[str, Any]:
        """`Plan.report` for this world size."""
        return self.plan.report(epoch, self.world_size)

    def stats(self) -> dict[str, Any]:
        """Counters: items, bytes read, cache hits, bad items, seconds waited, batches and bytes that you hold."""
        return self._native.stats()

    def close(self) -> None:
        """Stops the threads. Batches stay valid."""
        self._native.close()

    def __enter__(self) -> Loader:
        return self

    def __exit__(
        self,
        kind: Optional[Type[BaseException]],
        error: Optional[BaseException],
        trace: Optional[TracebackType],
    ) -> None:
        self.close()

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            "chiliad.Loader: has threads and cannot be pickled or copied. Make it in the process that uses it"
        )

    def __repr__(self) -> str:
        return (
            f"chiliad.Loader: rank {self.rank} of {self.world_size}, step {self.next_step}, "
            f"{self.plan.num_items} items in {self.plan.num_steps} steps an epoch"
        )
