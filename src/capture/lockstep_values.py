"""Values that steer a program: counts, masks, positions, and what a router chose. Kernels do not run, so what a GPU's memory
holds is not known; but integers that were copied there are, and what operators make of integers is computed here, on the same
memory, below autograd, after the original has launched what it launches. Where something is chosen by floats that are not
known, such as the experts of a token, they are drawn. What the host reads without its having been computed is said.

Environment, of lockstep capture: LOCKSTEP_CAPTURE_EXPERT_LOAD, "even" or "zipf:S": what is chosen; else each is as likely.
Loaded by sitecustomize.py. Needs torch.library.get_kernel (PyTorch 2.9), which finds the original."""

import ctypes
import warnings

LARGEST = 1 << 26  # bytes of a tensor that is computed

# What may make integers of integers; of these what the GPU has a kernel for is looked at.
COMPUTED = """abs add all any amax amin aminmax _aminmax arange bincount bitwise_and bitwise_left_shift bitwise_not bitwise_or bitwise_right_shift
bitwise_xor bucketize cat clamp clamp_max clamp_min copy_ cummax cumprod cumsum cumsum_ div eq eye fill_ flip floor_divide gather ge gt
histc index index_add index_add_ index_copy index_copy_ index_fill_ index_put_ _index_put_impl_ index_select isin isinf isnan le
linspace logical_and logical_not logical_or logical_xor lt masked_fill_ masked_scatter_ max maximum min minimum mul ne neg prod
put_ remainder repeat_interleave roll rsub scatter scatter_add scatter_reduce searchsorted sign sub sum take tril tril_indices
random_ triu triu_indices trunc where zero_""".split()
# What chooses by values, which may be floats.
CHOOSES = "argmax argmin kthvalue max min mode multinomial randperm sort topk".split()
# What has as many elements as values say.
COUNTED = "masked_select nonzero _unique unique_consecutive unique_dim _unique2".split()

# apart: calls what it is given; while a step is traced, without its operators being taken for the program's.
STATE = {"apart": lambda call, *arguments: call(*arguments), "drawn": 0, "load": "", "notes": None, "line_here": None, "last": None}
FIRST, FLAT = 4096, {}  # the address at which views of all memory begin; these by dtype
KEPT = []  # what is registered


def dtypes(torch):
    return {torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64}


def tensors_of(values):
    kind, found = STATE["tensor"], []
    for value in values:
        if isinstance(value, kind):
            found.append(value)
        elif isinstance(value, (list, tuple)):
            found += tensors_of(value)
    return found


def extent(tensor):
    """Bytes from its first element to its last."""
    if tensor.is_contiguous() or tensor.numel() == 0:
        return tensor.nbytes
    return (sum((n - 1) * step for n, step in zip(tensor.shape, tensor.stride())) + 1) * tensor.element_size()


def flat(dtype, first=FIRST):
    """All memory from an address as one tensor of the host, of which others are views: made once, as that is dear."""
    import torch
    storage = torch._C._construct_storage_from_data_pointer(first, torch.device("cpu"), 1 << 47)
    with torch.inference_mode(False):
        return torch.empty(0, dtype=dtype).set_(storage, 0, (0,), (1,))


def host(tensor):
    """The same memory, as the host sees it."""
    if not tensor.is_cuda:
        return tensor
    kind, address = tensor.dtype, tensor.data_ptr()
    if kind not in FLAT:
        FLAT[kind] = flat(kind)
    place, rest = divmod(address - FIRST, tensor.element_size())
    if rest or not address:
        return flat(kind, address).as_strided(tensor.shape, tensor.stride(), 0)
    return FLAT[kind].as_strided(tensor.shape, tensor.stride(), place)


def is_known(tensor):
    n = extent(tensor) if tensor.is_cuda else 0
    return n == 0 or STATE["read"](tensor.data_ptr(), n) != 0


def set_known(tensor):
    n = extent(tensor) if tensor.is_cuda else 0
    if n:
        STATE["wrote"](tensor.data_ptr(), n)


def on_host(value):
    """An argument with each tensor of the GPU as the host sees it."""
    if isinstance(value, STATE["tensor"]):
        return host(value)
    if isinstance(value, (list, tuple)):
        return type(value)(map(on_host, value))
    return STATE["cpu"] if isinstance(value, STATE["device"]) else value


