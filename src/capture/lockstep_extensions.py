"""Extensions that take hours to build: where a program's package is there and its library is not, a stand-in allocates and
launches what the library's sources show. A note says so. What is not here stays an ImportError, as it is without us.

Sources: FlashAttention 2.8.3, csrc/flash_attn/flash_api.cpp (shapes, the number of splits) and flash_bwd_launch_template.h
(kernels); apex, csrc/megatron/fused_weight_gradient_dense.cu (one product each). Loaded by sitecustomize.py."""

import ctypes
import importlib.abc
import importlib.util
import math
import types

STATE = {}


def launch(name, blocks, heads, batch, threads=128):
    import torch
    STATE["library"]().ls_capture_launch(name.encode(), blocks, batch, heads, threads, ctypes.c_void_p(torch.cuda.current_stream().cuda_stream))


def up(n, unit):
    return -(-n // unit) * unit


def floats(like, *shape, make="empty"):
    import torch
    return getattr(torch, make)(shape, dtype=torch.float32, device=like.device)


def check(*tensors):
    import torch
    if torch.cuda.get_device_capability()[0] < 8:
        raise RuntimeError("FlashAttention only supports Ampere GPUs or newer.")
    if any(t.dtype not in (torch.float16, torch.bfloat16) for t in tensors):
        raise RuntimeError("FlashAttention only support fp16 and bf16 data type")


def n_splits(blocks, n_sm, n_key_blocks):
    """Of the keys, so that few queries fill the GPU: the fewest with 85 % of the best share of it that is busy."""
    if blocks >= 0.8 * n_sm:
        return 1
    most, shares = min(128, n_sm, n_key_blocks), {}
    for n in range(1, most + 1):
        if n == 1 or -(-n_key_blocks // n) != -(-n_key_blocks // (n - 1)):
            shares[n] = blocks * n / n_sm / math.ceil(blocks * n / n_sm)
    return next((n for n, share in shares.items() if share >= 0.85 * max(shares.values())), 1)


def rounded_head(d):
    return up(d, 32 if d <= 128 else 64)


def finish_forward(q, batch, length, keys, heads, dropout, wants_softmax, lse):
    import torch
    shape = (batch, heads, up(length, 128), up(keys, 128)) if wants_softmax else (0,)
    softmax = torch.empty(shape, dtype=q.dtype, device=q.device)
    state = torch.empty(2, dtype=torch.int64, device=q.device)
    launch(f"flash_fwd_kernel_traitsILi{q.shape[-1]}E", -(-length // 128), heads, batch)
    return softmax, state


def fwd(q, k, v, out, alibi, dropout, scale, is_causal, left, right, softcap, wants_softmax, generator):
    import torch
    check(q, k, v)
    batch, length, heads, d = q.shape
    out = torch.empty_like(q) if out is None else out
    lse = floats(q, batch, heads, length)
    n_sm = torch.cuda.get_device_properties(q.device).multi_processor_count
    unit = 256 if d <= 64 else 128 if d <= 128 else 64
    n = n_splits(batch * heads * -(-length // 64), 2 * n_sm, -(-k.shape[1] // unit)) if dropout == 0 else 1
    parts = [floats(q, n, batch, heads, length), floats(q, n, batch, heads, length, rounded_head(d))] if n > 1 else []
    softmax, state = finish_forward(q, batch, length, k.shape[1], heads, dropout, wants_softmax, lse)
    if parts:
        launch("flash_fwd_splitkv_combine", -(-batch * heads * length // 4), 1, 1)
    return out, lse, softmax, state


def varlen_fwd(q, k, v, out, ends_q, ends_k, used, padding, table, alibi, most_q, most_k, dropout, scale, zero, is_causal, left, right, softcap,
               wants_softmax, generator):
    import torch
    check(q, k, v)
    total, heads, d = q.shape
    out = torch.empty_like(q) if out is None else out
    lse = floats(q, heads, total)
    return (out, lse, *finish_forward(q, ends_q.numel() - 1, most_q, most_k, heads, dropout, wants_softmax, lse))


def backward(grad, q, k, v, dq, dk, dv, batch, most_q, most_k, rows, is_whole, is_deterministic):
    """rows: of what is summed for the queries, by sequences or packed. is_whole: packed gradients are cleared at first."""
    import torch
    check(grad, q, k, v)
    heads, d, of_keys = q.shape[-2], q.shape[-1], k.shape[-2]
    dq, dk, dv = (torch.empty_like(t) if made is None else made for t, made in ((q, dq), (k, dk), (v, dv)))
    sums = floats(q, *((heads, rows[0]) if len(rows) == 1 else (batch, heads, rows[1])))
    n_sm = torch.cuda.get_device_properties(q.device).multi_processor_count
    n = -(-n_sm // (batch * heads))
    dq_sum = floats(q, n, *rows, heads, rounded_head(d), make="zeros") if is_deterministic else floats(q, *rows, heads, rounded_head(d))  # noqa: F841
    wide = [torch.empty((*k.shape[:-2], heads, d), dtype=q.dtype, device=q.device) for _ in range(2)] if of_keys != heads else [dk, dv]
    for made in [dq, *wide, sums] if is_whole else []:
        made.zero_()
    launch("flash_bwd_dot_do_o", -(-most_q // 128), heads, batch, 256)
    launch(f"flash_bwd_kernel_traitsILi{d}E", -(-most_k // 128), heads, batch, 256)
    launch("flash_bwd_convert_dq", -(-most_q // 128), heads, batch, 256)
    for made, expanded in zip((dk, dv), wide):
        if expanded is not made:
            torch.sum(expanded.view(*expanded.shape[:-2], of_keys, heads // of_keys, d), -2, out=made)
    return dq, dk, dv, sums


def bwd(grad, q, k, v, out, lse, dq, dk, dv, alibi, dropout, scale, is_causal, left, right, softcap, is_deterministic, generator, state):
    batch, length = q.shape[:2]
    return backward(grad, q, k, v, dq, dk, dv, batch, length, k.shape[1], (batch, up(length, 128)), False, is_deterministic)


def varlen_bwd(grad, q, k, v, out, lse, dq, dk, dv, ends_q, ends_k, alibi, most_q, most_k, dropout, scale, zero, is_causal, left, right, softcap,
               is_deterministic, generator, state):
    batch = ends_q.numel() - 1
    return backward(grad, q, k, v, dq, dk, dv, batch, most_q, most_k, (q.shape[0] + 128 * batch,), zero, is_deterministic)


def add_product(inputs, grad, weight):
    """weight += grad^T inputs, by cuBLAS."""
    import torch
    rows, n = inputs.numel() // inputs.shape[-1], inputs.shape[-1]
    stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
    STATE["library"]().ls_capture_product(*(ctypes.c_double(x) for x in (grad.shape[-1], n, rows)), 3 if inputs.dtype == torch.float32 else 0, stream)


MODULES = {
    "flash_attn_2_cuda": ("FlashAttention 2", {"fwd": fwd, "varlen_fwd": varlen_fwd, "bwd": bwd, "varlen_bwd": varlen_bwd}),
    "fused_weight_gradient_mlp_cuda": ("apex's fused weight gradients", {"wgrad_gemm_accum_fp32": add_product, "wgrad_gemm_accum_fp16": add_product}),
}


class Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """The last that is asked: what is installed comes first."""

    def find_spec(self, name, path, target=None):
        return importlib.util.spec_from_loader(name, self) if name in MODULES else None

    def create_module(self, spec):
        return types.ModuleType(spec.name)

    def exec_module(self, module):
        what, functions = MODULES[module.__name__]
        vars(module).update(functions)
        STATE["notes"].append(f"{module.__name__} is not installed: in its place stands what the sources of {what} show, in allocations and launches")


def install(meta_path, notes, library):
    STATE.update(notes=notes, library=library)
    meta_path.append(Finder())
