/* Collectives over all GPUs of this machine, printed as nccl-tests prints them (text, version
 * 2.17), which lockstep calibrate --nccl reads. One process, a communicator over all GPUs; libnccl
 * is loaded at run time. Sizes and bandwidths are as nccl-tests defines them (doc/PERFORMANCE.md
 * there): of an all-gather and a reduce-scatter the size is that of the whole array. */
#include <cstdio>
#include <cstring>

#include <dlfcn.h>
#include <unistd.h>

#include "bench.h"

namespace kb {

static constexpr size_t least_bytes = 1 << 10;
static constexpr int n_warm_up = 5, n_iterations = 20;

typedef struct ncclComm *Comm;

enum { type_float = 7, op_sum = 0 }; /* ncclDataType_t, ncclRedOp_t of nccl.h */

namespace {

/* The prototypes are those of nccl.h; all but the text return 0 for success. */
struct Nccl {
  void *library = nullptr;
  int (*version) (int *) = nullptr;
  const char *(*error) (int) = nullptr;
  int (*init_all) (Comm *, int, const int *) = nullptr;
  int (*destroy) (Comm) = nullptr;
  int (*group_start) () = nullptr;
  int (*group_end) () = nullptr;
  int (*all_reduce) (const void *, void *, size_t, int, int, Comm, cudaStream_t) = nullptr;
  int (*all_gather) (const void *, void *, size_t, int, Comm, cudaStream_t) = nullptr;
  int (*reduce_scatter) (const void *, void *, size_t, int, int, Comm, cudaStream_t) = nullptr;

  Nccl ();
  template <typename F> void find (const char *name, F *ret)
  {
    *ret = reinterpret_cast<F> (dlsym (library, name));
    if (!*ret)
      throw Failure (std::string ("libnccl.so.2 has no ") + name);
  }
  void require (int status, const char *what) const
  {
    if (status != 0)
      throw Failure (std::string (what) + ": " + error (status));
  }
};

Nccl::Nccl () : library (dlopen ("libnccl.so.2", RTLD_NOW))
{
  if (!library)
    throw Failure ("libnccl.so.2 is not found: install NCCL, or name its folder in LD_LIBRARY_PATH");
  find ("ncclGetVersion", &version);
  find ("ncclGetErrorString", &error);
  find ("ncclCommInitAll", &init_all);
  find ("ncclCommDestroy", &destroy);
  find ("ncclGroupStart", &group_start);
  find ("ncclGroupEnd", &group_end);
  find ("ncclAllReduce", &all_reduce);
  find ("ncclAllGather", &all_gather);
  find ("ncclReduceScatter", &reduce_scatter);
}

struct Rank {
  int device;
  Comm comm = nullptr;
  cudaStream_t stream = nullptr;
  float *send = nullptr, *receive = nullptr;
};

struct Operation {
  const char *name, *test, *reduction;
  bool has_parts; /* a rank has one n-th of the array on one side */
  double (*bus_factor) (double n);
};

double all_reduce_factor (double n) { return 2 * (n - 1) / n; }
double parts_factor (double n) { return (n - 1) / n; }

const Operation operations[] = {
  { "all-reduce", "all_reduce", "sum", false, all_reduce_factor },
  { "all-gather", "all_gather", "none", true, parts_factor },
  { "reduce-scatter", "reduce_scatter", "sum", true, parts_factor },
};

class Ring {
public:
  Ring (const Nccl &nccl, int n_ranks, const Operation &op, size_t most_bytes);
  ~Ring ();
  Ring (const Ring &) = delete;

  size_t count (size_t bytes) const; /* elements of a call, of an array of so many bytes */
  double time_us (size_t count, bool in_place);
  size_t n_wrong (size_t count); /* elements, out of place */

private:
  void call (const Rank &rank, size_t index, size_t count, bool in_place);
  void launch (size_t count, bool in_place);
  void wait ();
  double expected (size_t element, size_t count) const;

