"""Extensions that take hours to build: where a program's package is there and its library is not, a stand-in allocates and
launches what the library's sources show. A note says so. What is not here stays an ImportError, as it is without us.

Sources: FlashAttention 2.8.3, csrc/flash_attn/flash_api.cpp (shapes, the number of splits) and flash_bwd_launch_template.h
(kernels); FlashAttention 3 of 15 August 2026 (0251105a), the same in hopper/; apex of 8 July 2026 (6424da3b), in csrc/
megatron/fused_weight_gradient_dense.cu (one product each), megatron/*softmax*, multi_tensor_*.cu and layer_norm_cuda*.
Loaded by sitecustomize.py."""

import ctypes
import importlib.abc
import importlib.machinery
import importlib.util
import math
import re
import types

import lockstep_attention

STATE = {}


def launch(name, blocks, heads, batch, threads=128):
    import torch
    name = STATE.setdefault("name of " + name, name.encode())  # the stand-ins know a name by where it is: it stays there
    STATE["library"]().ls_capture_launch(name, blocks, batch, heads, threads, ctypes.c_void_p(torch.cuda.current_stream().cuda_stream))


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
    lockstep_attention.note(q, k, None, None, is_causal, left, right)
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
    lockstep_attention.note(q, k, ends_q, ends_k, is_causal, left, right)
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
    lockstep_attention.note(q, k, None, None, is_causal, left, right)
    return backward(grad, q, k, v, dq, dk, dv, batch, length, k.shape[1], (batch, up(length, 128)), False, is_deterministic)


def varlen_bwd(grad, q, k, v, out, lse, dq, dk, dv, ends_q, ends_k, alibi, most_q, most_k, dropout, scale, zero, is_causal, left, right, softcap,
               is_deterministic, generator, state):
    batch = ends_q.numel() - 1
    lockstep_attention.note(q, k, ends_q, ends_k, is_causal, left, right)
    return backward(grad, q, k, v, dq, dk, dv, batch, most_q, most_k, (q.shape[0] + 128 * batch,), zero, is_deterministic)


# --- FlashAttention 3, which registers operators of PyTorch ---

OPERATORS_3 = """fwd(Tensor q, Tensor k, Tensor v, Tensor(k_new!)? k_new=None, Tensor(v_new!)? v_new=None, Tensor? q_v=None, Tensor(out!)? out=None,
Tensor? cu_seqlens_q=None, Tensor? cu_seqlens_k=None, Tensor? cu_seqlens_k_new=None, Tensor? seqused_q=None, Tensor? seqused_k=None, int?
max_seqlen_q=None, int? max_seqlen_k=None, Tensor? page_table=None, Tensor? kv_batch_idx=None, Tensor? leftpad_k=None, Tensor? rotary_cos=None,
Tensor? rotary_sin=None, Tensor? seqlens_rotary=None, Tensor? q_descale=None, Tensor? k_descale=None, Tensor? v_descale=None, float?
softmax_scale=None, bool is_causal=False, int window_size_left=-1, int window_size_right=-1, int attention_chunk=0, float softcap=0.0, bool
is_rotary_interleaved=False, Tensor? scheduler_metadata=None, int num_splits=0, bool? pack_gqa=None, int sm_margin=0) -> (Tensor(out!), Tensor,
Tensor, Tensor)
bwd(Tensor dout, Tensor q, Tensor k, Tensor v, Tensor out, Tensor softmax_lse, Tensor(dq!)? dq=None, Tensor(dk!)? dk=None, Tensor(dv!)? dv=None,
Tensor? cu_seqlens_q=None, Tensor? cu_seqlens_k=None, Tensor? seqused_q=None, Tensor? seqused_k=None, int? max_seqlen_q=None, int? max_seqlen_k=None,
float? softmax_scale=None, bool is_causal=False, int window_size_left=-1, int window_size_right=-1, float softcap=0.0, bool deterministic=False, int
sm_margin=0) -> (Tensor, Tensor, Tensor, Tensor, Tensor)"""


