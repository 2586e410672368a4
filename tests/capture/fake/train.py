import os

import torch

world = int(os.environ.get("WORLD_SIZE", "1"))
parameters = [torch.nn.Parameter(int(os.environ.get("BYTES", 1 << 30)) // world) for layer in range(4)]
optimizer = torch.optim.Adam(parameters)
for step in range(10):
    activations = torch.Tensor(1 << 28)
    for p in parameters:
        p.grad = torch.Tensor(p.size)
    torch.cuda.product()
    waiting = [torch.Tensor(1 << 28)] if torch.cuda.is_busy() else []
    for block in (activations, *waiting):
        block.free()
    optimizer.step()
    for p in parameters:
        p.grad.free()
        p.grad = None
    print("step", step)
