"""A torch of a few lines, for tests of lockstep capture where none is installed: tensors are blocks of a GPU's memory, from
the runtime that is loaded, and what capture asks of PyTorch is answered as PyTorch would. Modules of a few lines are made here."""

import contextlib
import sys
import types

__version__ = "0.0+fake"

from . import version, cuda, distributed  # noqa: E402,F401
from .cuda import Tensor  # noqa: E402
from .optim import optimizer  # noqa: E402

optim.Adam = optimizer.Adam  # noqa: F821


def _module(name, **members):
    """A module torch.NAME with these members, in its parent, as an import of it finds it."""
    module = sys.modules[f"{__name__}.{name}"] = types.ModuleType(f"{__name__}.{name}")
    module.__path__ = []
    parent, _, last = f"{__name__}.{name}".rpartition(".")
    setattr(sys.modules[parent], last, module)
    vars(module).update(members)


class device:
    def __init__(self, kind):
        self.type = kind


class Parameter(Tensor):
    pass


class Library:
    def __init__(self, *more):
        pass

    def impl(self, *more):
        pass


class ExecutionTraceObserver:
    """Of operators there are none."""

    def register_callback(self, path):
        self.path = path

    def start(self):
        sys.setprofile(None)  # how many functions are called depends on the version of Python: none is counted

    def stop(self):
        pass

    def unregister_callback(self):
        with open(self.path, "w", encoding="utf-8") as out:
            out.write('{"nodes": []}')


_module("_C", _dispatch_get_all_op_names=list)
_module("_C._distributed_c10d", Store=type("Store", (), {}))
_module("_C._profiler", _RecordFunctionFast=None)
_module("autograd", _enable_record_function=lambda enable: None)
_module("autograd.profiler", emit_nvtx=lambda record_shapes=False: contextlib.nullcontext())
_module("library", Library=Library)
_module("nn", Parameter=Parameter, init=type("init", (), {}))
_module("ops", aten=type("aten", (), {}))
_module("profiler", ExecutionTraceObserver=ExecutionTraceObserver)