class Call3:
    """What an operator of FlashAttention 3 is given, by name, and what its sources derive of that."""

    def __init__(self, schema, values, named):
        self.leftpad_k = None
        vars(self).update({a.name: a.default_value for a in schema.arguments})
        vars(self).update(zip((a.name for a in schema.arguments), values), **named)
        q, k = self.q, self.k
        self.batch, self.heads, self.of_keys = q.shape[0] if self.cu_seqlens_q is None else self.cu_seqlens_q.numel() - 1, q.shape[-2], k.shape[-2]
        self.length, self.keys = self.max_seqlen_q if self.cu_seqlens_q is not None else q.shape[1], self.max_seqlen_k if self.cu_seqlens_k is not None else k.shape[1]
        self.is_varlen = any(x is not None for x in (self.cu_seqlens_q, self.cu_seqlens_k, self.seqused_q, self.seqused_k, self.leftpad_k))
        window_left, window_right = (-1 if w >= n - 1 else w for w, n in ((self.window_size_left, self.keys), (self.window_size_right, self.length)))
        window_right = 0 if self.is_causal else window_right
        self.is_causal = window_left < 0 and window_right == 0
        self.is_local = (window_left >= 0 or window_right >= 0) and not self.is_causal
        if self.seqused_q is None and self.seqused_k is None and self.leftpad_k is None:
            lockstep_attention.note(q, k, self.cu_seqlens_q, self.cu_seqlens_k, self.is_causal, window_left, window_right)

    def blocks(self, arch):
        """Rows of queries and of keys that a block of the backward pass has, and a head's elements as it rounds them."""
        d = next(n for n in (64, 96, 128, 192, 256) if max(self.q.shape[-1], self.v.shape[-1]) <= n)
        place, is_bent = (64, 96, 128, 192, 256).index(d), self.softcap > 0
        rows = ((96 if self.is_causal and is_bent else 128), 64, (64 if self.is_causal or self.is_local or is_bent else 80), 64, 64)
        if arch >= 90:
            return rows[place], (128, 128, 128, 96, 80)[place], d
        if arch in (86, 89):
            return (64, 64, 64, 64, 32)[place], (128, 128, 96, 64, 64)[place], d
        return (128, 64, 64, 64, 64)[place], (128, 128, 128, 80, 64)[place], d


def arch_of(q):
    import torch
    major, minor = torch.cuda.get_device_capability(q.device)
    return major * 10 + minor


