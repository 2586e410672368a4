"""The trace of one step: what the stand-ins recorded (standin_record.c has the lines), joined by their numbers with what PyTorch
records of its operators, and with the module that called each. The manual's page on captured traces says what it has.

Environment, of lockstep capture: LOCKSTEP_CAPTURE_TRACE, 1: the last of the steps is traced. Loaded by sitecustomize.py."""

import ctypes
import fcntl
import gzip
import itertools
import json
import os
import re
import sys

import lockstep_attention
import lockstep_values
import lockstep_weights

STATE = {"places": {}, "names": {}}

# --- where an operator is called ---

ENGINE = ("/torch/autograd/__init__.py", "/torch/autograd/graph.py")


def name_of(module, outermost):
    """layers.3.attention: as the outermost module calls it, without what wrappers add."""
    if not hasattr(outermost, "named_modules"):
        return ""
    names = STATE["names"].get(id(outermost))
    if names is None:
        names = STATE["names"][id(outermost)] = {id(m): n for n, m in outermost.named_modules()}
    parts = names.get(id(module), "").split(".")
    return ".".join(p for p in parts if not p.startswith("_") and p != "module") or type(module).__name__


def place():
    """The number of (the innermost module that runs, whether an optimizer steps), as far as autograd has called."""
    frame, modules, steps = sys._getframe(1), [], False
    while frame:
        name, path = frame.f_code.co_name, frame.f_code.co_filename
        if name == "_call_impl" and path.endswith("torch/nn/modules/module.py"):
            modules.append(frame.f_locals.get("self"))
        elif path.endswith(ENGINE):
            break
        elif name == "step" and "/torch/optim/" in path and not modules:
            steps = True
        frame = frame.f_back
    found = (name_of(modules[0], modules[-1]) if modules else "", steps)
    return STATE["places"].setdefault(found, len(STATE["places"]))


# --- one step ---


def apart(call, *arguments):
    """What the capture itself computes is no operator of the program."""
    enable, library = STATE["enable"], STATE["library"]
    library.ls_capture_apart(1)
    enable(False)
    try:
        return call(*arguments)
    finally:
        enable(True)
        library.ls_capture_apart(0)


def begin(torch, library, path):
    STATE.update(library=library, path=path, call=ctypes.CFUNCTYPE(ctypes.c_int)(place), observer=torch.profiler.ExecutionTraceObserver())
    STATE["enable"], lockstep_values.STATE["apart"] = torch.autograd._enable_record_function, apart
    ctypes.pythonapi.PyEval_SetProfile(ctypes.cast(library.ls_capture_called, ctypes.c_void_p), None)
    STATE["observer"].register_callback(path + ".operators")
    STATE["observer"].start()
    STATE["ranges"] = torch.autograd.profiler.emit_nvtx(record_shapes=True)  # else the kernels of compilers have no arguments
    STATE["ranges"].__enter__()  # for good: the optimizer's own range, in which this is, ends after it
    lockstep_attention.begin(torch, library)
    library.ls_capture_record(path.encode(), STATE["call"])


def stepped(torch, library, n, wanted, path):
    """After step n of an optimizer: the wanted one is traced, from the end of the one before."""
    if n == wanted - 1 and "observer" not in STATE:
        begin(torch, library, path)
    elif n == wanted and "ranges" in STATE:
        ctypes.pythonapi.PyEval_SetProfile(None, None)
        library.ls_capture_record(None, None)
        STATE["observer"].stop()
        STATE["observer"].unregister_callback()
        lockstep_values.STATE["apart"] = lambda call, *arguments: call(*arguments)
        STATE["is_whole"] = True


def after_profiler(module):
    """Of torch.profiler: one at a time is all that PyTorch has, and there would be no kernels for the program's to see."""
    begin_own = module.profile.__init__

    def begin_none(self, *arguments, **more):
        more.update(schedule=lambda step: module.ProfilerAction.NONE, on_trace_ready=None)
        begin_own(self, *arguments, **more)
        if NOTE not in lockstep_weights.NOTES:
            lockstep_weights.NOTES.append(NOTE)

    module.profile.__init__ = begin_none


NOTE = "the program's own profiler is off, as a step is traced (-o)"


# --- operators ---

TYPES = {"c10::BFloat16": "bf16", "c10::Half": "fp16", "float": "fp32", "double": "fp64", "bool": "bool", "int": "int32", "long int": "int64", "long": "int64",
         "short int": "int16", "signed char": "int8", "unsigned char": "uint8", "c10::Float8_e4m3fn": "fp8", "c10::Float8_e5m2": "fp8-e5m2"}


def is_dense(shape, strides):
    expected = 1
    for n, step in zip(reversed(shape), reversed(strides)):
        if n != 1 and step != expected:
            return False
        expected *= n
    return True


