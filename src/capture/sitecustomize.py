"""Loaded by every Python that a captured command starts, as it stands first on PYTHONPATH. In one that imports torch
the stand-ins of CUDA's libraries are there before torch is; launchers start one rank, the one that is captured, instead
of all; and when enough steps are done, or the program ends, what its allocator did is written down.

Environment, of lockstep capture: LOCKSTEP_CAPTURE (the GPU, see standin_state.c), _LIBRARIES (folder of the stand-ins), _OUTPUT
(folder for what was seen), _WORLD, _RANK, _LOCAL (ranks in all, the captured one, on its node), _STEPS, _SNAPSHOT (PyTorch's
too), _MODELS (names of published models), _MAIL, _RANKS, _MEMBERS (see lockstep_ranks.py), _CLOCK (a table of predicted times:
the program's clocks follow them, and nothing else is written down)."""

import ast
import atexit
import ctypes
import faulthandler
import gc
import glob
import importlib
import importlib.abc
import importlib.util
import json
import os
import re
import signal
import sys
import sysconfig
import time
import traceback
import typing

FOLDER = os.path.dirname(os.path.abspath(__file__))
LEAVE = os._exit
STDLIB = os.path.join(sysconfig.get_paths()["stdlib"], "")


def setting(name, default=None):
    return os.environ.get("LOCKSTEP_CAPTURE_" + name, default)


def chain():
    """A sitecustomize that comes after this one on the path is the machine's own."""
    for folder in sys.path:
        path = os.path.join(folder or ".", "sitecustomize.py")
        if os.path.abspath(folder or ".") != FOLDER and os.path.isfile(path):
            spec = importlib.util.spec_from_file_location("sitecustomize_of_the_machine", path)
            spec.loader.exec_module(importlib.util.module_from_spec(spec))
            return


def fail(text):
    with open(setting("REFUSED", "/dev/stderr"), "w", encoding="utf-8") as out:
        out.write(text + "\n")
    LEAVE(70)


# --- what is done before and after a module is imported ---

BEFORE, AFTER = {}, {}


class Loader(importlib.abc.Loader):
    def __init__(self, name, loader):
        self.name, self.loader = name, loader

    def create_module(self, spec):
        return self.loader.create_module(spec)

    def exec_module(self, module):
        BEFORE.get(self.name, lambda: None)()
        self.loader.exec_module(module)
        AFTER.get(self.name, lambda module: None)(module)

    def __getattr__(self, name):
        return getattr(self.loader, name)


