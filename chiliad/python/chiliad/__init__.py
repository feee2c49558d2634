"""Chiliad's data plane: index a data set where it lies, plan its steps, iterate batches.

>>> import chiliad
>>> chiliad.build_index("photos", "photos.index")
>>> for batch in chiliad.Loader("photos.index", batch=64, resolution=256):
...     batch["pixels"], batch["captions"]
"""

from ._errors import (
    CorruptDataError,
    Error,
    InputError,
    InternalError,
    PeerLostError,
    UnavailableError,
)
from ._index import Index, build_index
from ._loader import Batch, Loader
from ._native import version as __version__
from ._plan import Item, Plan

__all__ = [
    "Batch",
    "CorruptDataError",
    "Error",
    "Index",
    "InputError",
    "InternalError",
    "Item",
    "Loader",
    "PeerLostError",
    "Plan",
    "UnavailableError",
    "__version__",
    "build_index",
]