def text_of(kind, value, shape, strides, knows_strides, storages):
    """ "bf16[4,2048]", with ":[1,4]" where it does not lie row by row, "cpu:" where it is not on the GPU; else a number, a truth
    value, a list of these; None: nothing that is kept."""
    tensor = re.fullmatch(r"Tensor\((.*)\)", kind)
    if tensor and isinstance(value, list) and len(value) > 5:
        if "nullptr" in tensor[1]:
            return None
        if value[5].startswith("cuda"):
            storages.append(value[1])
        laid = "" if not knows_strides or is_dense(shape, strides) else ":[" + ",".join(map(str, strides)) + "]"
        return ("" if value[5].startswith("cuda") else "cpu:") + TYPES.get(tensor[1], tensor[1]) + "[" + ",".join(map(str, shape)) + "]" + laid
    if kind.startswith(("GenericList[", "Tuple[")) and isinstance(value, list):
        kinds = re.findall(r"[A-Z]\w*(?:\([^)]*\)+)?", kind.split("[", 1)[1])
        inner = [text_of(kinds[min(i, len(kinds) - 1)], v, s, t, knows_strides, storages) for i, (v, s, t) in enumerate(zip(value, shape, strides))] if kinds else []
        return inner if any(i is not None for i in inner) else None
    return value if kind in ("Int", "Bool") else None


def tensors(side, storages):
    strides = side.get("strides") or side["shapes"]  # PyTorch 2.4 does not say them
    return [text_of(*what, "strides" in side, storages) for what in zip(side["types"], side["values"], side["shapes"], strides)]


def phase_of(names, where, is_tracked):
    """Of an operator by those that called it, the innermost first."""
    module, steps = where
    if any(name.startswith("autograd::engine::evaluate_function") for name in names):
        return "recomputation" if module else "backward"
    if steps or any(name.startswith("Optimizer.step#") for name in names):
        return "optimizer"
    return "forward" if module or is_tracked else "elsewhere"


PHASES = ("forward", "backward", "recomputation", "optimizer", "elsewhere")


class Call:
    """Of an operator: what is kept of PyTorch's node, which is much larger."""

    __slots__ = ("name", "caller", "sequence", "kind", "storages")

    def __init__(self, name, caller, sequence, kind, storages):
        self.name, self.caller, self.sequence, self.kind, self.storages = name, caller, sequence, kind, storages


class Operators:
    """kinds: each with other arguments once. rows: [kind, the one that called it or -1, phase, place, storages], in order.
    of_id: a row by the number that PyTorch gave the call. begun: by that number the place, the caller and the name that the
    stand-ins were told; of what an exception ended PyTorch has no node, and this is all that is known."""

    def __init__(self, nodes, begun):
        self.kinds, self.places, self.rows, self.of_id, self.storages, self.files = {}, {}, [], {}, {}, {}
        calls, number_of, module_of, ways = {}, {}, {}, {}
        for node in nodes:
            facts = {a["name"]: a["value"] for a in node["attrs"] if a["name"] in ("rf_id", "seq_id", "kernel_file")}
            if not node["name"].startswith("[pytorch|"):
                number_of[node["id"]] = facts["rf_id"]
                calls[facts["rf_id"]] = self.call_of(node, facts)
        places = {i: where for where, i in STATE["places"].items()}
        for number in sorted({*calls, *begun}):
            place, asked, text = begun.get(number, (None, 0, ""))
            name, _, sequence = text.partition(", seq = ")
            call = calls.get(number) or Call(name, None, int(sequence or -1), self.kind_of({"name": name, "inputs": [], "outputs": []}), [])
            names, where, module, row = ways.get(number_of.get(call.caller, asked), ((), ("", False), "", -1))
            names = (call.name, *names)
            where = where if place is None else places[place]
            phase = phase_of(names, where, call.sequence >= 0)
            module = where[0] or module
            if phase == "forward" and call.sequence >= 0:
                module_of[call.sequence] = module  # the last that is called before autograd has made its node
            elif phase == "backward" and call.sequence >= 0:
                module = module_of.get(call.sequence, module)
            if not call.name.startswith("## "):
                self.of_id[number] = len(self.rows)
                of = [self.storages.setdefault(s, len(self.storages)) for s in call.storages]
                self.rows.append([call.kind, row, PHASES.index(phase), self.places.setdefault(module, len(self.places)), of])
                row = self.of_id[number]
            ways[number] = names, where, module, row

    def kind_of(self, kind):
        return self.kinds.setdefault(json.dumps(kind), len(self.kinds))

    def call_of(self, node, facts):
        name, storages = sys.intern(re.sub(r"0x[0-9a-f]+", "", node["name"])), []
        kind = {"name": name, "inputs": tensors(node["inputs"], storages), "outputs": tensors(node["outputs"], storages)}
        if facts.get("kernel_file") and name.startswith("triton_"):
            kind["outputs"] = [kind["inputs"][i] for i in self.updated(facts["kernel_file"], name) if i < len(kind["inputs"])]
        return Call(name, node["ctrl_deps"], facts.get("seq_id", -1), self.kind_of(kind), storages)

    def updated(self, path, name):
        """Places of the pointers that a kernel of Inductor reads and writes, by its file; of those it says once each is counted."""
        found = re.search(r"def " + re.escape(name) + r"\(([^)]*)\)", lockstep_attention.source(os.path.basename(path)))
        return [i for i, word in enumerate(found[1].split(",")) if word.strip().startswith("in_out_ptr")] if found else []


