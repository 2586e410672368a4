"""Attention whose shapes do not say how much it computes: sequences that lie one after the other, by each of PyTorch's backends and
by FlashAttention 3, with a window too; masks that are compiled. Nothing in it knows of lockstep capture, but for

    attention.py check FOLDER    whether a trace of it says of each how many pairs of queries and keys are multiplied"""

import collections
import gzip
import json
import os
import sys

TOKENS, ENDS, WIDTH, WINDOW = 4096, [0, 100, 612, 2048, 4096], 1024, 256


def pairs(lengths, window=TOKENS):
    return sum(min(i + 1, window) for n in lengths for i in range(n))


def wanted():
    """How often which number of pairs, forward and backward."""
    lengths = [b - a for a, b in zip(ENDS, ENDS[1:])]
    return {pairs(lengths): 2 * 5, pairs(lengths, WINDOW): 2 * 2, TOKENS * TOKENS // 2: 2, pairs([TOKENS], WINDOW): 2}


def check(folder):
    with gzip.open(os.path.join(folder, "rank-0.json.gz"), "rt", encoding="utf-8") as file:
        did = json.load(file)["did"]
    found = dict(collections.Counter(line[2] for line in did if line[0] == "v"))
    # a mask is looked at for queries evenly apart: within a thousandth of its pairs
    for n in wanted():
        near = [m for m in found if abs(m - n) < 1e-3 * n]
        if sum(found[m] for m in near) != wanted()[n]:
            raise SystemExit(f"{wanted()[n]} attentions have {n} pairs, not {found}")
    print("pairs of attention are as they should be")


def main():
    import tempfile

    import extensions
    import torch
    from torch.nn.attention import SDPBackend, sdpa_kernel
    from torch.nn.attention.flex_attention import create_block_mask, flex_attention
    from torch.nn.attention.varlen import varlen_attn
    extensions.packages(tempfile.mkdtemp())
    import flash_attn_interface  # noqa: F401

    class Attention3(torch.autograd.Function):
        @staticmethod
        def forward(ctx, q, k, v, left):
            out, lse, *_ = torch.ops.flash_attn_3.fwd(q, k, v, cu_seqlens_q=ends, cu_seqlens_k=ends, max_seqlen_q=TOKENS // 2, max_seqlen_k=TOKENS // 2,
                                                      is_causal=True, window_size_left=left, num_splits=1)
            ctx.save_for_backward(q, k, v, out, lse)
            ctx.left = left
            return out

        @staticmethod
        def backward(ctx, grad):
            q, k, v, out, lse = ctx.saved_tensors
            made = [torch.empty_like(t) for t in (q, k, v)]
            torch.ops.flash_attn_3.bwd(grad.contiguous(), q, k, v, out, lse, *made, cu_seqlens_q=ends, cu_seqlens_k=ends, max_seqlen_q=TOKENS // 2,
                                       max_seqlen_k=TOKENS // 2, is_causal=True, window_size_left=ctx.left)
            return (*made, None)

    def by_backend(q, k, v, backend):
        q, k, v = (torch.nested.nested_tensor_from_jagged(t, ends.long(), min_seqlen=100, max_seqlen=TOKENS // 2).transpose(1, 2) for t in (q, k, v))
        with sdpa_kernel(backend):
            return torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True).values().transpose(0, 1)

    def by_mask(q, k, v, mask):
        return flex(*(t.transpose(0, 1).unsqueeze(0) for t in (q, k, v)), block_mask=mask)

    def halves(b, h, q, k):
        return document[q] == document[k]

    def window(b, h, q, k):
        return (q >= k) & (q - k < WINDOW)

    flex = torch.compile(flex_attention)
    ends = torch.tensor(ENDS, dtype=torch.int32).to("cuda")
    document = (torch.arange(TOKENS) * 2 // TOKENS).to("cuda")
    linear = torch.nn.Linear(WIDTH, 3 * WIDTH, device="cuda", dtype=torch.bfloat16)
    optimizer = torch.optim.SGD(linear.parameters(), 0.1)
    for _ in range(3):
        q, k, v = (t.reshape(TOKENS, 8, WIDTH // 8) for t in linear(torch.zeros(TOKENS, WIDTH, device="cuda", dtype=torch.bfloat16)).split(WIDTH, -1))
        masks = [torch.compile(create_block_mask)(mask, None, None, TOKENS, TOKENS, device="cuda") for mask in (halves, window)]
        results = [varlen_attn(q, k, v, ends, ends, TOKENS // 2, TOKENS // 2, window_size=(left, 0)) for left in (-1, WINDOW - 1)]
        results += [by_backend(q, k, v, b) for b in (SDPBackend.FLASH_ATTENTION, SDPBackend.EFFICIENT_ATTENTION, SDPBackend.CUDNN_ATTENTION)]
        results += [Attention3.apply(q, k, v, left) for left in (-1, WINDOW - 1)] + [by_mask(q, k, v, mask) for mask in masks]
        sum(r.sum() for r in results).backward()
        optimizer.step()
        optimizer.zero_grad()


if __name__ == "__main__":
    check(sys.argv[2]) if sys.argv[1:2] == ["check"] else main()