def draw(tensor, k):
    """What a router may have said: of each row the largest are those that are chosen."""
    import torch
    STATE["drawn"] += 1
    note = f"what the program chooses by values that are not known, as a router does, is drawn: {STATE['load'] or 'each as likely'} (--expert-load)"
    if note not in STATE["notes"]:
        STATE["notes"].append(note)
    source = torch.Generator().manual_seed(81 + STATE["drawn"])
    kind, _, power = STATE["load"].partition(":")
    n = tensor.shape[-1] if tensor.dim() else 1
    if kind == "even" and tensor.dim():
        rows = max(tensor.numel() // max(n, 1), 1)
        first = torch.arange(rows) * k % n
        place = (torch.arange(n).unsqueeze(0) - first.unsqueeze(1)) % n
        return (-place).reshape(tensor.shape).to(tensor.dtype)
    noise = torch.rand(tensor.shape, generator=source).clamp_(1e-12, 1 - 1e-7)
    if kind == "zipf":
        weight = -float(power or 1) * torch.arange(1, n + 1).log()
        return (weight - (-noise.log()).log()).to(tensor.dtype)
    return noise.to(tensor.dtype)


def note_read(tensor):
    """A number that the host reads, and nothing has computed: the program goes on by it."""
    line = STATE["line_here"]() or "a line of PyTorch"
    kind = str(tensor.dtype).split(".")[-1]
    text = f"{line} reads a number of the GPU that nothing has computed ({kind}): {host(tensor).reshape(-1)[0].item()}"
    if text not in STATE["notes"] and sum("nothing has computed" in n for n in STATE["notes"]) < 8:
        STATE["notes"].append(text)


class Facts:
    """Of an operator, what is asked at each call."""

    def __init__(self, operator):
        schema = operator._schema
        self.operator, self.name, self.is_mutable = operator._op, schema.name.split("::")[1], schema.is_mutable
        self.short = self.name + ("." + operator._overloadname if operator._overloadname != "default" else "")
        self.outs = {a.name for a in schema.arguments if a.kwarg_only and a.is_out}
        self.is_drawn = any(a.name == "generator" for a in schema.arguments)
        self.chooses = self.name in CHOOSES
        self.overwrites = self.name in ("copy_", "fill_", "zero_", "random_")
        self.is_of_any = self.name in ("isnan", "isinf")  # nothing that is not known is either
        self.places = [i for i, a in enumerate(schema.arguments) if str(a.type) == "Tensor"]


def compute(torch, facts, arguments, named, made):
    """Writes into what the operator made what it would have made; leaves it where that is not known."""
    inputs, outputs = tensors_of(arguments), tensors_of([made])
    if named:
        inputs += [t for k, v in named.items() if k not in facts.outs for t in tensors_of([v])]
    if facts.overwrites:
        inputs = inputs[1:]
    unknown, read = [], STATE["read"]
    for tensor in inputs:
        n = extent(tensor)
        if n > LARGEST:
            return
        if n and tensor.is_cuda and not read(tensor.data_ptr(), n):
            unknown.append(tensor)
    if any(extent(t) > LARGEST for t in outputs):
        return
    if unknown and not facts.is_of_any and not (facts.chooses and len(unknown) == 1 and unknown[0] is inputs[0] and unknown[0].is_floating_point()):
        return
    values, more = [on_host(v) for v in arguments], {k: on_host(v) for k, v in named.items()}
    if unknown and facts.chooses:
        values[0] = draw(unknown[0], arguments[1] if facts.name == "topk" else 1)
    if facts.is_drawn:
        STATE["drawn"] += 1
        more["generator"] = torch.Generator().manual_seed(STATE["drawn"])
    try:
        results = values[0].double().histc(*values[1:], **more) if facts.name == "histc" else facts.operator(*values, **more)
    except (RuntimeError, NotImplementedError, IndexError):  # what the CPU has no kernel for stays unknown
        return
    for output, result in zip(outputs, tensors_of([results])):
        n = extent(output)
        if not facts.is_mutable and n:
            if result.dtype is output.dtype and result.stride() == output.stride() and result.shape == output.shape:
                ctypes.memmove(output.data_ptr(), result.data_ptr(), n)
            else:
                host(output).copy_(result)
        if n and output.is_cuda:
            STATE["wrote"](output.data_ptr(), n)
    STATE["last"] = facts.name, outputs[0].data_ptr()


def with_tensors(torch, arguments, places):
    """A number in the place of a tensor came as a number: a tensor of the type that it leads to."""
    made, tensors = list(arguments), tensors_of(arguments)
    for i in places:
        if i < len(made) and isinstance(made[i], (bool, int, float, complex)):
            kind = torch.result_type(tensors[0], made[i]) if tensors else None
            made[i] = torch.tensor(made[i], dtype=kind)
    return made


def override(torch, table, operator):
    facts, original = Facts(operator), torch.library.get_kernel(operator, "CUDA").call_boxed
    wanted, places, is_zero = dtypes(torch), facts.places, facts.name == "zero_"

    def call(keys, *arguments, **named):
        for i in places:
            if i < len(arguments) and not isinstance(arguments[i], torch.Tensor):
                arguments = STATE["apart"](with_tensors, torch, arguments, places)
        STATE["last"] = None
        made = original(keys, *arguments, **named)
        kind = getattr(made, "dtype", None)
        if is_zero and made.is_contiguous():  # nothing is written: who tunes kernels clears 50 MiB before each
            STATE["zeroed"](made.data_ptr(), extent(made))
        elif kind in wanted and STATE["last"] == (facts.name, made.data_ptr()):
            return made  # one of the same name was called by it, and has computed this
        elif kind in wanted or (kind is None and made is not None and any(t.dtype in wanted for t in made)):
            STATE["apart"](compute, torch, facts, arguments, named, made)
        return made

    table.impl(facts.short, call, "CUDA", with_keyset=True)


def counted(torch, table, operator):
    facts = Facts(operator)
    name = facts.name

    def place(result, device):
        made = torch.empty_strided(result.shape, result.stride(), dtype=result.dtype, device=device)
        if made.numel():
            host(made).copy_(result)
            set_known(made)
        return made

    def call(*arguments, **named):
        return STATE["apart"](counts, arguments, named)

    def counts(arguments, named):
        first = tensors_of(arguments)[0]
        mask = arguments[1] if name == "masked_select" else first
        if not is_known(mask):
            STATE["notes"].append(ALL) if ALL not in STATE["notes"] else None
            if name == "nonzero":
                return torch.empty((first.dim(), first.numel()), dtype=torch.int64, device=first.device).t()
            if name == "masked_select":
                return torch.empty(torch.broadcast_shapes(first.shape, mask.shape), dtype=first.dtype, device=first.device).reshape(-1)
        if name == "masked_select" and not is_known(first):
            n = int(host(mask).expand(torch.broadcast_shapes(first.shape, mask.shape)).sum())
            return torch.empty(n, dtype=first.dtype, device=first.device)
        results = operator(*map(on_host, arguments), **{k: on_host(v) for k, v in named.items()})
        return place(results, first.device) if isinstance(results, torch.Tensor) else tuple(place(r, first.device) for r in results)

    table.impl(facts.short, call, "CUDA")


ALL = "a program selects elements on the GPU by their values, which are not known: as many are taken as there can be"


def read_scalar(torch, table):
    operator = torch.ops.aten._local_scalar_dense.default
    original, wanted = torch.library.get_kernel(operator, "CUDA").call_boxed, dtypes(torch)

    def call(keys, tensor):
        if tensor.dtype in wanted and not is_known(tensor):
            STATE["apart"](note_read, tensor)
        return original(keys, tensor)

    table.impl("_local_scalar_dense", call, "CUDA", with_keyset=True)


def operators(torch, names):
    known = set(torch._C._dispatch_get_all_op_names())
    for name in names:
        packet = getattr(torch.ops.aten, name, None)
        for overload in packet.overloads() if packet is not None else ():
            operator = getattr(packet, overload)
            full = operator._schema.name + ("." + operator._overloadname if operator._overloadname != "default" else "")
            if full in known and any(torch._C._dispatch_has_kernel_for_dispatch_key(full, key) for key in ("CUDA", "CompositeExplicitAutograd")):
                yield operator


def after_torch(torch, notes, library, line_here, load):
    STATE.update(notes=notes, line_here=line_here, load=load or "", tensor=torch.Tensor, device=torch.device, cpu=torch.device("cpu"))
    for name in ("read", "wrote", "zeroed"):
        STATE[name] = getattr(library(), "ls_capture_" + name)
        STATE[name].argtypes = ctypes.c_void_p, ctypes.c_size_t
    table = torch.library.Library("aten", "IMPL")
    KEPT.append(table)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for operator in operators(torch, COUNTED if hasattr(torch.library, "get_kernel") else ["nonzero"]):
            if not operator._schema.is_mutable:
                counted(torch, table, operator)
        if not hasattr(torch.library, "get_kernel"):
            return
        read_scalar(torch, table)
        names = COMPUTED + [n + "_" for n in COMPUTED if not n.endswith("_")] + CHOOSES
        for operator in operators(torch, list(dict.fromkeys(names))):
            override(torch, table, operator)
