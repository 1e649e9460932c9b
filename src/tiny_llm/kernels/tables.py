"""The tables of operations a model can run with, by name: each does the work of the one before it faster.

A table is imported when it is made, so a day that is not written yet does not stop an earlier one.
"""

from importlib import import_module

from ..model.qwen3 import Ops

TABLES = {
    "python": ("..model.qwen3", "Ops"),
    "dense": (".dense", "DenseOps"),
    "packed": (".packed", "QuantizedOps"),
    "cpu": (".cpu", "CpuOps"),
    "fused": (".cpu", "FusedOps"),
    "flash": (".flash", "FlashOps"),
    "metal": (".metal_ops", "MetalOps"),
    "metal-flash": (".metal_flash", "MetalFlashOps"),
}
"""Module and class of each table."""
DENSE = ("python", "dense")
"""The tables that need unpacked weights (`load_model`); the others need packed ones (`load_packed_model`)."""


def make_ops(name: str) -> Ops:
    """A new table. Raises ValueError for a name that is not in TABLES."""
    if name not in TABLES:
        raise ValueError(f"no table of operations is called {name!r}: choose one of {', '.join(TABLES)}")
    module, table = TABLES[name]
    return getattr(import_module(module, __package__), table)()
