"""Kernels of torch.compile that are tuned when they first run: a second capture allocates for that what the first one did."""

import torch


@torch.compile
def block(x, weight):
    return (torch.nn.functional.gelu(x @ weight).softmax(-1) * x.sin()).sum()


weight = torch.nn.Parameter(torch.zeros(4096, 4096, device="cuda", dtype=torch.bfloat16))
optimizer = torch.optim.SGD([weight])
for _ in range(4):
    block(torch.zeros(4096, 4096, device="cuda", dtype=torch.bfloat16), weight).backward()
    optimizer.step()