class Finder(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name not in BEFORE and name not in AFTER:
            return None
        for finder in sys.meta_path:
            spec = finder is not self and hasattr(finder, "find_spec") and finder.find_spec(name, path, target)
            if spec:
                spec.loader = Loader(name, spec.loader)
                return spec
        return None


# --- the stand-ins ---


def version_of(package):
    """2.30.7 of nvidia_nccl_cu13-2.30.7.dist-info: numbers, or none."""
    for folder in sys.path:
        for path in glob.glob(os.path.join(folder or ".", package + "-*.dist-info")):
            return [int(x) for x in re.findall(r"\d+", os.path.basename(path).split("-", 1)[1])]
    return []


def versions():
    """Of the libraries that this torch would load, as their functions print them."""
    spec = importlib.util.find_spec("torch")
    text = open(os.path.join(os.path.dirname(spec.origin), "version.py"), encoding="utf-8").read()
    cuda = re.search(r"^cuda(?:: [^=]*)? = '([\d.]+)'", text, re.M)
    if not cuda:
        hip = re.search(r"^hip(?:: [^=]*)? = '", text, re.M)
        fail("this torch is built for AMD GPUs, which are not captured" if hip else "this torch is built without CUDA: install one with it")
    major, minor = (int(x) for x in cuda[1].split(".")[:2])
    if major not in (12, 13):
        fail(f"this torch is built for CUDA {cuda[1]}; 12 and 13 are captured")
    nccl = version_of(f"nvidia_nccl_cu{major}") or [2, 21, 5]
    cudnn = version_of(f"nvidia_cudnn_cu{major}") or [9, 1, 0]
    return major, {"cuda": major * 1000 + minor * 10, "driver": max(13020, major * 1000 + minor * 10),
                   "nccl": nccl[0] * 10000 + nccl[1] * 100 + nccl[2], "cudnn": cudnn[0] * 10000 + cudnn[1] * 100 + cudnn[2]}


LIBRARY = None


def load():
    global LIBRARY
    major, found = versions()
    os.environ["LOCKSTEP_CAPTURE"] += "".join(f" {k}={v}" for k, v in found.items())
    folder = setting("LIBRARIES")
    LIBRARY = ctypes.CDLL(os.path.join(folder, "liblockstep-capture.so"), ctypes.RTLD_GLOBAL)
    for name in f"cuda.so.1 cudart.so.{major} cublasLt.so.{major} cublas.so.{major} nccl.so.2 nvrtc.so.{major} nvidia-ml.so.1 cudnn.so.9 cupti.so.{major} nvshmem_host.so.3".split():
        ctypes.CDLL(os.path.join(folder, "lib" + name), ctypes.RTLD_GLOBAL)
    os.environ.setdefault("TRITON_LIBCUDA_PATH", folder)
    os.environ.setdefault("GOMP_SPINCOUNT", "0")  # threads that wait for what is computed here take no core meanwhile
    if setting("CLOCK"):
        follow_clock(setting("CLOCK"))
    if setting("TRACE") == "1":  # PyTorch says through NVTX which operator runs
        os.environ["NVTX_INJECTION64_PATH"] = os.path.join(folder, "liblockstep-capture.so")


def follow_clock(path):
    """Until torch is loaded the clock was this machine's. Of what the program says only its log is wanted."""
    code = LIBRARY.ls_capture_clock(path.encode())
    if code:
        fail(f"--clock: {path} cannot be read" if code == 1 else "--clock: liblockstep-clock.so was not preloaded into this Python, which may be linked statically")


# --- launchers: one rank in the place of all ---


def rank_environment(world, local):
    world, rank = int(setting("WORLD") or world), int(setting("RANK") or 0)
    local = min(int(setting("LOCAL") or local), world)
    if rank >= world:
        fail(f"--rank {rank}: the command starts {world} ranks")
    return {"RANK": rank, "WORLD_SIZE": world, "LOCAL_RANK": rank % local, "LOCAL_WORLD_SIZE": local, "GROUP_RANK": rank // local,
            "GROUP_WORLD_SIZE": (world + local - 1) // local, "ROLE_RANK": rank, "ROLE_WORLD_SIZE": world, "MASTER_ADDR": "127.0.0.1",
            "MASTER_PORT": "29500", "TORCHELASTIC_RUN_ID": "none", "TORCHELASTIC_RESTART_COUNT": "0", "TORCHELASTIC_MAX_RESTARTS": "0",
            "OMP_NUM_THREADS": os.environ.get("OMP_NUM_THREADS", "1")}


def enter(world, local):
    """The environment of the captured rank; its rank on its node."""
    os.environ.update({k: str(v) for k, v in rank_environment(world, local).items()})
    return os.environ["LOCAL_RANK"]


def become(command):
    sys.stdout.flush()
    sys.stderr.flush()
    os.execvp(command[0], command)


def after_launcher(module):
    def launch_agent(config, entrypoint, args, *rest, **more):
        here = enter(config.max_nodes * config.nproc_per_node, config.nproc_per_node)
        if callable(entrypoint):
            return {0: entrypoint(*args)}
        become([str(entrypoint), *(str(a).replace("${local_rank}", here) for a in args)])

    module.launch_agent = launch_agent


class Only:
    """What torch.multiprocessing.spawn starts as rank 0 runs as the captured one."""

    def __init__(self, function, rank):
        self.function, self.rank = function, rank

    def __call__(self, rank, *arguments):
        return self.function(self.rank, *arguments)


def after_spawn(module):
    start = module.start_processes

    def start_processes(fn, args=(), nprocs=1, *rest, **more):
        rank = int(setting("RANK") or 0)
        if rank >= nprocs:
            fail(f"--rank {rank}: the program starts {nprocs} processes")
        return start(Only(fn, rank), args, 1, *rest, **more)

    module.start_processes = start_processes


def deepspeed_launcher():
    """python -u -m deepspeed.launcher.launch --world_info=... SCRIPT ...: its own starts a process for each rank."""
    arguments = sys.orig_argv[1:]
    if "deepspeed.launcher.launch" not in arguments:
        return
    import base64
    rest = arguments[arguments.index("deepspeed.launcher.launch") + 1:]
    value = next((a.split("=", 1)[1] for a in rest if a.startswith("--world_info=")), None)
    flags = []
    while rest and rest[0].startswith("-"):
        flags.append(rest.pop(0))
    nodes = json.loads(base64.urlsafe_b64decode(value)) if value else {"localhost": [0]}
    here = enter(sum(len(v) for v in nodes.values()), max(len(v) for v in nodes.values()))
    if "--no_local_rank" not in flags:
        rest.insert(1, "--local_rank=" + here)
    python = [] if "--no_python" in flags else [sys.executable, "-u", *(["-m"] if "--module" in flags else [])]
    become([*python, *rest])


# --- what is written down ---

STATE = {"steps": 0, "done": False, "held": []}


def addresses(values):
    """Of the storages on a GPU behind tensors, in whatever lists, dicts and wrappers they stand."""
    import torch
    for value in values:
        if isinstance(value, dict):
            yield from addresses(value.values())
        elif isinstance(value, (list, tuple)):
            yield from addresses(value)
        elif isinstance(value, torch.Tensor):
            value = getattr(value, "_local_tensor", value)
            if value.is_cuda and value.numel() > 0:
                try:
                    yield value.untyped_storage().data_ptr()
                except (RuntimeError, NotImplementedError):
                    pass


def note_held(kinds):
    """What is held now, by kinds: where memory was made is found by that. The time is the middle of looking, in which nothing is
    allocated: what was allocated in the microsecond before is older."""
    began, held = time.time_ns(), {kind: set(addresses(tensors())) for kind, tensors in kinds.items()}
    STATE["held"].append({"time_us": (began + time.time_ns()) // 2000, **held})


def note_optimizer(optimizer, kinds):
    parameters = [p for group in optimizer.param_groups for p in group["params"]]
    of = {"parameters": lambda: parameters, "gradients": lambda: [p.grad for p in parameters if p.grad is not None],
          "optimizer": lambda: list(optimizer.state.values())}
    note_held({kind: of[kind] for kind in kinds})


def note_parameters(torch):
    """Of a program before its optimizer's first step: those too that no optimizer holds, as they are frozen."""
    tensors = [o for o in gc.get_objects() if issubclass(type(o), torch.Tensor)]
    parameters = [t for t in tensors if isinstance(t, torch.nn.Parameter)]
    note_held({"parameters": lambda: parameters, "gradients": lambda: [p.grad for p in parameters if p.grad is not None]})


FUNCTIONS = {}


def functions_of(path):
    """(first line, last line, qualified name) of each function of a file, the innermost last."""
    if path not in FUNCTIONS:
        FUNCTIONS[path] = []

        def walk(node, outer):
            for child in ast.iter_child_nodes(node):
                is_function = isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef))
                inner = outer + child.name + "." if is_function or isinstance(child, ast.ClassDef) else outer
                if is_function:
                    FUNCTIONS[path].append((child.lineno, child.end_lineno, inner[:-1]))
                walk(child, inner)

        try:
            with open(path, encoding="utf-8") as file:
                walk(ast.parse(file.read()), "")
        except (OSError, SyntaxError, ValueError):
            pass
    return FUNCTIONS[path]


def line_of(frames):
    """The innermost line that is neither PyTorch's nor Python's own, nor of code that a compiler made:
    "model.py:12 Block.forward"; None: there is none."""
    for frame in frames:
        path = frame["filename"]
        is_own = path.startswith(FOLDER) or path.startswith(STDLIB) and "-packages/" not in path
        if path.endswith(".py") and not is_own and "/torch/" not in path and "torchinductor" not in path:
            inner = [name for first, last, name in functions_of(path) if first <= frame["line"] <= last]
            return f"{os.path.basename(path)}:{frame['line']} {inner[-1] if inner else frame['name']}"
    return None


def line_here():
    """The line of the program that runs now; None as above."""
    return line_of([{"filename": f.filename, "line": f.lineno, "name": f.name} for f in reversed(traceback.extract_stack())])


def first_of(frames, is_one):
    return next((i for i, frame in enumerate(frames) if is_one(frame)), len(frames))


def phase_of(frames):
    """By what is innermost."""
    forward = first_of(frames, lambda f: f["name"] in ("forward", "__call__", "_call_impl"))
    engine = first_of(frames, lambda f: f["name"].startswith("torch::autograd::Engine::evaluate_function"))
    step = first_of(frames, lambda f: f["name"] == "step" and "/optim/" in f["filename"])
    if engine < step:
        again = any(frame["filename"].endswith("torch/utils/checkpoint.py") for frame in frames[:engine])
        return "recomputation" if forward < engine and again else "backward"
    if step < len(frames) and step < forward:
        return "optimizer step"
    if not frames or any(frame["name"] in ("backward", "_engine_run_backward") for frame in frames[:step]):
        return "backward"
    return "forward" if forward < len(frames) else "elsewhere"


def operator_of(frames):
    """The innermost of PyTorch's operators that does more than to allocate; None: none did."""
    for frame in frames:
        match = re.match(r"at::_ops::(\w+)::", frame["name"])
        if match and not re.match("(new_)?empty", match[1]):
            return match[1].lstrip("_")
    return None


class Block:
    """frames: where it was made, as long as it may be asked; phase: by them."""

    __slots__ = ("size", "frames", "phase", "kind", "is_at_peak")

    def __init__(self, size, frames, phase):
        self.size, self.frames, self.phase, self.kind, self.is_at_peak = size, frames, phase, None, False

    def end(self):
        self.kind = self.kind or KINDS.get(self.phase, "buffers and others")
        self.frames = self.frames if self.is_at_peak else None


SEGMENTS = {"segment_alloc": 1, "segment_map": 1, "segment_free": -1, "segment_unmap": -1}
KINDS = {"forward": "activations", "recomputation": "activations", "backward": "gradients of activations, and what backward needs"}


class Replay:
    """Of what the allocator of a GPU did, in parts: bytes that were allocated and that were reserved at most, whatever the
    program resets; the blocks that were allocated when most was, with what held them; and bytes by kind over all that it did."""

    def __init__(self):
        self.n_held, self.n_blocks, self.live, self.now, self.most, self.peak = 0, 0, {}, 0, 0, []
        self.segments, self.reserved, self.changes = 0, 0, []

    def tag_until(self, time_us):
        while self.n_held < len(STATE["held"]) and STATE["held"][self.n_held]["time_us"] < time_us:
            tag(self.live, STATE["held"][self.n_held])
            self.n_held += 1

    def note_peak(self):
        if self.peak is None:
            self.peak = list(self.live.values())
            for block in self.peak:
                block.is_at_peak = True

    def add(self, trace):
        phases = {}  # frames are the same objects where they are the same, within a trace
        for e in trace:
            if e["action"] in SEGMENTS:
                self.segments += SEGMENTS[e["action"]] * e["size"]
                self.reserved = max(self.reserved, self.segments)
            self.tag_until(e["time_us"])
            if e["action"] == "alloc":
                frames = e.get("frames", [])
                place = tuple(map(id, frames))
                if place not in phases:
                    phases[place] = phase_of(frames)
                block = self.live[e["addr"]] = Block(e["size"], frames, phases[place])
                self.now += block.size
                self.n_blocks += 1
                self.changes.append((block, block.size))
                if self.now > self.most:
                    self.most, self.peak = self.now, None
            elif e["action"] == "free_requested" and e["addr"] in self.live:
                self.note_peak()
                block = self.live.pop(e["addr"])
                self.now -= block.size
                self.changes.append((block, -block.size))
                block.end()

    def end(self):
        """Bytes allocated, bytes reserved, rows, curve."""
        self.tag_until(float("inf"))
        self.note_peak()
        for block in self.live.values():
            block.end()
        return self.most, self.reserved, rows_of(self.peak), over_time(self.changes)


REPLAYS = []  # of each GPU
MOST_EVENTS = 1 << 14  # of the allocator, each some KB of this machine, before they are replayed


def replay(torch):
    for i, trace in enumerate(torch.cuda.memory._snapshot()["device_traces"]):
        if i == len(REPLAYS):
            REPLAYS.append(Replay())
        REPLAYS[i].add(trace)


def replay_often(torch, record):
    """Now and then, between two lines of the program, what was recorded is replayed and forgotten."""

    def begin_anew(unused):
        if STATE["done"]:  # all was replayed
            return 0
        collects = gc.isenabled()
        LIBRARY.ls_capture_apart(1)
        gc.disable()  # it would look at a million frames again and again
        replay(torch)
        gc.enable() if collects else None
        record(enabled=None)
        STATE["record"]()
        LIBRARY.ls_capture_apart(0)
        return 0

    STATE["begin_anew"] = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p)(begin_anew)  # the stand-ins call it: it must stay
    LIBRARY.ls_capture_on_blocks(ctypes.pythonapi.Py_AddPendingCall, STATE["begin_anew"], ctypes.c_int64(MOST_EVENTS))


