/* A GEMM beside a kernel that holds r of the n SMs, as a communication kernel does
 * while it waits (spin: no traffic) or moves data (copy: through device memory).
 *
 * The rule under test: GEMM time alone / beside = 1 - r / n. Fewer SMs also draw less
 * power, so their clock may rise; both clocks are reported, and the ratio scaled to
 * equal clocks. GEMM variants, of the library: `default` believes that it has all SMs, `sm-target` was
 * told how many there are (CUBLASLT_MATMUL_DESC_SM_COUNT_TARGET). Of ours (ops_gemm.cu), beside a kernel that waits: `tiles`, `clusters` and
 * `persistent`, which occupy the SMs in a known way, so that it can be told in which way the library's do. */
#include <algorithm>
#include <memory>

#include "bench.h"
#include "gemm.h"
#include "ops.h"

namespace kb {

static constexpr int block_threads = 512;
static constexpr int max_blocks = 32;
static constexpr int block_counts[] = { 8, 16, 24, 32 };
static constexpr unsigned long long give_up_ns = 20'000'000'000ull; /* a resident kernel ends in any case */
static constexpr double start_limit_s = 5;
static constexpr double run_s = 0.35;
static constexpr size_t traffic_vectors = 1u << 25; /* of 16 bytes, each way: 512 MiB */
static constexpr int copy_unroll = 4;
static constexpr int copies_per_poll = 16;
static constexpr unsigned poll_ns = 50'000;

static const GemmShape gemm_shapes[] = { { 8192, 12288, 12288 }, { 2048, 12288, 6144 } };

namespace {

enum class Kind { SPIN, COPY };

/* In pinned host memory, seen by both sides. */
struct Shared {
  volatile int stop; /* what is copied to the kernel's own */
  volatile int has_started[max_blocks];
  volatile double bytes[max_blocks], ns[max_blocks];
};

}

static __device__ unsigned long long
global_ns ()
{
  unsigned long long ns;
  asm volatile ("mov.u64 %0, %%globaltimer;" : "=l"(ns));
  return ns;
}

static __device__ bool
must_stop (const volatile int *stop, unsigned long long start_ns)
{
  return *stop || global_ns () - start_ns > give_up_ns;
}

/* One thread asks now and then, in device memory, the others wait for it at a barrier: the SMs are held, and
 * nothing is issued that others could feel. It matters. Asked every half microsecond in the host's memory, with
 * warps that spun beside, products on other SMs of an H100 took 2 to 33 times as long, the more the more blocks
 * asked; every 50 microseconds on an H200 still a third longer than by the SMs that were left, with 32 blocks;
 * kernels that only compute took what the SMs left say (November 2026, both in a virtual machine). */
static __global__ void
spin_resident (Shared *shared, const volatile int *stop)
{
  if (threadIdx.x == 0) {
    unsigned long long start = global_ns ();
    shared->has_started[blockIdx.x] = 1;
    while (!must_stop (stop, start))
      __nanosleep (poll_ns);
  }
  __syncthreads ();
}

static __device__ void
copy_chunk (const uint4 *from, uint4 *to, size_t chunk)
{
  uint4 v[copy_unroll];
  size_t at = chunk * block_threads * copy_unroll % traffic_vectors + threadIdx.x;
#pragma unroll
  for (int i = 0; i < copy_unroll; i++)
    v[i] = from[at + i * block_threads];
#pragma unroll
  for (int i = 0; i < copy_unroll; i++)
    to[at + i * block_threads] = v[i];
}

static __global__ void
copy_resident (Shared *shared, const volatile int *stop, const uint4 *from, uint4 *to)
{
  size_t chunk = blockIdx.x, n_chunks = 0;
  unsigned long long start = global_ns ();
  if (threadIdx.x == 0)
    shared->has_started[blockIdx.x] = 1;
  do {
    for (int i = 0; i < copies_per_poll; i++, n_chunks++, chunk += gridDim.x)
      copy_chunk (from, to, chunk);
  } while (!__syncthreads_or (threadIdx.x == 0 && must_stop (stop, start)));
  if (threadIdx.x == 0) {
    shared->bytes[blockIdx.x] = 2.0 * n_chunks * block_threads * copy_unroll * sizeof (uint4);
    shared->ns[blockIdx.x] = (double) (global_ns () - start);
  }
}

namespace {

/* A kernel of `blocks` blocks, each with an SM to itself because it asks for all its
 * shared memory. Runs from start () to stop (). */
class Resident {
public:
  explicit Resident (const Bench &bench)
    : shared_bytes_ (bench.max_shared_bytes () - 1024), from_ (traffic_vectors), to_ (traffic_vectors), stop_ (1)
  {
    KB_CHECK (cudaHostAlloc ((void **) &shared_, sizeof *shared_, cudaHostAllocMapped));
    KB_CHECK (cudaStreamCreateWithFlags (&stream_, cudaStreamNonBlocking));
    KB_CHECK (cudaStreamCreateWithFlags (&signals_, cudaStreamNonBlocking));
    KB_CHECK (cudaFuncSetAttribute (spin_resident, cudaFuncAttributeMaxDynamicSharedMemorySize, (int) shared_bytes_));
    KB_CHECK (cudaFuncSetAttribute (copy_resident, cudaFuncAttributeMaxDynamicSharedMemorySize, (int) shared_bytes_));
    fill_normal (stream_, (float *) from_.get (), 4 * from_.size (), 1, 30);
    KB_CHECK (cudaStreamSynchronize (stream_));
  }
  Resident (const Resident &) = delete;
  ~Resident ()
  {
    abandon ();
    cudaStreamDestroy (stream_);
    cudaStreamDestroy (signals_);
    cudaFreeHost (shared_);
  }

