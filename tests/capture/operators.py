"""Microseconds of a core for an operator of PyTorch, at the depth of a real program: captured, and, with python -I, by the
stand-ins alone, when neither values nor memory are looked at. At most so many more are allowed: operators.py [REFERENCE], where
REFERENCE is what the second printed.

    lockstep capture --memory -- python -I operators.py 2> alone; lockstep capture --memory -- python operators.py alone"""

import ctypes
import os
import re
import sys
import time

MOST = 30
if sys.flags.isolated:  # then nothing else has loaded them
    os.environ["LOCKSTEP_CAPTURE"] += " cuda=13020 driver=13020 nccl=23007 cudnn=92600"
    for name in "lockstep-capture.so cuda.so.1 cudart.so.13 cublasLt.so.13 cublas.so.13 nccl.so.2 nvrtc.so.13 nvidia-ml.so.1 cudnn.so.9 cupti.so.13".split():
        ctypes.CDLL(os.path.join(os.environ["LOCKSTEP_CAPTURE_LIBRARIES"], "lib" + name), ctypes.RTLD_GLOBAL)

import torch  # noqa: E402


def cases():
    f, wide, weight = (torch.zeros(shape, device="cuda") for shape in (1024, (256, 256), (256, 256)))
    k, mask = torch.arange(1024, device="cuda"), torch.zeros(1024, dtype=torch.bool, device="cuda")
    long = torch.zeros(50 << 18, dtype=torch.int32, device="cuda")
    weight.requires_grad_()
    return {"add": lambda: f + f, "add_": lambda: f.add_(1), "mm": lambda: wide @ wide, "copy_": lambda: f.copy_(f), "to": lambda: f.to(torch.bfloat16),
            "sum": lambda: f.sum(), "cat": lambda: torch.cat((f, f)), "zero_": lambda: f.zero_(), "where": lambda: torch.where(mask, f, f),
            "softmax": lambda: f.softmax(0), "linear, autograd": lambda: torch.nn.functional.linear(wide, weight), "empty": lambda: torch.empty_like(f),
            "embedding": lambda: torch.nn.functional.embedding(k[:16], wide), "add of integers": lambda: k + k, "eq of integers": lambda: k == k,
            "cumsum of integers": lambda: k.cumsum(0), "copy_ of integers": lambda: k.copy_(k), "arange": lambda: torch.arange(1024, device="cuda"),
            "zero_ of 50 MiB of integers": lambda: long.zero_(), "compare floats": lambda: f < 0, "topk": lambda: f.topk(4), "item": lambda: k[0].item()}


def best_of(call):
    best = float("inf")
    for _ in range(20):
        began = time.thread_time()
        for _ in range(100):
            call()
        best = min(best, (time.thread_time() - began) / 100 * 1e6)
    return best


def main():
    known = dict(re.findall(r"^(.*\S) +([\d.]+) us$", open(sys.argv[1], encoding="utf-8").read(), re.M)) if sys.argv[1:] else {}
    found = {name: best_of(call) for name, call in cases().items()}
    for name, us in found.items():
        print(f"{name:30} {us:8.2f} us")
    more = {name: us - float(known.get(name, 0)) for name, us in found.items()}
    print(f"at most {max(more.values()):.1f} us more, of {max(more, key=more.get)}")
    assert max(more.values()) <= MOST
    model = torch.nn.Linear(8, 8, device="cuda")
    optimizer = torch.optim.SGD(model.parameters())
    for _ in range(4):
        model(torch.zeros(8, 8, device="cuda")).sum().backward()
        optimizer.step()


def deep(n):
    return deep(n - 1) if n else main()


deep(50)