def over_time(changes):
    """Of at most 400 columns the fullest moment of each, in order: bytes of each kind."""
    kinds = sorted({block.kind for block, change in changes})
    now, each, columns = [0] * len(kinds), max(1, -(-len(changes) // 400)), []
    at = {kind: i for i, kind in enumerate(kinds)}
    for i, (block, change) in enumerate(changes):
        now[at[block.kind]] += change
        if i % each == 0:
            columns.append(now[:])
        elif sum(now) > sum(columns[-1]):
            columns[-1] = now[:]
    return {"kinds": kinds, "changes": len(changes), "columns": columns}


def tag(live, held):
    for kind in ("parameters", "gradients", "optimizer"):
        for address in held.get(kind, ()):
            if address in live and live[address].kind is None:
                live[address].kind = kind


def rows_of(blocks):
    rows = {}
    for b in blocks:
        row = rows.setdefault((b.kind, b.phase, operator_of(b.frames) or "", line_of(b.frames) or ""), [0, 0])
        row[0] += b.size
        row[1] += 1
    return [{"kind": k, "phase": p, "operator": o, "line": l, "bytes": n[0], "blocks": n[1]}
            for (k, p, o, l), n in sorted(rows.items(), key=lambda x: (-x[1][0], x[0]))]


def after_torch(torch):
    lockstep_weights.after_torch(torch)
    lockstep_values.after_torch(torch, lockstep_weights.NOTES, lambda: LIBRARY, line_here, setting("EXPERT_LOAD"))
    from torch.optim import optimizer
    os.environ.setdefault("TORCH_SYMBOLIZE_MODE", "dladdr")  # names of functions alone, at once
    if hasattr(torch, "_C") and hasattr(torch._C, "_set_multithreading_enabled"):
        # Its own thread gives back the last of backward while the program goes on: which is first would decide.
        torch._C._set_multithreading_enabled(False)
    record = torch.cuda.memory._record_memory_history
    STATE["record"] = lambda: record(enabled="all", context="alloc", stacks="all", max_entries=10_000_000)
    if not setting("CLOCK"):
        torch.cuda._lazy_call(STATE["record"])
    if not setting("SNAPSHOT") and not setting("CLOCK"):
        replay_often(torch, record)
    torch.cuda.memory._record_memory_history = lambda *arguments, **more: None  # a program's own would clear it

    # An optimizer may step in parts, and there may be several: a step of one is new where products came before it. The last
    # one is whole when the next one begins; where its closure computes all (Lightning), when that one has ended.
    wanted, of = int(setting("STEPS") or 2), {}

    def is_over(which):
        n, before = of.get(id(which), (0, 0))
        if n >= wanted and work() > before:
            finish(torch, "its steps are done")

    def steps(which, arguments, more):
        if not STATE["held"]:
            note_parameters(torch)
        note_optimizer(which, ["parameters", "gradients"])
        is_over(which)

    def stepped(which, arguments, more):
        note_optimizer(which, ["parameters", "optimizer"])
        is_over(which)
        (n, before), done = of.get(id(which), (0, 0)), work()
        of[id(which)] = n + (done > before), done
        if of[id(which)][0] > STATE["steps"]:
            STATE["steps"] = of[id(which)][0]
            LIBRARY.ls_capture_clock_step()
        if setting("TRACE") == "1":
            lockstep_trace.stepped(torch, LIBRARY, of[id(which)][0], wanted, os.path.join(setting("OUTPUT"), f"{os.getpid()}.record"))

    optimizer.register_optimizer_step_pre_hook(steps)
    optimizer.register_optimizer_step_post_hook(stepped)
    atexit.register(end, torch)

    def exit_at_once(status):
        try:
            end(torch)
        finally:
            LEAVE(status)

    os._exit = exit_at_once
    if sys.__stderr__:
        faulthandler.register(signal.SIGTERM, file=sys.__stderr__, chain=True)  # says where it stood when it is stopped
    hook = sys.excepthook

    def failed(kind, value, trace):
        STATE["error"] = lockstep_ranks.told_first(lockstep_weights.explained(kind, value))
        if STATE["steps"] == 0:
            note_parameters(torch)
        hook(kind, value, trace)

    sys.excepthook = failed


def counts():
    text = ctypes.create_string_buffer(8192)
    LIBRARY.ls_capture_counts(text, ctypes.c_size_t(len(text)))
    return {what: int(n) for what, n in (line.rsplit(" ", 1) for line in text.value.decode().splitlines())}


def trace():
    """The hash of all that was done, in order; and of each thing that was done its own, with how often it was."""
    LIBRARY.ls_capture_trace.restype = ctypes.c_uint64
    n = LIBRARY.ls_capture_kinds(None, None, ctypes.c_size_t(0))
    keys, counts = (ctypes.c_uint64 * n)(), (ctypes.c_int64 * n)()
    LIBRARY.ls_capture_kinds(keys, counts, ctypes.c_size_t(n))
    return {"order": f"{LIBRARY.ls_capture_trace():016x}", "done": {f"{k:016x}": c for k, c in sorted(zip(keys, counts))}}


def work():
    """Grows with each step: products, convolutions, and graphs that were captured with some."""
    n = counts()
    return n.get("products", 0) + n.get("plans of cuDNN", 0) + n.get("launches of graphs", 0)


def end(torch):
    try:
        finish(torch, "it ended")
    finally:
        LIBRARY.ls_capture_mail_close()


def finish(torch, why):
    """Writes what was seen, once; the file is whole or is not there."""
    if STATE["done"] or not setting("OUTPUT") or not torch.cuda.is_initialized():
        return
    STATE["done"] = True
    if setting("CLOCK"):  # the memory was seen when it was captured
        REPLAYS[:] = [Replay()]
        REPLAYS[0].n_blocks = work()
    else:
        replay(torch)
    group, n_blocks = torch.distributed, [r.n_blocks for r in REPLAYS]
    if not any(n_blocks):
        return  # a launcher that asked for the GPUs: its child is the program, or was killed
    fullest = n_blocks.index(max(n_blocks))
    stats = torch.cuda.memory_stats(fullest)
    allocated, reserved, peak, curve = REPLAYS[fullest].end()
    world, rank = int(os.environ.get("WORLD_SIZE", "1")), int(os.environ.get("RANK", "0"))
    if group.is_available() and group.is_initialized():
        world, rank = group.get_world_size(), group.get_rank()
    seen = {"why": why, "steps": STATE["steps"], "error": STATE.get("error"), "torch": torch.__version__, "cuda": torch.version.cuda,
            "world": world, "rank": rank, "counts": counts(), "trace": trace(),
            "allocated_bytes": max(allocated, stats["allocated_bytes.all.peak"]), "reserved_bytes": max(reserved, stats["reserved_bytes.all.peak"]),
            "requested_bytes": stats.get("requested_bytes.all.peak", 0),
            "retries": stats.get("num_alloc_retries", 0), "out_of_memory": stats.get("num_ooms", 0)}
    seen["peak"], seen["over_time"], seen["notes"] = peak, curve, lockstep_weights.NOTES
    if setting("TRACE") == "1":
        seen["traced"] = lockstep_trace.write(setting("OUTPUT"), seen, *lockstep_ranks.groups())
    if seen["counts"].get("messages of ranks that are not captured"):
        seen["notes"].append(f"rank {rank} receives numbers of ranks that are not captured, which are zeros here: --ranks auto captures them")
    for what in seen["counts"]:
        if what.startswith("undocumented tables"):
            seen["notes"].append(f"{what.split(' for ')[1]} has a CUDA runtime of its own: it found no GPU, and what it does is not captured")
    if sum(map(bool, n_blocks)) > 1:
        seen["notes"].append(f"the process allocates on several GPUs: this is cuda:{fullest}")
    path = os.path.join(setting("OUTPUT"), f"{os.getpid()}.json")
    if setting("SNAPSHOT"):
        torch.cuda.memory._dump_snapshot(path + ".pickle")
    with open(path + ".part", "w", encoding="utf-8") as out:
        json.dump(seen, out, indent=1)
    os.replace(path + ".part", path)
    LIBRARY.ls_capture_mail_close()
    if why == "its steps are done":
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(0)


def after_rules(module):
    """torch.compile leaves alone what runs between two lines of the program, and below its operators."""
    module.SKIP_DIRS.extend(os.path.join(FOLDER, name) for name in ("sitecustomize.py", "lockstep_attention.py", "lockstep_trace.py", "lockstep_values.py"))
    module._recompile_re()


def after_autotuning(module):
    """Kernels of torch.compile are tuned each time, as in the first run on a machine: what an earlier capture found would save
    the buffers that tuning allocates, and so change what is reserved."""
    if hasattr(module, "AutotuneCache"):
        module.AutotuneCache.create = staticmethod(lambda *arguments, **more: None)


def after_deep_ep(module):
    """What its kernels write the host waits for, and they do not run. A program that only imports it goes on."""
    for name, kind in vars(module).items():
        if name.endswith("Buffer") and isinstance(kind, type):
            kind.__init__ = lambda *arguments, **more: fail("deep_ep: " + lockstep_weights.NO_DEEP_EP)


def begin():
    if not hasattr(typing, "override"):  # new in Python 3.12: Megatron-LM wants it
        typing.override = lambda method: method
    BEFORE["torch"] = load
    AFTER["torch"] = after_torch
    AFTER["torch._dynamo.trace_rules"] = after_rules
    AFTER["torch._inductor.runtime.autotune_cache"] = after_autotuning
    AFTER["deep_ep"] = after_deep_ep
    AFTER["torch.distributed.launcher.api"] = after_launcher
    AFTER["torch.multiprocessing.spawn"] = after_spawn
    if setting("TRACE") == "1":
        AFTER["torch.profiler.profiler"] = lockstep_trace.after_profiler
    lockstep_weights.install(BEFORE, AFTER)
    lockstep_ranks.install(AFTER, setting, lambda: LIBRARY, line_here)
    lockstep_extensions.install(sys.meta_path, lockstep_weights.NOTES, lambda: LIBRARY)
    sys.meta_path.insert(0, Finder())
    deepspeed_launcher()


chain()
if os.environ.get("LOCKSTEP_CAPTURE"):
    import lockstep_extensions
    import lockstep_ranks
    import lockstep_trace
    import lockstep_values
    import lockstep_weights
    begin()
