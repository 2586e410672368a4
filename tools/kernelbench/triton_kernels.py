#!/usr/bin/env python3
"""Times each kernel that libraries written in Triton launch, forward and backward, as profiles of PyTorch show them.

What is there is timed: the scan of Mamba-2 (mamba_ssm), gated delta nets (fla), Liger-Kernel's norm, SwiGLU and loss, and PyTorch's
own products of experts (torch._grouped_mm). A row is one launch of a kernel of one case: the median of seven profiled calls behind
three, with what the case's tensors are. Kernels of a case are in the order in which they start.

    python3 tools/kernelbench/triton_kernels.py [--only PATTERN] --json triton.json

Needs torch, triton and a GPU; a library that is not there costs its cases and is named.
"""
import argparse
import datetime
import fnmatch
import json
import statistics
import sys

N_WARM_UP, N_CALLS = 3, 7

# Sequences, tokens, heads, width of a head, groups, states, tokens of a chunk.
SCANS = [(1, 8192, 64, 64, 8, 128, 128), (1, 8192, 128, 64, 8, 128, 128), (1, 8192, 32, 64, 2, 128, 128), (2, 4096, 128, 64, 8, 128, 128),
         (1, 8192, 128, 64, 8, 128, 256)]
# Sequences, tokens, heads of keys, heads of values, width of a head.
DELTAS = [(1, 8192, 16, 32, 128), (1, 8192, 32, 32, 128), (2, 4096, 8, 16, 128)]
# Tokens, width.
NORMS = [(8192, 4096), (8192, 2048), (32 * 8192, 128), (16384, 5120)]
# Experts here, tokens in all, width, width of an expert.
EXPERTS = [(16, 65536, 2048, 768), (8, 32768, 4096, 1536), (32, 32768, 7168, 2048), (128, 65536, 2048, 768)]


def scan(torch, case):
    from mamba_ssm.ops.triton.ssd_combined import mamba_chunk_scan_combined
    batch, seq, heads, width, groups, states, chunk = case
    x = leaf(torch, batch, seq, heads, width)
    b, c = (leaf(torch, batch, seq, groups, states) for _ in range(2))
    dt = leaf(torch, batch, seq, heads)
    a, d, bias = (torch.rand(heads, device="cuda").neg_().requires_grad_() for _ in range(3))
    return (x, b, c, dt, a, d, bias), lambda: mamba_chunk_scan_combined(x, dt, a, b, c, chunk, D=d, dt_bias=bias, dt_softplus=True)


