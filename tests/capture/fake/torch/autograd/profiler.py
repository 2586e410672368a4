import contextlib


def emit_nvtx(record_shapes=False):
    return contextlib.nullcontext()
