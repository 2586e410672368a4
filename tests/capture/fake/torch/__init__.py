"""A torch of a few lines, for tests of lockstep capture where none is installed: tensors are blocks of a GPU's memory, from
the runtime that is loaded, and what capture asks of PyTorch is answered as PyTorch would."""

__version__ = "0.0+fake"

from . import _C, autograd, ops, profiler, version, cuda, distributed, library, nn, optim  # noqa: E402,F401
from .cuda import Tensor  # noqa: E402,F401


class device:
    def __init__(self, kind):
        self.type = kind
