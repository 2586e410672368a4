#!/usr/bin/env python3
"""Writes those traces of the gallery that no option of a job makes: a ResNet over two GPUs, backwards that keep every
layer, some or none, and an optimizer on the host whose update comes a step late. Usage: write_traces.py FOLDER"""

import json
import pathlib
import sys

GIB = 2**30


def trace(name, source, note, segments, roles, kernels=None, mesh=None):
    """The text of a trace: an op a line."""
    def lines(items):
        return ",\n".join("    " + json.dumps(item) for item in items)

    parts = [f'  "schema": "lockstep.trace/1",\n  "name": "{name}",\n  "source": {json.dumps(source)},\n  "x-note": {json.dumps(note)}']
    if kernels:
        parts.append('  "kernels": [\n' + lines(kernels) + "\n  ]")
    body = ",\n".join(f'    {{ "name": "{n}", "ops": [\n' + ",\n".join("      " + json.dumps(op) for op in ops) + "\n    ] }" for n, ops in segments)
    parts.append('  "segments": [\n' + body + "\n  ]")
    parts.append('  "roles": [\n' + lines(roles) + "\n  ]")
    parts.append('  "mesh": ' + json.dumps(mesh or {"dp": 1}))
    return "{\n" + ",\n".join(parts) + "\n}\n"


# --- ResNet-50 over two GPUs ---

BLOCKS = [(64, 256, 3, 1), (128, 512, 4, 2), (256, 1024, 6, 2), (512, 2048, 3, 2)]  # He et al. 2016, table 1: width, out, blocks, stride