def nodes_of(path):
    """One after the other: all at once would take a gigabyte."""
    with open(path, encoding="utf-8") as file:
        text = file.read()
    decoder, at = json.JSONDecoder(), text.index("[", text.index('"nodes"')) + 1
    separator = re.compile(r"[\s,]*")
    while text[at := separator.match(text, at).end()] != "]":
        node, at = decoder.raw_decode(text, at)
        yield node


def read_record(path):
    with open(path, encoding="utf-8") as file:
        return [line.rstrip("\n").split(" ") for line in file]


def number(word):
    return int(word) if re.fullmatch(r"-?\d+", word) else word


def settled(did):
    """Blocks that are given back at once in the order of their numbers: theirs may be that of a table by addresses."""
    for is_freed, run in itertools.groupby(did, key=lambda line: line[0] == "-"):
        yield from sorted(run) if is_freed else run


def joined(path):
    """What a file of the trace has, without its head; lines of a record whose operator PyTorch does not know."""
    lines = read_record(path)
    begun = {int(line[1]): (int(line[2]), int(line[3]), " ".join(line[4:])) for line in lines if line[0] == "o"}
    operators = Operators(nodes_of(path + ".operators"), begun)
    kernels, did, apart = [], [], 0
    for line in lines:
        if line[0] == "n":
            kernels.append(" ".join(line[1:]))
        elif line[0] in "kpdgcfmv":
            row = operators.of_id.get(int(line[1]), -1)
            apart += row < 0 and line[1] != "0"
            did.append([line[0], row, *map(number, line[2:])])
        elif line[0] != "o":
            did.append([line[0], *map(number, line[1:])])
    return {"kernels": kernels, "kinds": [json.loads(k) for k in operators.kinds], "modules": list(operators.places), "phases": PHASES,
            "operators": operators.rows, "did": list(settled(did))}, apart


def run_of(ranks):
    """[first, how many, how far apart], or all of them."""
    apart = ranks[1] - ranks[0] if len(ranks) > 1 else 1
    return [ranks[0], len(ranks), apart] if list(ranks) == [ranks[0] + i * apart for i in range(len(ranks))] else {"ranks": list(ranks)}


def write(folder, seen, groups, every):
    """Once; what differs between the two records is counted in what is returned, None: no step was traced. seen: what the memory
    was. groups: (name, ranks) of those that the rank is in. every: ranks of all that the program made."""
    if not STATE.get("is_whole"):
        return None
    with open(os.path.join(folder, "..", f"joins{os.getpid() % 2}"), "w", encoding="utf-8") as turn:
        fcntl.flock(turn, fcntl.LOCK_EX)  # as many as a machine has memory for, whose ranks end together
        trace, apart = joined(STATE["path"])
    head, held = {key: seen[key] for key in ("torch", "cuda", "world", "rank")}, {}
    for row in seen["peak"]:
        held[row["kind"]] = held.get(row["kind"], 0) + row["bytes"]
    head["held"] = held
    trace = {"schema": "lockstep.captured/1", **head, "groups": [{"name": name, "ranks": run_of(ranks)} for name, ranks in groups],
             "every_group": [run_of(ranks) for ranks in every], **trace}
    with open(os.path.join(folder, f"{os.getpid()}.json.trace"), "wb") as out:
        with gzip.GzipFile(fileobj=out, mode="wb", filename="", mtime=0, compresslevel=6) as packed:
            packed.write(json.dumps(trace, separators=(",", ":")).encode())
    for name in (STATE["path"], STATE["path"] + ".operators"):
        os.unlink(name)
    os.replace(STATE["path"] + ".keys", os.path.join(folder, f"{os.getpid()}.json.keys"))
    return {"operators": len(trace["operators"]), "launches": sum(line[0] in "kpdgcf" for line in trace["did"]), "apart": apart}
