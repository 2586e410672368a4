import ctypes
import os
import pickle
import sys
import time

_runtime = ctypes.CDLL("libcudart.so.13")
# Each question takes a quarter of a microsecond: much happens within one, as on a fast machine.
_now = [1_000_000_000_000]
_trace, _stats = [], {"now": 0, "most": 0, "reserved": 0, "ooms": 0}


def _time_ns():
    _now[0] += 250
    return _now[0]


time.time_ns = _time_ns


class OutOfMemoryError(RuntimeError):
    pass


def _frames():
    frame, found = sys._getframe(2), [{"filename": "libtorch_cpu.so", "line": 1, "name": "at::_ops::zeros::call(at::Tensor const&)"}]
    while frame:
        found.append({"filename": frame.f_code.co_filename, "line": frame.f_lineno, "name": frame.f_code.co_name})
        frame = frame.f_back
    return found


class Tensor:
    is_cuda = True

    def __init__(self, nbytes):
        self.address = ctypes.c_void_p()
        self.size, self.grad = nbytes, None
        if _runtime.cudaMalloc(ctypes.byref(self.address), ctypes.c_size_t(nbytes)) == 2:
            _stats["ooms"] += 1
            raise OutOfMemoryError("CUDA out of memory")
        _stats["now"] += nbytes
        _stats["most"] = max(_stats["most"], _stats["now"])
        _stats["reserved"] = (_stats["most"] + int(os.environ.get("CACHED", "0")) + 2097151) // 2097152 * 2097152
        _trace.append({"action": "alloc", "addr": self.address.value, "size": nbytes, "frames": _frames(), "time_us": time.time_ns() // 1000})

    def free(self):
        _runtime.cudaFree(self.address)
        _stats["now"] -= self.size
        _trace.append({"action": "free_requested", "addr": self.address.value, "size": self.size, "time_us": time.time_ns() // 1000})

    def numel(self):
        return self.size

    def untyped_storage(self):
        return self

    def data_ptr(self):
        return self.address.value


def product():
    handle = ctypes.c_void_p()
    blas = ctypes.CDLL("libcublas.so.13")
    blas.cublasCreate_v2(ctypes.byref(handle))
    blas.cublasSgemm_v2(handle, 0, 0, 1024, 1024, 1024)


def synchronize():
    _runtime.cudaDeviceSynchronize()


class Event:
    def __init__(self):
        self.handle = ctypes.c_void_p()
        _runtime.cudaEventCreate(ctypes.byref(self.handle))

    def record(self):
        _runtime.cudaEventRecord(self.handle, None)

    def elapsed_time(self, end):
        ms = ctypes.c_float()
        _runtime.cudaEventElapsedTime(ctypes.byref(ms), self.handle, end.handle)
        return ms.value


class memory:
    @staticmethod
    def _record_memory_history(**more):
        pass

    @staticmethod
    def _snapshot():
        return {"device_traces": [_trace]}

    @staticmethod
    def _dump_snapshot(path):
        with open(path, "wb") as out:
            pickle.dump({"device_traces": [_trace]}, out)


def is_busy():
    """Whether what was launched is not done when that is asked for the fifth time, 25 us after it was."""
    event = ctypes.c_void_p()
    _runtime.cudaEventCreate(ctypes.byref(event))
    _runtime.cudaEventRecord(event, None)
    return [_runtime.cudaEventQuery(event) for question in range(5)][-1] != 0


def is_available():
    n = ctypes.c_int()
    return _runtime.cudaGetDeviceCount(ctypes.byref(n)) == 0 and n.value > 0


def is_initialized():
    return bool(_trace)


def _lazy_call(call):
    call()


def reset_peak_memory_stats():
    _stats["most"] = _stats["now"]


def memory_stats(device):
    return {"allocated_bytes.all.peak": _stats["most"], "reserved_bytes.all.peak": _stats["reserved"], "active_bytes.all.peak": _stats["most"],
            "requested_bytes.all.peak": _stats["most"], "num_alloc_retries": 0, "num_ooms": _stats["ooms"]}


def get_device_name():
    name = ctypes.create_string_buffer(2048)
    _runtime.cudaGetDeviceProperties(name, 0)
    return name.value.decode()