  void start (Kind kind, int blocks)
  {
    *shared_ = Shared ();
    blocks_ = blocks;
    signal ();
    KB_CHECK (cudaStreamSynchronize (signals_));
    if (kind == Kind::SPIN)
      spin_resident<<<blocks, block_threads, shared_bytes_, stream_>>> (shared_, stop_.get ());
    else
      copy_resident<<<blocks, block_threads, shared_bytes_, stream_>>> (shared_, stop_.get (), from_.get (), to_.get ());
    KB_CHECK_LAUNCH ();
  }

  bool has_started () const
  {
    return std::all_of (shared_->has_started, shared_->has_started + blocks_, [] (int started) { return started != 0; });
  }

  /* Returns the traffic in bytes/s. */
  double stop ()
  {
    double bytes_per_s = 0;
    shared_->stop = 1;
    signal ();
    KB_CHECK (cudaStreamSynchronize (stream_));
    for (int i = 0; i < blocks_; i++)
      if (shared_->ns[i] > 0)
        bytes_per_s += shared_->bytes[i] / shared_->ns[i] * 1e9;
    return bytes_per_s;
  }

  /* stop () that ends in any case, and throws nothing. */
  void abandon ()
  {
    shared_->stop = 1;
    signal ();
    cudaStreamSynchronize (stream_);
  }

private:
  /* By a copy engine, which needs no SM. What fails is found where the kernel is waited for. */
  void signal ()
  {
    cudaMemcpyAsync (stop_.get (), const_cast<int *> (&shared_->stop), sizeof (int), cudaMemcpyHostToDevice, signals_);
  }

  size_t shared_bytes_;
  Buffer<uint4> from_, to_;
  Buffer<int> stop_;
  Shared *shared_ = nullptr;
  cudaStream_t stream_ = nullptr, signals_ = nullptr;
  int blocks_ = 0;
};

struct Product {
  Buffer<__nv_bfloat16> left, right, out;

