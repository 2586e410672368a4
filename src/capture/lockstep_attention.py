"""Attention whose shapes do not say how much it computes: of sequences that lie one after the other, of windows, of masks that
PyTorch compiles (flex attention). For the trace: how many pairs of queries and keys the mask leaves, in a head, of all sequences.

A list of ends is read where its numbers are known (lockstep_values.py). A compiled mask is in the file of its kernel, as the code
of Inductor: it is run on the host, of long sequences for queries evenly apart. Loaded by lockstep_trace.py and lockstep_extensions.py."""

import ctypes
import os
import re
import sys
import types

import lockstep_values

STATE = {"masks": {}, "files": {}}  # library: while a step is traced; masks: pairs by what they follow from
MOST = 1 << 22  # pairs that are looked at, of a mask


def tell(pairs):
    STATE["library"].ls_capture_pairs(ctypes.c_double(pairs))


# --- sequences ---


def pairs_of(torch, queries, keys, left, right):
    """Of sequences with so many queries and keys, the last of which are at the same place; a query meets those from left before it to
    right after it, below 0: all."""
    ends = queries.cumsum(0)
    last = keys.repeat_interleave(queries) - 1
    at = torch.arange(int(queries.sum())) + (keys - ends).repeat_interleave(queries)
    high = torch.minimum(last, at + right) if right >= 0 else last
    low = (at - left).clamp(min=0) if left >= 0 else torch.zeros_like(at)
    return int((high - low + 1).clamp(min=0).sum())


def lengths(torch, tensor, ends):
    """Of each sequence; None: they are not known."""
    if ends is None:
        return torch.full(tensor.shape[:1], tensor.shape[1], dtype=torch.int64)
    return lockstep_values.host(ends).to(torch.int64).diff() if lockstep_values.is_known(ends) else None


def note(q, k, ends_q, ends_k, is_causal, left=-1, right=-1):
    """Before its kernels. What has neither ends nor a window is as its shapes say."""
    left, right = (-1 if n is None else n for n in (left, right))
    is_whole = q.dim() == 4 and ends_k is None
    if "library" in STATE and (ends_q is None) == is_whole and (not is_whole or left >= 0 or (right >= 0 and not is_causal)):
        lockstep_values.STATE["apart"](count, q, k, ends_q, ends_k, left, 0 if is_causal else right)


def count(q, k, ends_q, ends_k, left, right):
    import torch
    queries, keys = lengths(torch, q, ends_q), lengths(torch, k, ends_k)
    if queries is not None and keys is not None:
        tell(pairs_of(torch, queries, keys, left, right))


def override(torch, table, operator):
    names = [a.name for a in operator._schema.arguments]
    original = torch.library.get_kernel(operator, "CUDA").call_boxed

    def call(keys, *arguments, **named):
        has = dict(zip(names, arguments), **named)
        ends = [has.get("cum_seq_" + way, has.get("cu_seqlens_" + way)) for way in "qk"]
        window = has.get("window_size")
        note(has["query"], has["key"], *ends, has.get("is_causal") or has.get("custom_mask_type"),
             has.get("window_size_left") if window is None else window - 1, has.get("window_size_right"))
        return original(keys, *arguments, **named)

    overload = operator._overloadname
    table.impl(operator._schema.name.split("::")[1] + ("." + overload if overload != "default" else ""), call, "CUDA", with_keyset=True)


# --- masks that are compiled ---

CACHES = ("torch._inductor.runtime.runtime_utils", "torch._inductor.runtime.cache_dir_utils", "torch._inductor.codecache")


def source(name):
    """Of a kernel of Inductor, by the name of its file; "": it is not there."""
    if name not in STATE["files"]:
        folder = next((sys.modules[m].cache_dir() for m in CACHES if hasattr(sys.modules.get(m), "cache_dir")), "")
        try:
            with open(os.path.join(folder, name[1:3], name), encoding="utf-8") as file:
                STATE["files"][name] = file.read()
        except OSError:
            STATE["files"][name] = ""
    return STATE["files"][name]


