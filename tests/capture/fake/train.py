import os

import torch

world = int(os.environ.get("WORLD_SIZE", "1"))
parameters = [torch.Tensor(int(os.environ.get("BYTES", 1 << 30)) // world) for layer in range(4)]
optimizer = torch.optim.Adam(parameters)
for step in range(10):
    activations = torch.Tensor(1 << 28)
    for p in parameters:
        p.grad = torch.Tensor(p.size)
    torch.cuda.product()
    activations.free()
    optimizer.step()
    for p in parameters:
        p.grad.free()
        p.grad = None
    print("step", step)
