/* Copies by the copy engines: within the device, from and to pinned host memory, both ways
 * at once. Steady; bytes are those of the tensor, once. Of a copy within the device the
 * memory reads and writes each. */
#include <iterator>

#include "bench.h"
#include "ops.h"

namespace kb {

static constexpr size_t sizes[] = { 64u << 10, 1u << 20, 16u << 20, 256u << 20 };
static constexpr size_t n_sets = 4; /* of the largest size */
static constexpr double case_s = 0.5;

namespace {

/* Pinned, filled with bytes that differ. */
class HostBuffer {
public:
  explicit HostBuffer (size_t n)
  {
    if (n == 0)
      return;
    KB_CHECK (cudaHostAlloc ((void **) &data_, n, cudaHostAllocDefault));
    for (size_t i = 0; i < n; i++)
      data_[i] = (uint8_t) (i * 2654435761u >> 13);
  }
  HostBuffer (const HostBuffer &) = delete;
  ~HostBuffer ()
  {
    if (data_)
      cudaFreeHost (data_);
  }
  uint8_t *get () const { return data_; }

private:
  uint8_t *data_ = nullptr;
};

}

/* What was copied there and back must be what was sent. */
static void
check_round_trip (const HostBuffer &from, const HostBuffer &to, const Buffer<uint8_t> &device, size_t n)
{
  KB_CHECK (cudaMemcpy (device.get (), from.get (), n, cudaMemcpyHostToDevice));
  KB_CHECK (cudaMemcpy (device.get () + n, device.get (), n, cudaMemcpyDeviceToDevice));
  KB_CHECK (cudaMemset (device.get (), 0, n));
  KB_CHECK (cudaMemcpy (to.get (), device.get () + n, n, cudaMemcpyDeviceToHost));
  for (size_t i = 0; i < n; i++)
    if (to.get ()[i] != from.get ()[i])
      throw Failure (format ("byte %zu of a copy to the device and back differs", i));
}

/* A GPU that this one can copy to; -1: there is none. */
static int
find_peer (int device)
{
  int n = 0;
  KB_CHECK (cudaGetDeviceCount (&n));
  for (int peer = 0; peer < n; peer++) {
    int can = 0;
    if (peer != device && cudaDeviceCanAccessPeer (&can, device, peer) == cudaSuccess && can)
      return peer;
  }
  return -1;
}

/* The largest size, to another GPU; only where there is one. */
static void
bench_peer (Bench &bench)
{
  constexpr size_t n = sizes[std::size (sizes) - 1];
  int device = bench.options ().device, peer = bench.is_dry () ? -1 : find_peer (device);
  Row row { "copies", "copy-peer", format ("1x%zu", n), "byte", (double) n };
  row.note = format ("to=%d", peer);
  if (peer < 0)
    return;
  bench.measure (row, case_s, [&] (Row &) {
    Buffer<uint8_t> from (n);
    void *to = nullptr;
    KB_CHECK (cudaSetDevice (peer));
    cudaError_t status = cudaMalloc (&to, n);
    KB_CHECK (cudaSetDevice (device));
    KB_CHECK (status);
    cudaDeviceEnablePeerAccess (peer, 0); /* without it the copy goes through the host: slower, and still a copy */
    cudaGetLastError ();
    Timing time = bench.steady ([&] (int) { KB_CHECK (cudaMemcpyPeerAsync (to, peer, from.get (), device, n, bench.stream ())); });
    cudaFree (to);
    return time;
  });
}

void
bench_copies (Bench &bench)
{
  constexpr size_t largest = sizes[std::size (sizes) - 1];
  bool is_dry = bench.is_dry ();
  HostBuffer from (is_dry ? 0 : largest), to (is_dry ? 0 : largest);
  Buffer<uint8_t> device (is_dry ? 0 : n_sets * largest);
  cudaStream_t stream = bench.stream (), other = nullptr;
  if (!is_dry) {
    KB_CHECK (cudaStreamCreateWithFlags (&other, cudaStreamNonBlocking));
    check_round_trip (from, to, device, sizes[1]);
  }
  std::vector<Event> joined (is_dry ? 0 : 2);
  auto set = [&] (int i, size_t n) { return device.get () + (size_t) i % (n_sets * largest / n) * n; };
  auto up = [&] (int i, size_t n) { KB_CHECK (cudaMemcpyAsync (set (2 * i, n), from.get (), n, cudaMemcpyHostToDevice, stream)); };
  auto down = [&] (int i, size_t n, cudaStream_t on) {
    KB_CHECK (cudaMemcpyAsync (to.get (), set (2 * i + 1, n), n, cudaMemcpyDeviceToHost, on));
  };

  bench.wake_up ();
  for (size_t n : sizes) {
    const struct {
      const char *name;
      double bytes;
      Launch launch;
    } cases[] = {
      { "copy-device-to-device", 2.0 * (double) n,
        [&] (int i) { KB_CHECK (cudaMemcpyAsync (set (2 * i, n), set (2 * i + 1, n), n, cudaMemcpyDeviceToDevice, stream)); } },
      { "copy-host-to-device", (double) n, [&] (int i) { up (i, n); } },
      { "copy-device-to-host", (double) n, [&] (int i) { down (i, n, stream); } },
      { "copy-both-ways", 2.0 * (double) n,
        [&] (int i) {
          joined[0].record (stream);
          KB_CHECK (cudaStreamWaitEvent (other, joined[0].get (), 0));
          up (i, n);
          down (i, n, other);
          joined[1].record (other);
          KB_CHECK (cudaStreamWaitEvent (stream, joined[1].get (), 0));
        } },
    };
    for (const auto &c : cases) {
      Row row { "copies", c.name, format ("1x%zu", n), "byte", c.bytes };
      row.note = "host=pinned";
      bench.measure (row, case_s, [&] (Row &) { return bench.steady (c.launch); });
    }
  }
  if (other)
    KB_CHECK (cudaStreamDestroy (other));
  bench_peer (bench);
}

}