  const Nccl &nccl_;
  const Operation &op_;
  std::vector<Rank> ranks_;
};

}

/* Rank r sends r + 1 in each element. */
Ring::Ring (const Nccl &nccl, int n_ranks, const Operation &op, size_t most_bytes) : nccl_ (nccl), op_ (op)
{
  std::vector<Comm> comms ((size_t) n_ranks);
  std::vector<int> devices;
  for (int i = 0; i < n_ranks; i++)
    devices.push_back (i);
  nccl.require (nccl.init_all (comms.data (), n_ranks, devices.data ()), "ncclCommInitAll");
  for (int i = 0; i < n_ranks; i++) {
    Rank rank = { i };
    std::vector<float> values (most_bytes / sizeof (float), (float) (i + 1));
    rank.comm = comms[(size_t) i];
    KB_CHECK (cudaSetDevice (i));
    KB_CHECK (cudaStreamCreateWithFlags (&rank.stream, cudaStreamNonBlocking));
    KB_CHECK (cudaMalloc ((void **) &rank.send, most_bytes));
    KB_CHECK (cudaMalloc ((void **) &rank.receive, most_bytes));
    KB_CHECK (cudaMemcpy (rank.send, values.data (), most_bytes, cudaMemcpyHostToDevice));
    ranks_.push_back (rank);
  }
}

Ring::~Ring ()
{
  for (const Rank &rank : ranks_) {
    cudaSetDevice (rank.device);
    cudaStreamSynchronize (rank.stream);
    nccl_.destroy (rank.comm);
    cudaFree (rank.send);
    cudaFree (rank.receive);
    cudaStreamDestroy (rank.stream);
  }
}

size_t
Ring::count (size_t bytes) const
{
  return bytes / sizeof (float) / (op_.has_parts ? ranks_.size () : 1);
}

/* In place, a part lies where it belongs in the whole. */
void
Ring::call (const Rank &r, size_t index, size_t count, bool in_place)
{
  int status;
  if (strcmp (op_.name, "all-reduce") == 0)
    status = nccl_.all_reduce (in_place ? r.receive : r.send, r.receive, count, type_float, op_sum, r.comm, r.stream);
  else if (strcmp (op_.name, "all-gather") == 0)
    status = nccl_.all_gather (in_place ? r.receive + index * count : r.send, r.receive, count, type_float, r.comm, r.stream);
  else
    status = nccl_.reduce_scatter (in_place ? r.receive : r.send, in_place ? r.receive + index * count : r.receive, count, type_float,
                                   op_sum, r.comm, r.stream);
  nccl_.require (status, op_.name);
}

void
Ring::launch (size_t count, bool in_place)
{
  nccl_.require (nccl_.group_start (), "ncclGroupStart");
  for (size_t i = 0; i < ranks_.size (); i++)
    call (ranks_[i], i, count, in_place);
  nccl_.require (nccl_.group_end (), "ncclGroupEnd");
}

void
Ring::wait ()
{
  for (const Rank &rank : ranks_) {
    KB_CHECK (cudaSetDevice (rank.device));
    KB_CHECK (cudaStreamSynchronize (rank.stream));
  }
}

double
Ring::time_us (size_t count, bool in_place)
{
  for (int i = 0; i < n_warm_up; i++)
    launch (count, in_place);
  wait ();
  auto start = std::chrono::steady_clock::now ();
  for (int i = 0; i < n_iterations; i++)
    launch (count, in_place);
  wait ();
  return std::chrono::duration<double, std::micro> (std::chrono::steady_clock::now () - start).count () / n_iterations;
}

double
Ring::expected (size_t element, size_t count) const
{
  double n = (double) ranks_.size ();
  return strcmp (op_.name, "all-gather") == 0 ? (double) (element / count) + 1 : n * (n + 1) / 2;
}

size_t
Ring::n_wrong (size_t count)
{
  size_t wrong = 0, n = strcmp (op_.name, "all-gather") == 0 ? count * ranks_.size () : count;
  launch (count, false);
  wait ();
  for (size_t i = 0; i < ranks_.size (); i++) {
    std::vector<float> values (n);
    KB_CHECK (cudaSetDevice (ranks_[i].device));
    KB_CHECK (cudaMemcpy (values.data (), ranks_[i].receive, n * sizeof (float), cudaMemcpyDeviceToHost));
    for (size_t j = 0; j < n; j++)
      wrong += values[j] != (float) expected (j, count);
  }
  return wrong;
}

static void
print_head (const Nccl &nccl, const Operation &op, int n_ranks, size_t most_bytes)
{
  int version = 0;
  char host[64] = "host";
  nccl.require (nccl.version (&version), "ncclGetVersion");
  gethostname (host, sizeof host - 1);
  printf ("# nccl-tests version 2.17.6 nccl-headers=%d nccl-library=%d\n# Collective test starting: %s_perf\n", version, version, op.test);
  printf ("# nThread 1 nGpus %d minBytes %zu maxBytes %zu step: 2(factor) warmup iters: %d iters: %d agg iters: 1 validation: 1 graph: 0 unalign: 0\n",
          n_ranks, least_bytes, most_bytes, n_warm_up, n_iterations);
  for (int i = 0; i < n_ranks; i++) {
    cudaDeviceProp props;
    char bus_id[32] = "";
    KB_CHECK (cudaGetDeviceProperties (&props, i));
    KB_CHECK (cudaDeviceGetPCIBusId (bus_id, sizeof bus_id, i));
    printf ("#  Rank %2d Group  0 Pid %6d on %10s device %2d [%s] %s\n", i, (int) getpid (), host, i, bus_id, props.name);
  }
  printf ("#       size         count      type   redop    root     time   algbw   busbw  #wrong     time   algbw   busbw  #wrong\n");
}

/* One operation; how many elements were wrong. */
static size_t
run_operation (const Nccl &nccl, const Operation &op, int n_ranks, size_t most_bytes)
{
  Ring ring (nccl, n_ranks, op, most_bytes);
  size_t wrong_in_all = 0;
  double bus_sum = 0;
  int n = 0;
  print_head (nccl, op, n_ranks, most_bytes);
  for (size_t bytes = least_bytes; bytes <= most_bytes; bytes *= 2, n++) {
    size_t count = ring.count (bytes), wrong = ring.n_wrong (count);
    size_t whole = count * sizeof (float) * (op.has_parts ? (size_t) n_ranks : 1);
    double out = ring.time_us (count, false), in = ring.time_us (count, true), factor = op.bus_factor (n_ranks);
    printf ("%12zu %13zu %9s %7s %7s %8.2f %7.2f %7.2f %7zu %8.2f %7.2f %7.2f %7s\n", whole, count, "float", op.reduction, "-1", out,
            (double) whole / out * 1e-3, factor * (double) whole / out * 1e-3, wrong, in, (double) whole / in * 1e-3,
            factor * (double) whole / in * 1e-3, "N/A");
    fflush (stdout);
    bus_sum += factor * (double) whole / out * 1e-3;
    wrong_in_all += wrong;
  }
  printf ("# Out of bounds values : %zu %s\n# Avg bus bandwidth    : %g\n#\n# Collective test concluded: %s_perf\n#\n", wrong_in_all,
          wrong_in_all == 0 ? "OK" : "FAILED", bus_sum / n, op.test);
  return wrong_in_all;
}

int
run_nccl (size_t most_bytes)
{
  int n_ranks = 0;
  size_t n_wrong = 0;
  KB_CHECK (cudaGetDeviceCount (&n_ranks));
  if (n_ranks < 2)
    throw Failure ("--nccl: collectives need two GPUs or more; there is " + std::to_string (n_ranks));
  Nccl nccl;
  for (const Operation &op : operations)
    n_wrong += run_operation (nccl, op, n_ranks, most_bytes);
  return n_wrong == 0 ? 0 : 1;
}

}
