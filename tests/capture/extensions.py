"""Extensions of others that are not built, though their packages are there: FlashAttention 3 and apex. What they allocate is what
their sources say, to the byte. Nothing in it knows of lockstep capture."""

import os
import sys
import tempfile

import torch


def packages(folder):
    """As installed without their libraries."""
    for name, text in {"flash_attn_interface.py": "import flash_attn_3._C", "apex/__init__.py": ""}.items():
        os.makedirs(os.path.dirname(os.path.join(folder, name)), exist_ok=True)
        with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
            file.write(text)
    os.mkdir(os.path.join(folder, "flash_attn_3"))
    sys.path.insert(0, folder)


def takes(what, call, *sizes):
    """call() keeps what it gives, of these sizes, and what it needs meanwhile is gone."""
    def asked():
        return torch.cuda.memory_stats()["requested_bytes.all.current"]

    before = asked()
    kept = call()
    if asked() - before != sum(sizes):
        raise SystemExit(f"{what} keeps {asked() - before} bytes, not {sum(sizes)}")
    return kept


class Attention(torch.autograd.Function):
    """8 heads of queries and 2 of keys, of 128."""

    @staticmethod
    def forward(ctx, q, k, v):
        out, lse, *_ = takes("attention", lambda: torch.ops.flash_attn_3.fwd(q, k, v, is_causal=True, num_splits=1, cu_seqlens_q=None), q.nbytes, 4 * 2 * 8 * 1000)
        ctx.save_for_backward(q, k, v, out, lse)
        return out

    @staticmethod
    def backward(ctx, grad):
        q, k, v, out, lse = ctx.saved_tensors
        dq, dk, dv = (torch.empty_like(t) for t in (q, k, v))
        rows, keys = 64 * 16, 128 * 8  # rounded to blocks
        sizes = [4 * 2 * 8 * rows] * 2 + [4 * 2 * 8 * rows * 128] + [4 * 2 * 2 * keys * 128] * 2
        call = torch.ops.flash_attn_3.bwd
        takes("its gradient", lambda: call(grad.contiguous(), q, k, v, out, lse, dq, dk, dv, is_causal=True), *sizes)
        return dq, dk, dv


class Norm(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight, bias):
        import fused_layer_norm_cuda
        forward = fused_layer_norm_cuda.forward_affine
        y, mean, inverse = takes("norm", lambda: forward(x, (x.shape[-1],), weight, bias, 1e-5), x.nbytes, 4 * 2000, 4 * 2000)
        ctx.save_for_backward(x, weight, bias, mean, inverse)
        return y

    @staticmethod
    def backward(ctx, grad):
        import fused_layer_norm_cuda
        x, weight, bias, mean, inverse = ctx.saved_tensors
        backward = fused_layer_norm_cuda.backward_affine
        return tuple(takes("its gradient", lambda: backward(grad.contiguous(), mean, inverse, x, (x.shape[-1],), weight, bias, 1e-5, False),
                           x.nbytes, weight.nbytes, bias.nbytes))


def main():
    packages(tempfile.mkdtemp())
    import amp_C
    import flash_attn_interface  # noqa: F401
    import scaled_upper_triang_masked_softmax_cuda as softmax
    linear, weight, bias = torch.nn.Linear(1024, 1536, device="cuda", dtype=torch.bfloat16), *(torch.nn.Parameter(torch.zeros(1024, device="cuda", dtype=torch.bfloat16)) for _ in "wb")
    optimizer = torch.optim.SGD([*linear.parameters(), weight, bias], 0.1)
    zero = torch.zeros(1, dtype=torch.int32, device="cuda")
    for _ in range(4):
        q, k, v = (t.reshape(2, 1000, -1, 128) for t in linear(torch.zeros(2, 1000, 1024, device="cuda", dtype=torch.bfloat16)).split([1024, 256, 256], -1))
        y = Norm.apply(Attention.apply(q, k, v).reshape(2, 1000, 1024), weight, bias)
        y.sum().backward()
        scores = torch.zeros(16, 128, 128, device="cuda", dtype=torch.bfloat16)
        takes("softmax", lambda: softmax.forward(scores, 1.0), scores.nbytes)
        takes("its gradient", lambda: softmax.backward(scores, scores, 1.0))  # in its place
        gradients = [p.grad for p in (*linear.parameters(), weight, bias)]
        takes("lengths", lambda: amp_C.multi_tensor_l2norm(65536, zero, [gradients], True), 4, 4 * 4)
        amp_C.multi_tensor_adam(65536, zero, [gradients] * 4, 0.1, 0.9, 0.95, 1e-8, 1, 1, 1, 0.0)
        optimizer.step()
        optimizer.zero_grad()


if __name__ == "__main__":
    main()