def gated_norm(torch, case):
    from mamba_ssm.ops.triton.layernorm_gated import rmsnorm_fn
    batch, seq, heads, width, groups, _, _ = case
    x, z = (leaf(torch, batch * seq, heads * width) for _ in range(2))
    weight = torch.ones(heads * width, dtype=torch.bfloat16, device="cuda", requires_grad=True)
    return (x, z, weight), lambda: rmsnorm_fn(x, weight, None, z=z, group_size=heads * width // groups, norm_before_gate=False)


def delta(torch, case):
    from fla.ops.gated_delta_rule import chunk_gated_delta_rule
    batch, seq, key_heads, heads, width = case
    q, k = (leaf(torch, batch, seq, key_heads, width) for _ in range(2))
    v = leaf(torch, batch, seq, heads, width)
    g = torch.nn.functional.logsigmoid(torch.randn(batch, seq, heads, device="cuda")).requires_grad_()
    beta = torch.rand(batch, seq, heads, dtype=torch.bfloat16, device="cuda").requires_grad_()
    return (q, k, v, g, beta), lambda: chunk_gated_delta_rule(q, k, v, g, beta, use_qk_l2norm_in_kernel=True)[0]


def liger_norm(torch, case):
    from liger_kernel.ops.rms_norm import LigerRMSNormFunction
    x = leaf(torch, *case)
    weight = torch.ones(case[1], dtype=torch.bfloat16, device="cuda", requires_grad=True)
    return (x, weight), lambda: LigerRMSNormFunction.apply(x, weight, 1e-6, 0.0, "llama", False)


def liger_swiglu(torch, case):
    from liger_kernel.ops.swiglu import LigerSiLUMulFunction
    a, b = (leaf(torch, *case) for _ in range(2))
    return (a, b), lambda: LigerSiLUMulFunction.apply(a, b)


def eager_norm(torch, case):
    x = leaf(torch, *case)
    weight = torch.ones(case[1], dtype=torch.bfloat16, device="cuda", requires_grad=True)
    return (x, weight), lambda: torch.nn.functional.rms_norm(x, (case[1],), weight, 1e-6)


def experts(torch, case):
    n, tokens, width, inner = case
    x = leaf(torch, tokens, width)
    weight = leaf(torch, n, width, inner)
    ends = torch.linspace(tokens // n, tokens, n, device="cuda").to(torch.int32)
    return (x, weight), lambda: torch._grouped_mm(x, weight, offs=ends)


CASES = ([("mamba-2 scan", scan, c) for c in SCANS] + [("mamba-2 gated norm", gated_norm, c) for c in SCANS[:3]] +
         [("gated delta net", delta, c) for c in DELTAS] + [("liger norm", liger_norm, c) for c in NORMS] +
         [("liger swiglu", liger_swiglu, c) for c in ((8192, 14336), (65536, 768))] + [("pytorch rms_norm", eager_norm, c) for c in NORMS] +
         [("pytorch grouped_mm", experts, c) for c in EXPERTS])


def leaf(torch, *shape):
    return torch.randn(*shape, dtype=torch.bfloat16, device="cuda", requires_grad=True)


def kernels_of(torch, inputs, forward):
    """Lists of (name, microseconds) of each call, forward and then backward."""
    from torch.profiler import ProfilerActivity, profile
    gradient = torch.randn_like(forward())

    def backward(out):
        torch.autograd.grad(out, inputs, gradient)

    for _ in range(N_WARM_UP):
        backward(forward())
    torch.cuda.synchronize()
    calls = {"forward": [], "backward": []}
    for _ in range(N_CALLS):
        out = None
        for pass_name in calls:
            with profile(activities=[ProfilerActivity.CUDA, ProfilerActivity.CPU]) as profiler:
                if pass_name == "forward":
                    out = forward()
                else:
                    backward(out)
                torch.cuda.synchronize()
            found = [e for e in profiler.events() if e.device_type == torch.autograd.DeviceType.CUDA]
            found.sort(key=lambda e: e.time_range.start)
            calls[pass_name].append([(e.name, e.time_range.elapsed_us()) for e in found])
    return calls


def rows_of(torch, name, make, case):
    inputs, forward = make(torch, case)
    for pass_name, calls in kernels_of(torch, inputs, forward).items():
        shape = max((tuple(n for n, _ in c) for c in calls), key=lambda names: sum(tuple(n for n, _ in c) == names for c in calls))
        alike = [c for c in calls if tuple(n for n, _ in c) == shape]
        for i, kernel in enumerate(shape):
            yield {"case": name, "shape": "x".join(map(str, case)), "pass": pass_name, "kernel": kernel[:120],
                   "time_us": round(statistics.median(c[i][1] for c in alike), 3), "calls": len(alike)}


def write(path, torch, triton, rows, failed):
    properties = torch.cuda.get_device_properties(0)
    result = {"schema": "lockstep.launches/1", "gpu": properties.name, "n_sms": properties.multi_processor_count,
              "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
              "method": f"triton_kernels.py, PyTorch {torch.__version__}, Triton {triton.__version__}: spans of the profiler, "
                        f"median of {N_CALLS}", "failed": failed, "rows": rows}
    with open(path, "w", encoding="utf-8") as file:
        json.dump(result, file, indent=1)
        file.write("\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="*", help="cases whose name matches this pattern of the shell")
    parser.add_argument("--json", required=True, metavar="FILE", help="where to write the rows, again behind each case")
    options = parser.parse_args()
    import torch
    import triton
    rows, failed = [], []
    for name, make, case in CASES:
        if not fnmatch.fnmatch(name, options.only):
            continue
        try:
            rows += rows_of(torch, name, make, case)
        except Exception as error:  # not installed, no memory: costs these rows
            failed.append({"case": f"{name} {case}", "why": f"{type(error).__name__}: {error}".splitlines()[0]})
            print(f"failed: {name} {case}: {failed[-1]['why']}", file=sys.stderr)
        write(options.json, torch, triton, rows, failed)
    return 0


if __name__ == "__main__":
    sys.exit(main())
