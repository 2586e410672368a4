#!/usr/bin/env python3
"""Times the attention, norms and optimizer of the libraries that users run, as rows of kernelbench.

Each library is taken where it is installed: FlashAttention-2 (flash_attn), FlashAttention-3
(flash_attn_interface), cuDNN's attention (through PyTorch's scaled_dot_product_attention), Transformer
Engine's norms, PyTorch's fused Adam. What is missing or fails costs its rows and is named. The profile has
the schema lockstep.kernelbench/1; `lockstep calibrate` keeps attention by implementation.

    python3 tools/kernelbench/libraries.py --json libraries.json
    lockstep calibrate profile.json libraries.json -o mine.json

Times are isolated, as kernelbench's: one launch between two events, the L2 flushed by reading four times its
size, the median of 21.
"""
import argparse
import datetime
import json
import sys

# Sequences, tokens, heads, key/value heads, width: as kernelbench's own attention (attention.cpp).
SHAPES = [
    (8, 1024, 12, 12, 128), (4, 2048, 12, 12, 128), (2, 4096, 12, 12, 128), (1, 8192, 12, 12, 128),
    (1, 8192, 8, 1, 128), (2, 4096, 32, 8, 128), (4, 2048, 16, 16, 64),
]
NORMS = [(8192, 4096), (8192, 8192), (4096, 12288)]
N_LAUNCHES, N_WARM_UP = 21, 3


def attention_counts(shape, causal, is_backward):
    """FLOPs and bytes as the simulator counts them: 4 s^2 d a head, half if causal, 2.5 times backward."""
    batch, seq, heads, kv_heads, width = shape
    flops = 4 * batch * seq * seq * heads * width * (0.5 if causal else 1)
    moved = 2 * batch * seq * (heads + kv_heads) * width * 2
    return (2.5 * flops, 2 * moved) if is_backward else (flops, moved)


def summary(times_us):
    """Median, and (p90 - p10) / median in percent."""
    times = sorted(times_us)

    def quantile(q):
        at = q * (len(times) - 1)
        below = int(at)
        above = min(below + 1, len(times) - 1)
        return times[below] + (at - below) * (times[above] - times[below])

    median = quantile(0.5)
    return median, 100 * (quantile(0.9) - quantile(0.1)) / median


class Timer:
    """Isolated times on the current GPU."""

    def __init__(self, torch):
        self.torch = torch
        properties = torch.cuda.get_device_properties(0)
        self.flush = torch.ones(4 * getattr(properties, "L2_cache_size", 64 << 20) // 4, dtype=torch.int32, device="cuda")

    def isolated(self, launch):
        torch, pairs = self.torch, []
        for i in range(N_WARM_UP + N_LAUNCHES):
            start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            self.flush.sum()
            start.record()
            launch()
            end.record()
            pairs.append((start, end))
            if i == 0:
                torch.cuda.synchronize()
        torch.cuda.synchronize()
        return summary([1e3 * start.elapsed_time(end) for start, end in pairs[N_WARM_UP:]])


def flash_attention_2(torch, shape, causal):
    from flash_attn import flash_attn_func
    return lambda q, k, v: flash_attn_func(q, k, v, causal=causal)


def flash_attention_3(torch, shape, causal):
    from flash_attn_interface import flash_attn_func

    def run(q, k, v):
        out = flash_attn_func(q, k, v, causal=causal)
        return out[0] if isinstance(out, tuple) else out
    return run


def cudnn_attention(torch, shape, causal):
    from torch.nn.attention import SDPBackend, sdpa_kernel

    def run(q, k, v):
        with sdpa_kernel(SDPBackend.CUDNN_ATTENTION):  # fails rather than takes another
            return torch.nn.functional.scaled_dot_product_attention(
                q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2), is_causal=causal,
                enable_gqa=shape[2] != shape[3]).transpose(1, 2)
    return run


IMPLEMENTATIONS = {"fa2": flash_attention_2, "fa3": flash_attention_3, "cudnn": cudnn_attention}


def row(group, name, shape, dtype, moved, flops, time, note, implementation):
    median, spread = time
    rate = flops / median * 1e-6 if flops > 0 else moved / median * 1e-3
    return {"group": group, "name": name, "shape": "x".join(str(size) for size in shape), "dtype": dtype, "bytes": int(moved),
            "flops": int(flops), "time_us": round(median, 3), "spread_pct": round(spread, 2), "rate": round(rate, 2), "note": note,
            "implementation": implementation}


