"""Ranks: the groups that a program makes, which of its ranks are captured, and what those that are not answer.

Ranks that send to single ones, the stages of a pipeline or the members of a ring, differ from each other; all that have the
same place in such groups play one role, and the lowest of them is captured for all. Which groups these are is seen when the
first message is sent: the capture then begins anew, with a process for each role.

Environment, of lockstep capture: LOCKSTEP_CAPTURE_MAIL, a folder in which captured ranks meet; its file "roles" says which
they are: {"ranks": those that are captured, "peers": groups whose ranks send to single ones, "represents": of each rank the
captured one that stands for it; null: each for itself, "members": of those that a second time have a role, who else has}.
_MEMBERS: how many of each role are captured, far apart: they are compared; 0: one, or of some two. Without the file the process is the first one: _RANKS is "auto" or
"all", and it writes it, and ends with EXIT_ROLES, where more than itself are to be captured. Loaded by sitecustomize.py."""

import copy
import ctypes
import datetime
import functools
import hashlib
import inspect
import json
import os
import re
import sys

EXIT_ROLES, EXIT_STUCK = 73, 72
CALL_PEERS, CALL_STUCK = 0, 1
ENOUGH = 4  # roles: from so many on one has a second member, unless it is said how many
MOST_BYTES = 1 << 26  # of a value that a store or a group on the host passes on
NEVER = datetime.timedelta(days=1000)  # when a collective is too late: it ends by a clock that stands while another rank is waited for

ROLES = {"ranks": [], "peers": [], "represents": None}
SELF = {"world": 1, "rank": 0, "rooted": 0}  # rooted: in how many collectives that go to or from one rank it is
SEEN = []  # the ranks of all groups that the program makes, in order
NUMBERED = []  # the ranks of those that it may use
CALLED = []  # names of these
NAMED = {}  # by the name that PyTorch gave: Group
HOOKS = {}  # of sitecustomize.py: setting, library, line_here; and the callback, which must stay


def key_of(*what):
    return int.from_bytes(hashlib.blake2b(repr(what).encode(), digest_size=8).digest(), "little")


def library():
    return HOOKS["library"]()


# --- who is captured, and who stands for whom ---


def folder():
    return HOOKS["setting"]("MAIL")


def begin(world, rank):
    """When a program meets its ranks: reads who is captured; where that is not known yet, it may be decided here."""
    SELF.update(world=world, rank=rank)
    if "call" in HOOKS or not folder():
        return
    path = os.path.join(folder(), "roles")
    if os.path.exists(path):
        with open(path, encoding="utf-8") as file:
            ROLES.update(json.load(file))
    elif HOOKS["setting"]("RANKS") == "all" and world > 1:
        leave_for({"ranks": list(range(world)), "peers": [], "represents": None})
    elif HOOKS["setting"]("RANKS") == "auto" and world > 1 and n_members() > 1:
        leave_for(roles_by([]))
    if rank in ROLES["ranks"] and len(ROLES["ranks"]) > 1:
        library().ls_capture_mail_open(folder().encode(), len(ROLES["ranks"]), ROLES["ranks"].index(rank))
    HOOKS["call"] = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_int)(called)
    library().ls_capture_on_call(HOOKS["call"])


def leave_for(roles):
    """All begins anew, with these."""
    path = os.path.join(folder(), f"roles.{os.getpid()}")
    with open(path, "w", encoding="utf-8") as file:
        json.dump(roles, file)
    os.replace(path, os.path.join(folder(), "roles"))
    sys.stdout.flush()
    sys.stderr.flush()
    library().ls_capture_mail_close()
    HOOKS["leave"](EXIT_ROLES)


def told_first(error):
    """Where another rank failed before, this one may have failed for what that did not send."""
    path = os.path.join(folder() or "", "failed")
    try:
        with open(path if folder() else os.devnull, "x" if folder() else "w", encoding="utf-8") as out:
            out.write(f"rank {SELF['rank']} had failed ({error})")
    except FileExistsError:
        with open(path, encoding="utf-8") as file:
            return f"after {file.read()}: {error}"
    return error