  Product (const Gemm &g, cudaStream_t stream) : left (g.left_size ()), right (g.right_size ()), out (g.out_size ())
  {
    fill_normal (stream, left.get (), left.size (), 0.02f, 31);
    fill_normal (stream, right.get (), right.size (), 1, 32);
  }
};

struct Measured {
  Timing time;
  Conditions state;
};

}

static Measured
run (Bench &bench, const Launch &launch)
{
  Measured result;
  result.time = bench.sustained (launch, run_s, &result.state);
  return result;
}

static Measured
run (Bench &bench, Gemm &gemm, const Product &p)
{
  return run (bench, [&] (int) { gemm.run (bench.stream (), p.left.get (), p.right.get (), p.out.get ()); });
}

static void
wait_for_start (const Bench &bench, const Resident &resident)
{
  double limit = bench.elapsed_s () + start_limit_s;
  while (!resident.has_started ())
    if (bench.elapsed_s () > limit)
      throw Failure (format ("the resident kernel did not start on all its SMs within %.0f s", start_limit_s));
}

static std::string
note (const Bench &bench, const char *variant, int blocks, const Measured &alone, const Measured &beside, double traffic)
{
  double share = (double) blocks / bench.n_sms (), ratio = beside.time.us / alone.time.us;
  double clocks = alone.state.sm_mhz > 0 ? (double) beside.state.sm_mhz / alone.state.sm_mhz : 1;
  return format ("variant=%s blocks=%d share=%.4f alone_us=%.3f ratio=%.4f ratio_at_equal_clock=%.4f rule=%.4f "
                 "sm_mhz_alone=%u sm_mhz=%u traffic_gb_s=%.1f",
                 variant, blocks, share, alone.time.us, ratio, ratio * clocks, 1 / (1 - share), alone.state.sm_mhz,
                 beside.state.sm_mhz, traffic * 1e-9);
}

/* Ends the resident kernel whatever happens. */
struct Residence {
  Resident &resident;
  ~Residence () { resident.abandon (); }
};

/* Both variants beside r blocks, between two runs of the default alone. The plans are
 * made, and their kernels loaded, before a kernel spins: loading may wait for it. */
static std::vector<Row>
measure (Bench &bench, Resident &resident, Gemm &gemm, const Product &p, const Row &row, Kind kind, int blocks, const GemmShape &shape)
{
  Gemm limited (Pass::FORWARD, Number::BF16, shape);
  limited.limit_sms (bench.n_sms () - blocks);
  limited.run (bench.stream (), p.left.get (), p.right.get (), p.out.get ());

  Measured before = run (bench, gemm, p);
  Residence residence = { resident };
  resident.start (kind, blocks);
  wait_for_start (bench, resident);
  Measured beside = run (bench, gemm, p), beside_limited = run (bench, limited, p);
  double traffic = resident.stop ();
  Measured alone = run (bench, gemm, p);
  alone.time.us = (alone.time.us + before.time.us) / 2;
  alone.state.sm_mhz = (alone.state.sm_mhz + before.state.sm_mhz) / 2;

  Row usual = row, told = row;
  usual.note = note (bench, "default", blocks, alone, beside, traffic);
  if (int cluster = gemm.cluster_blocks (); cluster > 0)
    usual.note += format (" cluster=%d", cluster);
  usual.time = beside.time;
  told.note = note (bench, "sm-target", blocks, alone, beside_limited, traffic);
  told.time = beside_limited.time;
  return { usual, told };
}

namespace {

/* Ways in which blocks of ours occupy the SMs. */
struct Way {
  const char *variant;
  GemmBlocks blocks;
  int capability;
};

}

static const Way ways[] = {
  { "tiles", GemmBlocks::TILES, 80 },
  { "clusters", GemmBlocks::CLUSTERS, 90 },
  { "persistent", GemmBlocks::PERSISTENT, 80 },
};

/* One of ours beside r blocks, and alone before that; its operands are the library's, whose left one is our right one. */
static std::vector<Row>
measure_way (Bench &bench, Resident &resident, const Way &way, const Product &p, const Row &row, int blocks, const GemmShape &s)
{
  if (std::string why = bench.checks ().objection (std::vector<std::string> { std::string ("gemm ") + way.variant }); !why.empty ())
    throw Failure (why);
  if (!tiled_gemm_supports (s.m, s.n, s.k))
    throw Failure ("no whole number of tiles");
  Launch launch = [&] (int) {
    tiled_gemm (bench.stream (), way.blocks, bench.max_shared_bytes () - 1024, bench.n_sms (), s.m, s.n, s.k, p.right.get (), p.left.get (), p.out.get ());
  };
  Measured alone = run (bench, launch);
  Residence residence = { resident };
  resident.start (Kind::SPIN, blocks);
  wait_for_start (bench, resident);
  Measured beside = run (bench, launch);
  resident.stop ();
  Row own = row;
  own.implementation = "own";
  own.note = note (bench, way.variant, blocks, alone, beside, 0);
  own.time = beside.time;
  return { own };
}

namespace {

/* What all cases of a shape share, made by the first of them that is measured. */
struct Setting {
  Gemm gemm;
  std::unique_ptr<Product> product;
};

}

/* By the first case that is measured. */
static void
prepare (Bench &bench, std::unique_ptr<Resident> &resident, Setting &s)
{
  if (!resident)
    resident = std::make_unique<Resident> (bench);
  if (s.product)
    return;
  s.product = std::make_unique<Product> (s.gemm, bench.stream ());
  run (bench, s.gemm, *s.product); /* warm */
}

static void
sweep_ways (Bench &bench, std::unique_ptr<Resident> &resident, const GemmShape &shape, Setting &s)
{
  for (const Way &way : ways)
    for (int blocks : block_counts) {
      Row row = s.gemm.row ("slowdown", "beside-spin");
      row.note = format ("variant=%s blocks=%d", way.variant, blocks);
      if (bench.capability () < way.capability)
        bench.leave_out (row, format ("needs compute capability %d.%d", way.capability / 10, way.capability % 10));
      else
        bench.measure_case (row, 3 * run_s, [&] {
          prepare (bench, resident, s);
          return measure_way (bench, *resident, way, *s.product, row, blocks, shape);
        });
    }
}

static void
sweep (Bench &bench, std::unique_ptr<Resident> &resident, const GemmShape &shape)
{
  Setting s = { Gemm (Pass::FORWARD, Number::BF16, shape), nullptr };
  for (Kind kind : { Kind::SPIN, Kind::COPY })
    for (int blocks : block_counts) {
      Row row = s.gemm.row ("slowdown", kind == Kind::SPIN ? "beside-spin" : "beside-copy");
      row.note = format ("blocks=%d", blocks);
      bench.measure_case (row, 5 * run_s, [&] {
        prepare (bench, resident, s);
        return measure (bench, *resident, s.gemm, *s.product, row, kind, blocks, shape);
      });
    }
  sweep_ways (bench, resident, shape, s);
}

void
bench_slowdown (Bench &bench)
{
  std::unique_ptr<Resident> resident;
  bench.wake_up ();
  if (bench.capability () >= gemm_capability (Number::BF16))
    for (const GemmShape &shape : gemm_shapes)
      sweep (bench, resident, shape);
}

}