def time_attention(torch, timer, implementation, shape, causal=True):
    """Forward, and the backward alone: its graph is kept."""
    batch, seq, heads, kv_heads, width = shape

    def tensor(n):
        return torch.randn(batch, seq, n, width, dtype=torch.bfloat16, device="cuda", requires_grad=True)

    q, k, v = tensor(heads), tensor(kv_heads), tensor(kv_heads)
    run = IMPLEMENTATIONS[implementation](torch, shape, causal)
    out = run(q, k, v)
    gradient = torch.randn_like(out)

    def forward():
        with torch.no_grad():
            run(q, k, v)

    def backward():
        torch.autograd.grad(out, (q, k, v), gradient, retain_graph=True)

    for name, launch, is_backward in (("flash-attention-fwd", forward, False), ("flash-attention-bwd", backward, True)):
        flops, moved = attention_counts(shape, causal, is_backward)
        yield row("attention", name, shape, "bf16", moved, flops, timer.isolated(launch), f"causal={int(causal)}", implementation)


def time_norms(torch, timer):
    import transformer_engine.pytorch as te
    for rows, columns in NORMS:
        x = torch.randn(rows, columns, dtype=torch.bfloat16, device="cuda")
        for name, norm in (("rmsnorm-fwd", te.RMSNorm(columns)), ("layernorm-fwd", te.LayerNorm(columns))):
            norm = norm.to(device="cuda", dtype=torch.bfloat16)
            with torch.no_grad():
                time = timer.isolated(lambda: norm(x))
            yield row("operators", name, (rows, columns), "bf16", 4 * rows * columns, 0, time, "", "transformer-engine")


def time_adam(torch, timer):
    for n in (50_000_000, 500_000_000):
        weight = torch.randn(n, device="cuda", requires_grad=True)
        weight.grad = torch.randn(n, device="cuda")
        optimizer = torch.optim.AdamW([weight], fused=True)
        optimizer.step()
        yield row("streams", "adam", (1, n), "fp32", 28 * n, 0, timer.isolated(optimizer.step), "", "pytorch")
        del weight, optimizer


def cases(torch, timer):
    """What there is to time: a name, and what yields its rows."""
    for implementation in IMPLEMENTATIONS:
        for shape in SHAPES:
            yield f"attention {implementation} {shape}", lambda i=implementation, s=shape: time_attention(torch, timer, i, s)
    yield "norms of Transformer Engine", lambda: time_norms(torch, timer)
    yield "fused Adam of PyTorch", lambda: time_adam(torch, timer)


def measure(torch):
    rows, failed, timer = [], [], Timer(torch)
    for name, time in cases(torch, timer):
        try:
            for measured in time():
                rows.append(measured)
                print(f"{measured['implementation']:8} {measured['name']:20} {measured['shape']:22} {measured['time_us']:10.2f} us",
                      file=sys.stderr)
        except Exception as error:  # not installed, not for this GPU, no memory: costs these rows
            failed.append({"case": name, "why": f"{type(error).__name__}: {error}".splitlines()[0]})
            print(f"failed: {name}: {failed[-1]['why']}", file=sys.stderr)
    return rows, failed


def profile(torch, rows, failed):
    properties = torch.cuda.get_device_properties(0)
    return {"schema": "lockstep.kernelbench/1", "gpu": properties.name, "n_sms": properties.multi_processor_count,
            "memory_bytes": properties.total_memory, "cuda": torch.version.cuda or "",
            "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
            "method": f"libraries.py, PyTorch {torch.__version__}: isolated, median of {N_LAUNCHES}", "failed": failed, "rows": rows}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", required=True, metavar="FILE", help="where to write the profile")
    arguments = parser.parse_args()
    try:
        import torch
    except ImportError:
        sys.exit("error: PyTorch is not installed")
    if not torch.cuda.is_available():
        sys.exit("error: PyTorch finds no GPU")
    rows, failed = measure(torch)
    with open(arguments.json, "w", encoding="utf-8") as file:
        json.dump(profile(torch, rows, failed), file, indent=1)
        file.write("\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