class Pointer:
    """As code of Triton has it: at a place of it is a number, which is known."""

    def __init__(self, tensor):
        self.tensor = tensor

    def __add__(self, place):
        if not lockstep_values.is_known(self.tensor):
            raise ValueError
        flat = lockstep_values.host(self.tensor).as_strided((lockstep_values.extent(self.tensor) // self.tensor.element_size(),), (1,))
        return flat[place]


def language(torch):
    def full(shape, value, kind):
        return torch.tensor(value, dtype=kind)

    return types.SimpleNamespace(load=lambda at, *rest, **named: at, full=full, where=torch.where, minimum=torch.minimum, maximum=torch.maximum,
                                 device_assert=lambda *what: None, int1=torch.bool, int8=torch.int8, int32=torch.int32, int64=torch.int64)


def share_of(torch, code, arguments, n_queries, n_keys, n_batch, n_heads):
    """Of all pairs that a mask leaves; None: it is in words that are not here, or follows from numbers that are not known."""
    batches, heads = (range(size) if re.search(r"\(off_" + name, code) else (0,) for name, size in (("z", n_batch), ("h", n_heads)))
    n = min(n_queries, max(MOST // (n_keys * len(batches) * len(heads)), 64))
    m = ((torch.arange(n) * 2 + 1) * n_queries // (2 * n)).unsqueeze(1)
    total, program = 0.0, compile(code, "mask", "exec")
    for z in batches:
        for h in heads:
            names = {"m": m, "n": torch.arange(n_keys).unsqueeze(0), "off_z": z, "off_h": h, "off_hq": h, "tl": language(torch),
                     **{name: Pointer(t) for name, t in arguments.items() if name.startswith("in_ptr")}}
            try:
                exec(program, names)
            except (AttributeError, NameError, TypeError, ValueError, RuntimeError):
                return None
            total += float(torch.as_tensor(names["mask_mod_output"]).expand(n, n_keys).double().mean())
    return total / len(batches) / len(heads)


def pairs_of_mask(torch, text, name, values):
    """Of a kernel of flex attention, with the code of the file; None: it is not known."""
    words = re.search(r"def " + re.escape(name) + r"\(([^)]*)\)", text)[1].split(", ")
    arguments = {word: value for word, value in zip(words, values) if isinstance(value, torch.Tensor)}
    q, k = arguments["arg_Q"], arguments["arg_K"]
    all_pairs = q.shape[0] * q.shape[2] * k.shape[2]
    block, of_keys = (int(re.search(rf"SPARSE_{way}_BLOCK_SIZE : tl.constexpr = (\d+)", text)[1]) for way in ("Q", "KV"))
    lines = re.search(r"if not IS_FULL_BLOCKS:\n((?: +(?:tmp\w+ = |tl\.device_assert).*\n)*) +(mask_mod_output = .*)\n", text)
    code = "\n".join(line.strip() for line in lines[1].split("\n")) + lines[2] if lines else ""
    counts, found = [arguments[word] for word in ("arg_KV_NUM_BLKS", "arg_FULL_KV_NUM_BLKS") if word in arguments], []
    if re.search(r"\((?:m|n)\)", code):
        known = [bytes(lockstep_values.host(t).contiguous().view(torch.uint8).numpy()) if lockstep_values.is_known(t) else None
                 for word, t in arguments.items() if word in code]
        key = code, q.shape, k.shape, *known
        if key not in STATE["masks"]:
            STATE["masks"][key] = share_of(torch, code, arguments, q.shape[2], k.shape[2], q.shape[0], q.shape[1])
        found += [all_pairs * STATE["masks"][key]] if STATE["masks"][key] is not None else []
    elif code and block >= q.shape[2] and of_keys >= k.shape[2]:
        found.append(all_pairs)
    if all(map(lockstep_values.is_known, counts)):  # what its blocks have, at most
        n_blocks = sum(float(lockstep_values.host(t).double().mean()) * t.shape[-1] for t in counts)
        found.append(min(n_blocks * q.shape[0] * block * of_keys, all_pairs))
    return min(found, default=None)


def note_mask(torch, text, name, values):
    try:
        pairs = pairs_of_mask(torch, text, name, values)
    except (KeyError, TypeError):  # of a PyTorch whose kernels are written otherwise
        return
    if pairs is not None:
        tell(pairs)


def begin(torch, library):
    """A step is traced from now on."""
    STATE["library"] = library
    record = torch._C._profiler._RecordFunctionFast

    class Recorded:
        """In its place, of a kernel of flex attention."""

        def __init__(self, kernel, name, values, facts):
            self.name, self.values, self.record = name, values, record(name, values, facts)
            self.text = source(str(getattr(getattr(kernel, "fn", None), "module", "")).split(".")[-1] + ".py")

        def __enter__(self):
            self.record.__enter__()
            lockstep_values.STATE["apart"](note_mask, torch, self.text, self.name, self.values)

        def __exit__(self, *what):
            return self.record.__exit__(*what)

    def begun(name, *what, **named):
        is_flex = name.startswith("triton_tem") and "flex_attention" in name and len(what) == 2
        return Recorded(sys._getframe(1).f_locals.get("self"), name, *what) if is_flex else record(name, *what, **named)

    torch._C._profiler._RecordFunctionFast = begun
    if hasattr(torch.library, "get_kernel"):
        STATE["table"] = torch.library.Library("aten", "IMPL")
        for operator in lockstep_values.operators(torch, [f"_{of}_attention_{way}" for of in ("flash", "efficient", "cudnn") for way in ("forward", "backward")]):
            override(torch, STATE["table"], operator)