def convolutions(size):
    """(stage, inputs, outputs, filter, size of the output) of ResNet-50's, the first GPU up to conv3_x, and the classifier."""
    found, size, inputs = [(0, 3, 64, 7, size // 2)], size // 4, 64
    for group, (width, outputs, n_blocks, stride) in enumerate(BLOCKS):
        stage = 0 if group < 2 else 1
        for b in range(n_blocks):
            step = stride if b == 0 else 1
            after = size // step
            found += [(stage, inputs, width, 1, size), (stage, width, width, 3, after), (stage, width, outputs, 1, after)]
            if b == 0:
                found.append((stage, inputs, outputs, 1, after))
            size, inputs = after, outputs
    return found + [(1, 2048, 1000, 1, 1)]


def resnet(name, n_parts, batch, note):
    """A step of a batch in n_parts: forwards, then backwards, as PyTorch's tutorial on model parallelism runs it."""
    images, kernels, index = batch // n_parts, [], {}

    def kernel(words):
        key = json.dumps(words)
        if key not in index:
            index[key] = len(kernels)
            kernels.append(words)
        return index[key]

    def product(inputs, outputs, width, size, what):
        points, depth = images * size * size, inputs * width * width
        m, n, k = {"forward": (points, outputs, depth), "input": (points, inputs, outputs * width * width), "weight": (depth, outputs, points)}[what]
        moved = 4 * (points * inputs + points * outputs + depth * outputs)
        return kernel({"name": f"conv-{width}x{width}" if size > 1 else "classifier", "kind": "gemm", "dtype": "tf32", "m": m, "n": n, "k": k, "bytes": f"{moved}B"})

    def norm(outputs, size, touches):
        elements = images * size * size * outputs
        return kernel({"name": "norm-relu", "kind": "norm", "dtype": "fp32", "m": images * size * size, "n": outputs, "bytes": f"{4 * touches * elements}B"})

    segments = []
    for stage in (0, 1):
        mine = [c for c in convolutions(128) if c[0] == stage]
        forward = [op for _, i, o, f, s in mine for op in
                   ({"op": "kernel", "tag": "F", "kernel": product(i, o, f, s, "forward")}, {"op": "kernel", "tag": "F", "kernel": norm(o, s, 5)})]
        backward = [{"op": "kernel", "tag": "B", "kernel": k} for _, i, o, f, s in reversed(mine) for k in
                    (norm(o, s, 8), *([product(i, o, f, s, "input")] if i != 3 else []), product(i, o, f, s, "weight"))]  # images need no gradient
        segments += [(f"forward {stage}", forward), (f"backward {stage}", backward)]
    edge = f"{images * 16 * 16 * 512 * 4}B"
    segments += [("send", [{"op": "p2p", "stream": "pp-fwd", "transfers": [{"send": "next", "bytes": edge}], "after": ["compute"]}]),
                 ("receive", [{"op": "p2p", "stream": "pp-fwd-recv", "transfers": [{"receive": "prev", "bytes": edge}]}, {"op": "record", "name": "join", "after": [0]}]),
                 ("send back", [{"op": "p2p", "stream": "pp-bwd", "transfers": [{"send": "prev", "bytes": edge}], "after": ["compute"]}]),
                 ("receive back", [{"op": "p2p", "stream": "pp-bwd-recv", "transfers": [{"receive": "next", "bytes": edge}]}, {"op": "record", "name": "join", "after": [0]}])]
    parts = range(n_parts)
    first = [row for p in parts for row in ([0, p, 0, 0], [4, p, 0, 0])] + [row for p in parts for row in ([7, p, 0, 0], [1, p, 0, 0])]
    last = [row for p in parts for row in ([5, p, 0, 1], [2, p, 0, 1])] + [row for p in parts for row in ([3, p, 0, 1], [6, p, 0, 1])]
    source = ("written by tools/gallery/write_traces.py: ResNet-50 (He et al. 2016, table 1) on images of 128 x 128, the first GPU up to conv3_x, "
              "as the tutorial 'Single-Machine Model Parallel Best Practices' of PyTorch cuts it; convolutions as matrix products in tf32")
    return trace(name, source, note, segments, [{"instances": first}, {"instances": last}], kernels, {"pp": 2})


# --- backwards that keep every layer, some or none ---

def layers(name, n, keep, note):
    """n layers of which the inputs of every keep-th are kept and the layers between computed again; keep 0: nothing is
    kept, and each backward computes all layers before it again; keep 1: all are kept. A layer is a micro-batch, so that a
    picture numbers layers, and what is computed again for the same backward a chunk."""
    def op(tag, milliseconds, buffers):
        return {"op": "kernel", "tag": tag, "recorded": f"{milliseconds}ms", "buffers": buffers}

    make = {"alloc": 0, "category": "activations", "bytes": "1GiB"}
    drop = {"free": 0, "category": "activations", "bytes": "1GiB"}
    segments = [("forward", [op("F", 10, [make])]), ("forward again", [op("recompute", 10, [make])]), ("backward", [op("B", 20, [drop])]),
                ("drop", [{"op": "record", "name": "drop", "buffers": [drop], "after": ["compute"]}])]
    rows, held = [], set()
    kept = {i for i in range(n) if keep and i % keep == keep - 1} if keep != 1 else set(range(n))

    def compute(segment, passed, i):
        rows.append([segment, i, passed])
        held.add((passed, i))
        before = (passed, i - 1)
        if before in held and (i - 1 not in kept or passed > 0):
            if segment == 0 or keep == 0:
                rows.append([3, i - 1, passed])
                held.discard(before)

    for i in range(n):
        compute(0, 0, i)
    for i in reversed(range(n)):
        if not any(layer == i for _, layer in held):
            start = 0 if keep == 0 else i // keep * keep
            for k in range(start, i + 1):
                compute(1, n - i, k)
        passed = next(p for p, layer in held if layer == i)
        rows.append([2, i, passed])
        held.discard((passed, i))
    used = sorted({row[0] for row in rows})
    segments, rows = [segments[i] for i in used], [[used.index(row[0]), *row[1:]] for row in rows]
    source = "written by tools/gallery/write_traces.py: a layer takes 10 ms forward and 20 ms backward, and leaves 1 GiB"
    return trace(name, source, note, segments, [{"instances": rows}])


# --- an optimizer on the host ---

def offload(name, is_delayed, note):
    """A step of ZeRO-Offload; times of gpt-7.5b on 8 GPUs of dgx-a100-80g with --dp-kind deepspeed --zero 2 --offload optimizer
    --global-batch 16, two micro-batches."""
    shard = f"{2 * 7468000000 // 8}B"
    forward = {"op": "kernel", "name": "forward", "tag": "F", "recorded": "384ms"}
    backward = {"op": "kernel", "name": "backward", "tag": "B", "recorded": "766ms"}
    down = {"op": "copy", "name": "gradients", "stream": "copy", "direction": "to-host", "bytes": shard}
    adam = {"op": "copy", "name": "Adam on the CPU", "stream": "global", "direction": "in-host", "bytes": shard, "recorded": "960ms"}
    up = {"op": "copy", "name": "parameters", "stream": "copy-in", "direction": "to-device", "bytes": shard}
    join = {"op": "record", "name": "join"}
    if is_delayed:  # before it sends its gradients a step waits for the update by those of the step before
        ops = [forward, backward, {**join, "after": ["copy-in"]}, {**down, "after": [1, 2]}, {**adam, "after": [3]}, {**up, "after": [4]}]
    else:
        ops = [forward, backward, {**down, "after": [1]}, {**adam, "after": [2]}, {**up, "after": [3]}, {**join, "after": [4]}]
    source = ("written by tools/gallery/write_traces.py after Ren et al. 2021 (ZeRO-Offload): times of lockstep run --model gpt-7.5b --cluster dgx-a100-80g "
              "--gpus 8 --dp-kind deepspeed --zero 2 --offload optimizer --global-batch 16")
    return trace(name, source, note, [("step", ops)], [{"instances": [[0]]}])


def traces():
    """{name: text} of all."""
    texts = {
        "resnet50-two-gpus": resnet("resnet50-two-gpus", 1, 120, "One GPU works at a time: each is idle for about half of the step."),
        "resnet50-two-gpus-split": resnet("resnet50-two-gpus-split", 6, 120, "The same batch in six parts: the second GPU works on one while the first computes the next."),
        "keep-all": layers("keep-all", 16, 1, "16 layers, all kept: 16 GiB, no layer twice."),
        "keep-every-fourth": layers("keep-every-fourth", 16, 4, "Every fourth of 16 layers kept, the square root: about 8 GiB, each layer up to twice."),
        "keep-nothing": layers("keep-nothing", 16, 0, "Nothing kept: each backward begins at the input again, in constant memory and quadratic time."),
        "offload": offload("offload", False, "The next step waits for the update on the host."),
        "offload-delayed": offload("offload-delayed", True, "The update on the host takes place during the next step, which has the parameters of the step before."),
    }
    return texts


if __name__ == "__main__":
    for name, text in traces().items():
        pathlib.Path(sys.argv[1], name + ".json").write_text(text, encoding="utf-8")