def called(kind, number, peer):
    """By the stand-ins; 0: not heard."""
    if kind == CALL_STUCK:
        line = HOOKS["line_here"]() or "an unknown line"
        whom = f"rank {ROLES['ranks'][number]}" if number >= 0 else "another rank"
        with open(os.path.join(folder(), f"stuck.{SELF['rank']:08d}"), "w", encoding="utf-8") as out:
            out.write(f"rank {SELF['rank']} waits for {whom} at {line}\n")
        sys.stderr.flush()
        HOOKS["leave"](EXIT_STUCK)
    elif SELF["rooted"]:
        return 0
    elif kind == CALL_PEERS and (ROLES["represents"] or not ROLES["ranks"]) and HOOKS["setting"]("RANKS") == "auto":
        ranks = family_of(NUMBERED[number], peer)
        if ranks not in ROLES["peers"] and not any(same_places(ranks, known) for known in ROLES["peers"]):
            leave_for(roles_by(ROLES["peers"] + [ranks]))
    return 1


def family_of(ranks, peer):
    """Of a message on the group of all: the shortest group in which the two are neighbours; else in which both are."""
    if len(ranks) < SELF["world"]:
        return list(ranks)

    def apart(other):
        steps = abs(other.index(ranks[peer]) - other.index(SELF["rank"]))
        return min(steps, len(other) - steps), len(other)

    fitting = [other for other in SEEN if len(other) < SELF["world"] and SELF["rank"] in other and ranks[peer] in other]
    return list(min(fitting, key=apart, default=ranks))


def offsets(ranks):
    return [r - ranks[0] for r in ranks]


