"""A small Llama of two layers in plain PyTorch, sharded by FSDP2 as torchtitan shards: for tests of lockstep capture --compare."""
import os

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
from torch.nn import functional as F

HIDDEN, HEADS, GROUPS, FFN, WORDS, LENGTH = 1024, 8, 2, 2816, 32000, 2048


def rotate(x, cos, sin):
    a, b = x.float().chunk(2, -1)
    return torch.cat((a * cos - b * sin, b * cos + a * sin), -1).to(x.dtype)


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        width = HIDDEN // HEADS
        self.wq, self.wo = nn.Linear(HIDDEN, HIDDEN, bias=False), nn.Linear(HIDDEN, HIDDEN, bias=False)
        self.wk, self.wv = (nn.Linear(HIDDEN, GROUPS * width, bias=False) for _ in range(2))

    def forward(self, x, cos, sin):
        b, t, _ = x.shape
        q, k, v = (w(x).view(b, t, -1, HIDDEN // HEADS).transpose(1, 2) for w in (self.wq, self.wk, self.wv))
        q, k = rotate(q, cos, sin), rotate(k, cos, sin)
        out = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
        return self.wo(out.transpose(1, 2).reshape(b, t, HIDDEN))


class FeedForward(nn.Module):
    def __init__(self):
        super().__init__()
        self.w1, self.w3 = nn.Linear(HIDDEN, FFN, bias=False), nn.Linear(HIDDEN, FFN, bias=False)
        self.w2 = nn.Linear(FFN, HIDDEN, bias=False)

    def forward(self, x):
        return self.w2(F.silu(self.w1(x)) * self.w3(x))


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.attention_norm, self.ffn_norm = nn.RMSNorm(HIDDEN), nn.RMSNorm(HIDDEN)
        self.attention, self.feed_forward = Attention(), FeedForward()

    def forward(self, x, cos, sin):
        h = x + self.attention(self.attention_norm(x), cos, sin)
        return h + self.feed_forward(self.ffn_norm(h))


class Llama(nn.Module):
    def __init__(self):
        super().__init__()
        self.tok_embeddings, self.norm = nn.Embedding(WORDS, HIDDEN), nn.RMSNorm(HIDDEN)
        self.layers = nn.ModuleList(Layer() for _ in range(2))
        self.output = nn.Linear(HIDDEN, WORDS, bias=False)
        angles = torch.arange(LENGTH, device="cuda")[:, None] / 10000 ** torch.linspace(0, 1, HIDDEN // HEADS // 2, device="cuda")
        self.cos, self.sin = angles.cos(), angles.sin()

    def forward(self, tokens):
        h = self.tok_embeddings(tokens)
        for layer in self.layers:
            h = layer(h, self.cos, self.sin)
        return self.output(self.norm(h))


def main():
    dist.init_process_group("nccl")
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    with torch.device("cuda"):
        model = Llama()
    policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
    for layer in model.layers:
        fully_shard(layer, mp_policy=policy)
    fully_shard(model, mp_policy=policy)
    optimizer = torch.optim.AdamW(model.parameters(), fused=True)
    for _ in range(10):
        tokens = torch.randint(0, WORDS, (1, LENGTH), device="cuda")
        loss = F.cross_entropy(model(tokens).view(-1, WORDS).float(), tokens.view(-1))
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()


main()
