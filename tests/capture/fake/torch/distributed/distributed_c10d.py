"""Groups over NCCL as PyTorch makes them: an id by way of the store, and a communicator of it."""
import ctypes
import os

from torch._C import _distributed_c10d  # noqa: F401

_nccl, _runtime = ctypes.CDLL("libnccl.so.2"), ctypes.CDLL("libcudart.so.13")


class Id(ctypes.Structure):
    _fields_ = [("bytes", ctypes.c_char * 128)]


class Backend:
    pass


class Group:
    def __init__(self, store, name, size, rank):
        key, self.communicator, self.memory = f"{name}//cuda//0", ctypes.c_void_p(), ctypes.c_void_p()
        id = Id()
        if rank == 0:
            _nccl.ncclGetUniqueId(ctypes.byref(id))
            store.set(key, bytes(id))
        else:
            id = Id.from_buffer_copy(store.get(key))
        _nccl.ncclCommInitRank.argtypes = [ctypes.c_void_p, ctypes.c_int, Id, ctypes.c_int]
        _nccl.ncclCommInitRank(ctypes.byref(self.communicator), size, id, rank)
        _runtime.cudaMalloc(ctypes.byref(self.memory), ctypes.c_size_t(8))

    def send(self, number, peer):
        _runtime.cudaMemcpy(self.memory, ctypes.byref(ctypes.c_int64(number)), ctypes.c_size_t(8), 1)
        _nccl.ncclSend(self.memory, ctypes.c_size_t(1), 4, peer, self.communicator, None)

    def receive(self, peer):
        number = ctypes.c_int64()
        _nccl.ncclRecv(self.memory, ctypes.c_size_t(1), 4, peer, self.communicator, None)
        _runtime.cudaMemcpy(ctypes.byref(number), self.memory, ctypes.c_size_t(8), 2)
        return number.value


class _world:
    pg_names = {}


def gather():
    pass


def scatter():
    pass


def rendezvous(url):
    raise RuntimeError("nobody else is here")


def _tensor_to_object():
    pass


def _new_process_group_helper(group_size, group_rank, global_ranks_in_group, backend, store, group_name):
    return Group(store, group_name, group_size, group_rank) if group_rank is not None else None


def init_process_group():
    global _store
    _store, rank, world = next(rendezvous("env://"))
    return _new_process_group_helper(world, rank, [], "nccl", _store, "0")


def new_group(ranks, names=iter(range(1, 1000))):
    rank = int(os.environ["RANK"])
    return _new_process_group_helper(len(ranks), ranks.index(rank) if rank in ranks else None, ranks, "nccl", _store, str(next(names)))