def places_of(ranks):
    """Of each rank of the world its place in the groups that are as this one."""
    like, places = offsets(ranks), {}
    for other in [tuple(ranks), *SEEN]:
        if len(other) == len(ranks) and offsets(other) == like and not any(r in places for r in other):
            places.update({r: i for i, r in enumerate(other)})
    apart = ranks[1] - ranks[0] if len(ranks) > 1 else 1
    return [places.get(r, r // max(apart, 1) % len(ranks)) for r in range(SELF["world"])]


def same_places(a, b):
    return len(a) == len(b) and places_of(a) == places_of(b)


def n_members():
    """Of each role; 0: nobody said."""
    return int(HOOKS["setting"]("MEMBERS") or 0)


def roles_by(peers):
    of_role, represents, members = {}, [0] * SELF["world"], {}
    for rank, role in enumerate(zip(range(SELF["world"]), *map(places_of, peers))):
        of_role.setdefault(role[1:], []).append(rank)
    for i, ranks in enumerate(of_role.values()):
        is_asked = n_members() == 0 and len(of_role) >= ENOUGH and i == len(of_role) // 2
        n = min(2 if is_asked else n_members() or 1, len(ranks))
        members.update({ranks[i * (len(ranks) - 1) // (n - 1)]: ranks[0] for i in range(1, n)})
        for rank in ranks:
            represents[rank] = rank if rank in members else ranks[0]
    return {"ranks": sorted(set(represents)), "peers": peers, "represents": represents, "members": sorted(members.items())}


def stands_for(rank):
    """The captured rank that stands for it; None: nobody but those that ask."""
    if ROLES["represents"]:
        return ROLES["represents"][rank]
    return rank if rank in ROLES["ranks"] else None


# --- groups ---


def groups():
    """Of a trace: (name, ranks) of those that the rank is in; ranks of all that the program made."""
    return list(zip(CALLED, NUMBERED)), SEEN


class Group:
    """ranks: in the world. sources: of each the place among the captured ranks of who answers for it, -1: this one.
    key: the same on all its members, and on those that they stand for."""

    made = {}

    def __init__(self, ranks, name=None):
        self.ranks, own = tuple(ranks), stands_for(SELF["rank"])
        stand = [stands_for(r) for r in self.ranks]
        self.is_real = [r == s for r, s in zip(self.ranks, stand)]
        first = {} if all(self.is_real) else dict(ROLES.get("members", ()))  # a second member hears what the first is told
        same = [r if s is None else first.get(s, s) for r, s in zip(self.ranks, stand)]
        others = [s is not None and s != own and r != SELF["rank"] for r, s in zip(self.ranks, stand)]
        self.sources = [ROLES["ranks"].index(s) if other else -1 for s, other in zip(stand, others)]
        self.is_alone = not any(others)
        known = key_of(*same)
        self.key = key_of(known, Group.made.setdefault(known, 0))
        Group.made[known] += 1
        self.number, self.n_done, self.n_sent = len(NUMBERED), 0, {}
        NUMBERED.append(self.ranks)
        CALLED.append(name or "")

    def way(self, source, target):
        """The key of the next message from one to another, by their places."""
        n = self.n_sent[source, target] = self.n_sent.get((source, target), -1) + 1
        return key_of(self.key, "way", source, target, n)

    def tell(self, mark, members=None):
        """The stand-ins, of a communicator of all or of two of its ranks."""
        places = range(len(self.ranks)) if members is None else members
        n = len(places)
        rank = next((i for i, p in enumerate(places) if self.ranks[p] == SELF["rank"]), 0)
        sources = None if self.is_alone else (ctypes.c_int * n)(*[self.sources[p] for p in places])
        is_real = None if self.is_alone else (ctypes.c_uint8 * n)(*[self.is_real[p] for p in places])
        key = self.key if members is None else key_of(self.key, *places)
        library().ls_capture_group(mark, self.number, n, rank, ctypes.c_uint64(key), sources, is_real)


ID = re.compile(r"([^/]+)//cuda//(?:(\d+):(\d+)|\d+)(?:/nccl_storekey_[\d_]+)?$")


def tell_of_id(key, mark):
    """The communicator whose id stands in the store under this key; False: it is another kind of key."""
    found = ID.search(key)
    if not found:
        return False
    group = NAMED.get(found[1])
    if group:
        group.tell(mark, [int(found[2]), int(found[3])] if found[2] else None)
    return True


def make_store(c10d):
    class Lone(c10d.Store):
        """A store that never waits for those who are not captured: what nobody set, they set as this one would have."""

        def __init__(self):
            super().__init__()
            self.values = {}

        def set(self, key, value):
            self.values[key] = value.encode() if isinstance(value, str) else bytes(value)
            if len(self.values[key]) != 128 or not tell_of_id(key, self.values[key][112:127]):
                put(key_of("store", key), self.values[key])

        def get(self, key):
            if key not in self.values:
                mark = b"g%014d" % len(self.values)
                if tell_of_id(key, mark):
                    self.values[key] = b"l" * 112 + mark + b"\0"
            found = self.values.get(key) or self.of_like(key)
            found = get(-1, key_of("store", key), True) if found is None else found
            return b"l" * 128 if found is None else found

        def of_like(self, key):
            """What a rank that is not captured would have set, where keys end with ranks; None: it is no such key."""
            beginning, _, last = key.rpartition("/")
            inner = [part.rpartition("/")[2] for part in reversed(beginning.split("//")[:-1])]  # 0//7//counter/0/rank: of group 7
            group = next((NAMED[name] for name in (*inner, *beginning.split("/")) if name in NAMED), None)
            if group is None or not last.isdigit() or int(last) >= len(group.ranks) or group.is_real[int(last)]:
                return None  # who is captured sets it itself
            found = self.values.get(f"{beginning}/{group.ranks.index(SELF['rank'])}")
            if found is not None and "ymmetric" in beginning and len(found) >= 16:  # begins with the number of its GPU, which is another
                return (int(last) % int(os.environ.get("LOCAL_WORLD_SIZE", "8"))).to_bytes(4, sys.byteorder) + found[4:]
            return found

        def add(self, key, amount):
            self.values[key] = str(int(self.values.get(key, b"0")) + amount * SELF["world"]).encode()
            return int(self.values[key])

        def compare_set(self, key, expected, desired):
            if self.values.get(key, b"") == (expected.encode() if isinstance(expected, str) else bytes(expected)):
                self.set(key, desired)
            return self.values.get(key, expected)

        def delete_key(self, key):
            return self.values.pop(key, None) is not None

        def multi_get(self, keys):
            return [self.get(k) for k in keys]

        def multi_set(self, keys, values):
            for key, value in zip(keys, values):
                self.set(key, value)

        def append(self, key, value):
            self.values[key] = self.values.get(key, b"") + (value.encode() if isinstance(value, str) else bytes(value))

    always = {"wait": None, "set_timeout": None, "has_extended_api": True}
    for name, answer in always.items():
        setattr(Lone, name, functools.partialmethod(lambda store, answer, *arguments: answer, answer))
    Lone.check = lambda store, keys: all(key in store.values for key in keys)
    Lone.num_keys = lambda store: len(store.values)
    Lone.clone = lambda store: store
    return Lone()


def put(key, value):
    library().ls_capture_mail_put(ctypes.c_uint64(key), value, ctypes.c_size_t(len(value)))


def get(source, key, is_for_anyone):
    """None: nobody will send it."""
    text = ctypes.create_string_buffer(1 << 16)
    for most in (1 << 16, MOST_BYTES):
        text = text if most == 1 << 16 else ctypes.create_string_buffer(most)
        fetch = library().ls_capture_mail_get
        fetch.restype = ctypes.c_int64
        n = fetch(source, ctypes.c_uint64(key), text, ctypes.c_size_t(most), int(is_for_anyone))
        if n <= most:
            return None if n < 0 else text.raw[:n]
    return None


# --- PyTorch's module of groups ---


def after_c10d(module):
    c10d = sys.modules["torch._C._distributed_c10d"]
    store = HOOKS["store"] = make_store(c10d)

    def rendezvous(url, rank=-1, world_size=-1, **more):
        rank = int(os.environ["RANK"]) if rank < 0 else rank
        world = int(os.environ["WORLD_SIZE"]) if world_size < 0 else world_size
        begin(world, rank)
        yield (store, rank, world)

    module.rendezvous = rendezvous
    on_the_host(module, c10d)
    helper = module._new_process_group_helper

    def new_process_group_helper(group_size, group_rank, global_ranks_in_group, backend, store, group_name, *arguments, **more):
        ranks = list(global_ranks_in_group) or list(range(group_size))
        if SELF["world"] < group_size:  # without a rendezvous: the program brought a store of its own
            begin(group_size, group_rank)
        SEEN.append(tuple(ranks))
        if SELF["rank"] in ranks:
            NAMED[str(group_name)] = Group(ranks, more.get("group_desc"))
            NAMED[str(group_name)].tell(None)
        more.update({"timeout": NEVER} if "timeout" in more else {})
        return helper(group_size, group_rank, global_ranks_in_group, backend, store, group_name, *arguments, **more)

    module._new_process_group_helper = new_process_group_helper
    for name in ("set_timeout", "_set_pg_timeout"):
        if hasattr(module, name):
            setattr(module, name, lambda timeout, group=None: None)
    split = getattr(module, "split_group", None)

    def split_group(parent_pg=None, split_ranks=None, timeout=None, *arguments, **more):
        parent = parent_pg or module._get_default_group()
        of = NAMED.get(str(module._world.pg_names[parent]))
        mine = None
        for ranks in split_ranks or () if of else ():
            SEEN.append(tuple(of.ranks[r] for r in ranks))
            if parent.rank() in ranks and mine is None:
                mine = Group(SEEN[-1])
                mine.tell(None)
        made = split(parent_pg, split_ranks, NEVER, *arguments, **more)
        if mine is not None and made in module._world.pg_names:
            NAMED[str(module._world.pg_names[made])] = mine
        return made

    if split is not None:
        module.split_group = split_group
    for name in ("gather", "scatter"):
        if hasattr(module, name):
            setattr(module, name, of_root(getattr(module, name)))
    for name, own in {"all_gather_object": 1, "gather_object": 0, "broadcast_object_list": None, "scatter_object_list": None,
                      "send_object_list": None, "recv_object_list": None}.items():
        if hasattr(module, name):
            setattr(module, name, of_objects(module, getattr(module, name), own))


def of_root(function):
    """NCCL has no gather: it is sends to one rank, of ranks that do not differ for that."""

    @functools.wraps(function)
    def call(*arguments, **more):
        SELF["rooted"] += 1
        try:
            return function(*arguments, **more)
        finally:
            SELF["rooted"] -= 1

    return call


def after_symmetric(module):
    """PyTorch 2.6 meets by a file of the node."""
    enable = module.enable_symm_mem_for_group
    if "FileStore" not in enable.__code__.co_names:
        return

    def enable_symm_mem_for_group(group_name):
        if group_name in module._group_name_to_store:
            return
        group = module.c10d._resolve_process_group(group_name)
        store = module._group_name_to_store[group_name] = module.c10d.PrefixStore(f"{group_name}//symmetric", HOOKS["store"])
        module._SymmetricMemory.set_group_info(group_name, group.rank(), group.size(), store)

    module.enable_symm_mem_for_group = enable_symm_mem_for_group


def group_of(module, group):
    """Group of PyTorch's; None: of all."""
    return NAMED.get(str(module._world.pg_names.get(group or module._get_default_group())))


def is_absent(module, arguments, more):
    """Whether nobody is captured who would send these objects: they stay as they are."""
    group = group_of(module, more.get("group"))
    root = more.get("src", arguments[1] if len(arguments) > 1 else 0 if more.get("group_src") is None else None)
    root = more.get("group_src") if root is None else group.ranks.index(root) if group and root in group.ranks else None
    return group is not None and root is not None and group.ranks[root] != SELF["rank"] and group.sources[root] < 0


def of_objects(module, function, own):
    """A collective of objects: what their sizes come to is computed here, as kernels do not run, and what is gathered from
    ranks that are not captured are copies of the argument OWN, however many."""

    @functools.wraps(function)
    def call(*arguments, **more):
        import torch

        class Mode(torch.overrides.TorchFunctionMode):
            def __torch_function__(self, what, types, values=(), named=None):
                name = getattr(what, "__name__", "")
                if name not in ("max", "sum", "cat", "add", "gt", "lt", "__add__", "__radd__", "__gt__", "__lt__"):
                    return what(*values, **named or {})
                made = what(*torch.utils._pytree.tree_map_only(torch.Tensor, torch.Tensor.cpu, values), **named or {})
                return made.to(values[0][0].device) if name == "cat" else made

        if function.__name__ == "broadcast_object_list" and is_absent(module, arguments, more):
            return None
        to_object, group = module._tensor_to_object, group_of(module, more.get("group"))
        if own is not None and (group is None or group.is_alone):
            value = more["obj"] if "obj" in more else arguments[own]
            module._tensor_to_object = lambda *ignored: copy.deepcopy(value)
        library().ls_capture_small(ctypes.c_size_t(MOST_BYTES))  # they are pickles, which travel by the GPU
        try:
            with Mode():
                return function(*arguments, **more)
        finally:
            library().ls_capture_small(ctypes.c_size_t(0))
            module._tensor_to_object = to_object

    return call


# --- groups on the host ---


def bytes_of(tensor):
    tensor = tensor.contiguous()
    return ctypes.string_at(tensor.data_ptr(), tensor.nbytes)


def put_into(tensor, value):
    import torch
    if value and len(value) == tensor.nbytes:
        tensor.copy_(torch.frombuffer(bytearray(value), dtype=tensor.dtype).view(tensor.shape))


def of_all(group, value):
    """What each rank of a group sent for this operation, its own among them."""
    key, group.n_done = key_of(group.key, "host", group.n_done), group.n_done + 1
    put(key, value)
    found = {-1: value}
    for source, is_real in zip(group.sources, group.is_real):
        if source not in found:
            found[source] = get(source, key, not is_real) or value
    return [found[source] for source in group.sources]


def reduced(module, group, tensor, op=None, **more):
    import torch
    sums = {"MAX": torch.maximum, "MIN": torch.minimum, "PRODUCT": torch.mul, "BAND": torch.bitwise_and, "BOR": torch.bitwise_or}
    kind = str(op).rsplit(".", 1)[-1] if op is not None else "SUM"
    own = bytes_of(tensor)
    total = None
    for value in [own] * len(group.ranks) if group.is_alone else of_all(group, own):
        each = torch.frombuffer(bytearray(value), dtype=tensor.dtype).view(tensor.shape) if value else tensor.clone()
        total = each if total is None else sums.get(kind, torch.add)(total, each)
    tensor.copy_(total / len(group.ranks) if kind == "AVG" else total)


def broadcast(module, group, tensor, src=None, group_src=None, **more):
    if not group.is_alone:
        root = group.ranks.index(src) if src is not None else group_src
        put_into(tensor, of_all(group, bytes_of(tensor))[root])


def gathered(module, group, first, second=None, **more):
    """all_gather (list, tensor), all_gather_into_tensor (output, input), gather (tensor, list)."""
    import torch
    if isinstance(second, list) or second is None:
        first, second = second, first
    values = [bytes_of(second)] * len(group.ranks) if group.is_alone else of_all(group, bytes_of(second))
    if isinstance(first, torch.Tensor):
        put_into(first, b"".join(values))
    for tensor, value in zip(first or (), values) if not isinstance(first, torch.Tensor) else ():
        put_into(tensor, value)


def sent(module, group, tensor, dst=None, group_dst=None, **more):
    peer = group.ranks.index(dst) if dst is not None else group_dst
    put(group.way(group.ranks.index(SELF["rank"]), peer), bytes_of(tensor))


def received(module, group, tensor, src=None, group_src=None, **more):
    peer = group.ranks.index(src) if src is not None else group_src
    if peer is not None and group.sources[peer] >= 0:
        key = group.way(peer, group.ranks.index(SELF["rank"]))
        return lambda: put_into(tensor, get(group.sources[peer], key, False))
    return None


class Later:
    """A receive that is waited for."""

    def __init__(self, work, finish):
        self.work, self.finish = work, finish

    def wait(self, *arguments):
        self.finish, finish = None, self.finish
        if finish:
            finish()
        return True

    def __getattr__(self, name):
        return getattr(self.work, name)


def with_host(module, function, finish):
    signature = inspect.signature(function)

    @functools.wraps(function)
    def call(*arguments, **more):
        first = arguments[0] if arguments else next(iter(more.values()), None)
        first = first[0] if isinstance(first, list) and first else first
        made = function(*arguments, **more)
        if getattr(getattr(first, "device", None), "type", "") != "cpu":
            return made
        values = signature.bind(*arguments, **more).arguments
        group = group_of(module, values.pop("group", None))
        if group is None or SELF["rank"] not in group.ranks:
            return made
        names = list(values)[:2] if finish is gathered else list(values)[:1]
        later = finish(module, group, *[values.pop(name) for name in names], **values)
        if later and function.__name__ == "irecv":
            return Later(made, later)
        if later:
            later()
        return made

    return call


def on_the_host(module, c10d):
    """By a group of PyTorch's tests that needs nobody; what captured ranks sent is then put in the place of its results."""
    for name, finish in {"all_reduce": reduced, "reduce": reduced, "broadcast": broadcast, "all_gather": gathered, "gather": gathered,
                         "all_gather_into_tensor": gathered, "all_gather_single": gathered, "send": sent, "isend": sent, "recv": received, "irecv": received}.items():
        if hasattr(module, name):
            setattr(module, name, with_host(module, getattr(module, name), finish))
    fake = getattr(c10d, "FakeProcessGroup", None)
    if fake is None:
        return
    create = getattr(fake, "_create_internal", fake)

    real = module.ProcessGroupGloo
    fake._set_sequence_number_for_group = lambda group: None  # 2.6 has none

    class OfFakes(type):
        def __instancecheck__(cls, value):
            return isinstance(value, (fake, real))

        def __getattr__(cls, name):
            return getattr(real, name)

    class Gloo(metaclass=OfFakes):
        def __new__(cls, store, rank, size, *arguments, **more):
            return create(rank, size)

    def create_gloo(opts, backend_options=None):
        return create(opts.group_rank, opts.group_size)

    module.ProcessGroupGloo = Gloo
    if hasattr(module, "_create_gloo_process_group"):
        module._create_gloo_process_group = create_gloo
    known = module.Backend._plugins.get("GLOO") if hasattr(module.Backend, "_plugins") else None
    if known is not None:
        module.Backend._plugins["GLOO"] = known._replace(creator_fn=create_gloo)


def install(after, setting, library, line_here):
    HOOKS.update(setting=setting, library=library, line_here=line_here, leave=os._exit)
    if folder() and os.path.exists(os.path.join(folder(), "roles")):  # each would start processes that compile, and there are others
        os.environ.setdefault("TORCHINDUCTOR_COMPILE_THREADS", "1")
    after["torch.distributed.distributed_c10d"] = after_c10d
    after["torch.distributed._symmetric_memory"] = after_symmetric
