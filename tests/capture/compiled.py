"""What is compiled of a program is its own: as many graphs and breaks as on a GPU, whatever is computed below its operators."""

import torch
from torch._dynamo.utils import counters


@torch.compile(backend="aot_eager", dynamic=True)
def count(tokens):
    ones = (tokens > 1).sum()
    print("tokens", end=" ")  # a graph ends here, and what is left of the frame begins another
    for kept in (tokens[tokens > 2], tokens.nonzero()):
        ones = ones + kept.shape[0]
    return ones


def graphs_of(device):
    """Of two steps, as PyTorch counts them."""
    torch._dynamo.reset()
    counters.clear()
    for step in range(2):
        n = count(torch.arange(5 + step, device=device))
        if device == "cpu" or hasattr(torch.library, "get_kernel"):  # what selects is computed from PyTorch 2.9 on
            assert n.item() == 9 + 3 * step, n
    return {**counters["stats"], "breaks": sorted(counters["graph_break"])}


there, here = graphs_of("cuda"), graphs_of("cpu")
assert there == here and there["unique_graphs"] == 3, (there, here)
weight = torch.nn.Parameter(torch.zeros(512, 512, device="cuda"))
optimizer = torch.optim.SGD([weight])
for _ in range(4):
    (weight @ weight).sum().backward()
    optimizer.step()
