#!/usr/bin/env python3
"""Times training steps of Llama's layers in JAX on one GPU, as XLA compiles them, and their kernels.

The model is written as programs in JAX write it: fp32 weights that are cast to bf16 for products, layers under lax.scan (or unrolled),
attention of cuDNN, norms in fp32, the loss from one-hot words, AdamW of optax behind a clipped norm; a layer is made again in the
backward pass (remat) or keeps its products. A row has the median of five steps behind three.

    python3 tools/kernelbench/steps_jax.py [--only PATTERN] --json steps.json [--xplane FOLDER]

Needs jax with a GPU and optax. The JSON has, of each step, its time, the peak of XLA's allocator and each kernel of one profiled step.
"""
import argparse
import collections
import datetime
import fnmatch
import functools
import json
import pathlib
import statistics
import sys
import tempfile
import time

N_WARM_UP, N_STEPS = 3, 5

# Name, layers, width, heads, of keys, width of the MLP, words, sequences, tokens, and what is not usual.
STEPS = [
    ("jax-llama8b-l4-remat", 4, 4096, 32, 8, 14336, 128256, 2, 4096, "remat"),
    ("jax-llama8b-l4", 4, 4096, 32, 8, 14336, 128256, 2, 4096, ""),
    ("jax-llama8b-l4-unrolled", 4, 4096, 32, 8, 14336, 32000, 2, 4096, "unrolled"),
    ("jax-llama2-7b-l8-remat", 8, 4096, 32, 32, 11008, 32000, 4, 4096, "remat"),
]


def model_of(jax, step):
    jnp = jax.numpy
    _, n_layers, width, heads, kv_heads, inner, words, batch, seq, what = step
    head = width // heads
    shapes = {"norm1": (width,), "norm2": (width,), "q": (width, heads, head), "k": (width, kv_heads, head), "v": (width, kv_heads, head),
              "o": (heads, head, width), "gate": (width, inner), "up": (width, inner), "down": (inner, width)}

    def make(key):
        keys = iter(jax.random.split(key, 64))
        layers = {n: 0.02 * jax.random.normal(next(keys), (n_layers,) + s, jnp.float32) for n, s in shapes.items()}
        return {"layers": layers, "words": 0.02 * jax.random.normal(next(keys), (words, width)), "norm": jnp.ones((width,)),
                "head": 0.02 * jax.random.normal(next(keys), (width, words))}

    def norm(x, weight):
        x32 = x.astype(jnp.float32)
        return (x32 * jax.lax.rsqrt(jnp.mean(x32 * x32, -1, keepdims=True) + 1e-5) * weight).astype(jnp.bfloat16)

    def rotate(x):
        rates = 500000.0 ** (-jnp.arange(0, head, 2) / head)
        angle = jnp.arange(seq)[:, None, None] * rates
        a, b = jnp.split(x.astype(jnp.float32), 2, -1)
        return jnp.concatenate([a * jnp.cos(angle) - b * jnp.sin(angle), b * jnp.cos(angle) + a * jnp.sin(angle)], -1).astype(x.dtype)

    def layer(x, w):
        w16 = {n: v.astype(jnp.bfloat16) for n, v in w.items()}
        y = norm(x, w["norm1"])
        q, k, v = (jnp.einsum("bsd,dnh->bsnh", y, w16[n]) for n in "qkv")
        out = jax.nn.dot_product_attention(rotate(q), rotate(k), v, is_causal=True, implementation="cudnn")
        x = x + jnp.einsum("bsnh,nhd->bsd", out, w16["o"])
        y = norm(x, w["norm2"])
        return x + (jax.nn.silu(y @ w16["gate"]) * (y @ w16["up"])) @ w16["down"], None

    def loss(w, tokens):
        x = w["words"].astype(jnp.bfloat16)[tokens]
        body = jax.checkpoint(layer) if what == "remat" else layer
        if what == "unrolled":
            for i in range(n_layers):
                x, _ = body(x, {n: v[i] for n, v in w["layers"].items()})
        else:
            x, _ = jax.lax.scan(body, x, w["layers"])
        logits = (norm(x, w["norm"]) @ w["head"].astype(jnp.bfloat16)).astype(jnp.float32)
        chosen = jax.nn.one_hot(tokens, words)
        return jnp.mean(jax.nn.logsumexp(logits, -1) - jnp.sum(logits * chosen, -1))

    return make, loss


def program_of(jax, optax, step):
    make, loss = model_of(jax, step)
    optimizer = optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(1e-4))

    @functools.partial(jax.jit, donate_argnums=(0, 1))
    def train(w, state, tokens):
        value, gradients = jax.value_and_grad(loss)(w, tokens)
        updates, state = optimizer.update(gradients, state, w)
        return optax.apply_updates(w, updates), state, value

    w = jax.jit(make)(jax.random.PRNGKey(0))
    state = jax.jit(optimizer.init)(w)
    tokens = jax.random.randint(jax.random.PRNGKey(1), step[7:9], 0, step[6])
    return train, w, state, tokens


def kernels_of(jax, folder):
    """[name, launches, microseconds in all] of the GPU's streams in the newest profile of a folder."""
    path = max(pathlib.Path(folder).rglob("*.xplane.pb"), key=lambda p: p.stat().st_mtime)
    found = collections.OrderedDict()
    for plane in jax.profiler.ProfileData.from_file(str(path)).planes:
        if "/device:GPU" not in plane.name:
            continue
        for line in plane.lines:
            if "Stream" not in line.name:
                continue
            for event in line.events:
                n, total = found.get(event.name, (0, 0.0))
                found[event.name] = (n + 1, total + event.duration_ns / 1e3)
    return [[name[:160], n, round(total, 2)] for name, (n, total) in found.items()]


def measure(jax, optax, step, folder):
    train, w, state, tokens = program_of(jax, optax, step)
    times = []
    for i in range(N_WARM_UP + N_STEPS):
        start = time.perf_counter()
        w, state, value = train(w, state, tokens)
        value.block_until_ready()
        jax.block_until_ready(w)
        times.append(time.perf_counter() - start)
    peak = jax.devices()[0].memory_stats().get("peak_bytes_in_use", 0)
    with jax.profiler.trace(folder):
        w, state, value = train(w, state, tokens)
        jax.block_until_ready(w)
    return {"iteration_s": round(statistics.median(times[N_WARM_UP:]), 5), "peak_gib": round(peak / 2**30, 3), "kernels": kernels_of(jax, folder)}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="*", help="steps whose name matches this pattern of the shell")
    parser.add_argument("--json", required=True, metavar="FILE", help="where to write times and kernels")
    parser.add_argument("--xplane", metavar="FOLDER", help="keep the profiles there")
    options = parser.parse_args()
    import jax
    import optax
    results, n_failed = {}, 0
    for step in STEPS:
        if not fnmatch.fnmatch(step[0], options.only):
            continue
        try:
            results[step[0]] = measure(jax, optax, step, options.xplane or tempfile.mkdtemp())
            print(step[0], results[step[0]]["iteration_s"], file=sys.stderr)
        except Exception as error:  # the other steps can be timed
            results[step[0]] = {"failed": f"{type(error).__name__}: {error}".splitlines()[0]}
            print(step[0], results[step[0]]["failed"], file=sys.stderr)
            n_failed += 1
    result = {"gpu": str(jax.devices()[0]), "jax": jax.__version__,
              "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"), "steps": results}
    with open(options.json, "w", encoding="utf-8") as file:
        json.dump(result, file, indent=1)
        file.write("\n")
    return 1 if n_failed else 0


if __name__ == "__main__":
    sys.exit(main())
