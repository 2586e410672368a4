"""Eight blocks of attention and MLP between an embedding and a head, trained by one of PyTorch's ways to be data parallel:
blocks.py ddp|fsdp1|fsdp2. Nothing in it knows of lockstep capture."""

import os
import sys

import torch
import torch.distributed as dist
from torch import nn
from torch.nn import functional as F

WIDTH, HEADS, WORDS, LENGTH = 2048, 16, 32000, 2048


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(WIDTH)
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x):
        b, t, _ = x.shape
        q, k, v = self.qkv(self.norm(x)).view(b, t, 3, HEADS, WIDTH // HEADS).permute(2, 0, 3, 1, 4)
        x = x + self.out(F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(b, t, WIDTH))
        return x + self.down(F.gelu(self.up(x)))


def parallel(model, way):
    if way == "ddp":
        return nn.parallel.DistributedDataParallel(model)
    if way == "fsdp1":
        from torch.distributed.fsdp import FullyShardedDataParallel
        from torch.distributed.fsdp.wrap import ModuleWrapPolicy
        return FullyShardedDataParallel(model, auto_wrap_policy=ModuleWrapPolicy({Block}), device_id=torch.cuda.current_device())
    from torch.distributed.fsdp import fully_shard
    for block in model:
        fully_shard(block)
    return fully_shard(model)


def main():
    dist.init_process_group("nccl")
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    with torch.device("cuda"):
        model = nn.Sequential(nn.Embedding(WORDS, WIDTH), *[Block() for _ in range(8)], nn.Linear(WIDTH, WORDS))
    model = parallel(model, sys.argv[1])
    optimizer = torch.optim.AdamW(model.parameters())
    for _ in range(10):
        tokens = torch.randint(0, WORDS, (2, LENGTH), device="cuda")
        with torch.autocast("cuda", torch.bfloat16):
            loss = F.cross_entropy(model(tokens).view(-1, WORDS).float(), tokens.view(-1))
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        print(loss.item())


main()