def fwd_3(c):
    """As many parts of the keys as the program says: PyTorch's own call and its package's say one for training."""
    import torch
    q, splits = c.q, max(c.num_splits, 1)
    kind, rows = torch.bfloat16 if q.dtype == torch.float8_e4m3fn else q.dtype, q.shape[:-2]
    out = torch.empty((*rows, c.heads, c.v.shape[-1]), dtype=kind, device=q.device) if c.out is None else c.out
    lse_shape = (c.batch, c.heads, c.length) if c.cu_seqlens_q is None else (c.heads, rows[0])
    lse, n_sm = floats(q, *lse_shape), torch.cuda.get_device_properties(q.device).multi_processor_count
    is_lpt, is_new = c.is_causal or c.is_local, arch_of(q) >= 90
    needs = (is_lpt and splits == 1) or c.is_varlen if is_new else (c.is_causal and not c.is_varlen) or (c.is_varlen and splits > 1)
    if (needs or c.is_varlen) and c.scheduler_metadata is None:
        n = up(c.batch, 4) * ((2 if c.is_varlen else 0) + (not c.is_local) + is_lpt) + needs
        scheduler = torch.empty(n, dtype=torch.int32, device=q.device)
        launch("flash::prepare_varlen_num_blocks", 1, 1, 1) if c.is_varlen else scheduler.zero_()
    parts = [floats(q, splits, *lse_shape, c.v.shape[-1]), floats(q, splits, *lse_shape)] if splits > 1 else [None, None]
    grid = (n_sm, 1, 1) if is_new and (splits == 1 or c.is_varlen) else (-(-c.length // 128), c.heads * splits, c.batch)
    launch(f"flash::FlashAttnFwdSm{90 if is_new else 80}<{q.shape[-1]}>", *grid, 384 if is_new else 128)
    if splits > 1:
        launch("flash::FlashAttnFwdCombine", -(-c.length * c.heads // 8), 1, c.batch, 256)
    return out, lse, *parts


def bwd_3(c):
    import torch
    check(c.dout, c.q, c.k, c.v)
    q, k, is_grouped = c.q, c.k, c.heads != c.of_keys
    m, n, d = c.blocks(arch_of(q))
    for name, like in (("dq", q), ("dk", k), ("dv", c.v)):
        setattr(c, name, torch.empty_like(like) if getattr(c, name) is None else getattr(c, name))

    def padded(rows, length, unit, heads):
        return (heads, up(rows + c.batch * unit, unit)) if c.is_varlen else (c.batch, heads, up(length, unit))

    of_queries, of_keys = padded(q.numel() // q.shape[-1] // c.heads, c.length, m, c.heads), padded(k.numel() // k.shape[-1] // c.of_keys, c.keys, n, c.of_keys)
    made = [floats(q, *of_queries), floats(q, *of_queries), floats(q, *of_queries, d)]
    made += [floats(q, *of_keys, d, make="zeros") for _ in range(2)] if is_grouped else [None, None]
    semaphore = torch.empty((-(-c.length // m), c.batch, c.heads), dtype=torch.int32, device=q.device)  # noqa: F841
    more = [torch.zeros((-(-c.keys // n), c.batch, c.of_keys), dtype=torch.int32, device=q.device) for _ in range(2 if is_grouped and c.deterministic else 0)]  # noqa: F841
    launch("flash::FlashAttnBwdPreprocess", -(-c.length // m), c.heads, c.batch, 256)
    launch(f"flash::FlashAttnBwdSm{90 if arch_of(q) >= 90 else 80}<{d}>", -(-c.keys // n), c.heads, c.batch, 384)
    launch("flash::FlashAttnBwdPostprocessConvertdQ", -(-c.length // m), c.heads, c.batch, 256)
    for _ in range(2 if is_grouped else 0):
        launch("flash::FlashAttnBwdPostprocessConvertdQ", -(-c.keys // n), c.of_keys, c.batch, 256)
    return tuple(made)


def register_3(module):
    import torch
    module.library = torch.library.Library("flash_attn_3", "FRAGMENT")
    for schema, function in zip(re.split(r"\n(?=bwd)", OPERATORS_3), (fwd_3, bwd_3)):
        name = module.library.define(schema.replace("\n", " "))

        def call(*values, name=name, function=function, **named):
            return function(Call3(getattr(torch.ops.flash_attn_3, name).default._schema, values, named))

        module.library.impl(name, call, "CUDA")


# --- apex ---


def add_product(inputs, grad, weight):
    """weight += grad^T inputs, by cuBLAS."""
    import torch
    rows, n = inputs.numel() // inputs.shape[-1], inputs.shape[-1]
    stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
    STATE["library"]().ls_capture_product(*(ctypes.c_double(x) for x in (grad.shape[-1], n, rows)), 3 if inputs.dtype == torch.float32 else 0, stream)


def multi_tensor(functor, chunk, lists):
    """Launches over lists of tensors: so many blocks, of so many tensors, fit into one."""
    most, blocks, tensors, last = (110, 64, 48, 36, 30)[len(lists) - 1], 0, 0, len(lists[0]) - 1
    for i, tensor in enumerate(lists[0]):
        n, blocks = divmod(blocks + -(-tensor.numel() // chunk), 320)
        tensors = 1 if n else tensors + 1
        for _ in range(n):
            launch(f"multi_tensor_apply_kernel{functor}TensorListMetadataILi{len(lists)}E", 320, 1, 1, 512)
        if blocks and (i == last or tensors == most):
            launch(f"multi_tensor_apply_kernel{functor}TensorListMetadataILi{len(lists)}E", blocks, 1, 1, 512)
            blocks = tensors = 0
        tensors = tensors if blocks else 0


def norms_of(chunk, noop, lists, *rest):
    like, n, is_each = lists[0][0], len(lists[0]), bool(rest and rest[-1] is True)
    output = floats(like, 320, make="zeros")  # noqa: F841
    parts = floats(like, n * max(-(-t.numel() // chunk) for t in lists[0]), make="zeros") if is_each else None  # noqa: F841
    each = floats(like, n if is_each else 0)
    multi_tensor("L2NormFunctor", chunk, lists)
    norm = floats(like, 1)
    launch("multi_tensor_l2norm7cleanup", n if is_each else 1, 1, 1, 512)
    return norm, each


AMP = {"multi_tensor_" + name: lambda chunk, noop, lists, *rest, functor=functor: multi_tensor(functor, chunk, lists) for name, functor in {
    "scale": "ScaleFunctor", "axpby": "AxpbyFunctor", "sgd": "SGDFunctor", "adam": "AdamFunctor", "adagrad": "AdagradFunctor", "novograd": "NovoGradFunctor",
    "adam_capturable": "AdamCapturableFunctor", "adam_capturable_master": "AdamCapturableMasterFunctor"}.items()}
AMP.update({"multi_tensor_" + name: norms_of for name in ("l2norm", "l2norm_mp", "l2norm_scale", "unscale_l2norm")})


def statistics_of(x, shape):
    import torch
    return torch.empty(x.numel() // math.prod(shape), dtype=torch.float32 if x.element_size() < 4 else x.dtype, device=x.device)


def norm_forward(is_rms, is_mixed):
    def forward(x, shape, *rest):
        import torch
        output = torch.empty_like(x, dtype=rest[0].dtype if is_mixed else x.dtype)
        made = [statistics_of(x, shape) for _ in range(1 if is_rms else 2)]
        launch("cuApplyRMSNorm" if is_rms else "cuApplyLayerNorm", 1, min(made[0].numel(), 65535), 1)
        return [output, *made]

    return forward


def norm_backward(is_rms, is_affine):
    """rest: statistics, and the input or output; the shape; weight, and bias."""

    def backward(grad, *rest):
        import torch
        n = 2 if is_rms else 3
        x, shape, weights = rest[n - 1], rest[n], rest[n + 1:n + (1 if not is_affine else 2 if is_rms else 3)]
        made = [torch.empty_like(t) for t in (x, *weights)]
        rows, width = x.numel() // math.prod(shape), math.prod(shape)
        parts = [torch.empty((16, width), dtype=statistics_of(x[:0], (1,)).dtype, device=x.device) for _ in weights]
        if parts:
            launch("cuComputePartGradGammaBeta", -(-width // 32), 16, 1)
            launch("cuComputeGradGammaBeta", -(-width // 32), 1, 1, 256)
        launch("cuComputeGradInput", 1, min(rows, 65535), 1)
        return made if is_affine else made[0]

    return backward


NORMS = {f"{of}{way}{affine}": make(of != "", end) for of in ("", "rms_") for affine in ("", "_affine")
         for way, make, end in (("forward", norm_forward, False), ("backward", norm_backward, affine != ""))}
NORMS.update({f"{of}forward_affine_mixed_dtypes": norm_forward(of != "", True) for of in ("", "rms_")})


def per_block(*shape):
    """Rows of scores that a block of 128 threads has, by the number of keys; as get_batch_per_block() is called."""
    keys = 1 << (shape[1] - 1).bit_length()
    return 128 // min(keys, 32) * (2 if keys <= 128 else 1)


def launch_softmax(x, kind, way):
    rows, n = x.shape[-2], per_block(*x.shape[-2:])
    launch(f"{kind}_softmax_warp_{way}", *((rows, -(-x.shape[0] // n), 1) if x.dim() == 3 else (max(rows // n, 1), x.shape[1], x.shape[0])))


def softmaxes(kind, is_in_place):
    """is_in_place: the backward pass writes over the gradients that it is given."""

    def forward(x, *rest):
        made = x.new_empty(x.shape)
        launch_softmax(x, kind, "forward")
        return made

    def backward(grad, kept, scale):
        grad = grad.contiguous()
        made = grad if is_in_place else grad.new_empty(grad.shape)
        launch_softmax(grad, kind, "backward")
        return made

    return {"forward": forward, "backward": backward, "get_batch_per_block": per_block}


# By the module's name: what it is, its functions, and the package without which nobody asks for it.
MODULES = {
    "flash_attn_2_cuda": ("FlashAttention 2", {"fwd": fwd, "varlen_fwd": varlen_fwd, "bwd": bwd, "varlen_bwd": varlen_bwd}, "flash_attn"),
    "flash_attn_3._C": ("FlashAttention 3", {"begin": register_3}, "flash_attn_interface"),
    "fused_weight_gradient_mlp_cuda": ("apex's fused weight gradients", {"wgrad_gemm_accum_fp32": add_product, "wgrad_gemm_accum_fp16": add_product}, None),
    **{f"{name}_softmax_cuda": ("apex's softmax", softmaxes(name, name in ("scaled", "scaled_upper_triang_masked")), None)
       for name in ("scaled", "scaled_masked", "generic_scaled_masked", "scaled_upper_triang_masked")},
    "amp_C": ("apex's optimizers", AMP, "apex.multi_tensor_apply"),
    "fused_layer_norm_cuda": ("apex's norms", NORMS, "apex.normalization"),
}


class Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """The last that is asked: what is installed comes first."""

    def find_spec(self, name, path, target=None):
        return importlib.util.spec_from_loader(name, self) if name in MODULES and is_there(MODULES[name][2]) else None

    def create_module(self, spec):
        return types.ModuleType(spec.name)

    def exec_module(self, module):
        what, functions, _ = MODULES[module.__name__]
        vars(module).update(functions)
        getattr(module, "begin", lambda module: None)(module)
        STATE["notes"].append(f"{module.__name__} is not installed: in its place stands what the sources of {what} show, in allocations and launches")


def is_there(package):
    return package is None or importlib.machinery.PathFinder.find_spec(package.partition(".")[0]) is not None


def install(meta_path, notes, library):
    STATE.update(notes=notes, library=library)
    meta_path.append(Finder())
