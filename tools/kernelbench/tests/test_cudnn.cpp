/* Attention as cuDNN's operation graphs, on the cuDNN that LD_LIBRARY_PATH has.
 *
 * test_cudnn fake: on the made-up one (fake_cudnn.cpp), which computes the graphs: results are those of the reference; what goes wrong is
 * a Failure with the reason. test_cudnn refused TEXT: loading it fails, with this text. test_cudnn real: on NVIDIA's, without a GPU: it
 * compiles kernels of its attention engines out of the graphs, for described GPUs of several generations; nothing runs. Skipped (77)
 * where there is no cuDNN from 9.8 on, or no NVRTC. */
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <random>

#include <dlfcn.h>

#include "../cudnn.h"
#include "../failure.h"
#include "../reference.h"
#include "../tolerance.h"

using namespace kb;

static int n_failed;

static void
expect (bool holds, const std::string &what)
{
  if (holds)
    return;
  fprintf (stderr, "FAILED %s\n", what.c_str ());
  n_failed++;
}

static std::string
failure_of (const std::function<void ()> &body)
{
  try {
    body ();
  } catch (const Failure &failure) {
    return failure.what ();
  }
  return "";
}

static void
expect_failure (const std::string &text, const std::function<void ()> &body)
{
  std::string why = failure_of (body);
  expect (why.find (text) != std::string::npos, "\"" + why + "\" has no \"" + text + "\"");
}

static std::unique_ptr<CudnnGraph>
graph_of (const AttentionShape &s, bool is_backward)
{
  return is_backward ? sdpa_backward (s, cudnn ().version ()) : sdpa_forward (s, cudnn ().version ());
}

/* --- the made-up one ------------------------------------------------------------------------ */

static CudnnTarget
made_up_gpu ()
{
  CudnnTarget target;
  cudnn ().require (cudnn ().create (&target.handle), "cudnnCreate");
  return target;
}

using Halves = std::vector<uint16_t>; /* bf16 */

static Halves
random_halves (size_t n, unsigned seed)
{
  std::mt19937 generator (seed);
  std::normal_distribution<float> normal;
  Halves out (n);
  for (uint16_t &half : out) {
    float f = normal (generator);
    uint32_t bits;
    memcpy (&bits, &f, 4);
    half = (uint16_t) (bits >> 16);
  }
  return out;
}

static Vector
numbers_of (const Halves &halves)
{
  Vector out;
  for (uint16_t half : halves) {
    uint32_t bits = (uint32_t) half << 16;
    float f;
    memcpy (&f, &bits, 4);
    out.push_back (f);
  }
  return out;
}

static void
expect_close (const std::string &what, const Vector &got, const Vector &reference, double allowed)
{
  double error = 0, norm = 0;
  for (size_t i = 0; i < reference.size (); i++) {
    error += (got[i] - reference[i]) * (got[i] - reference[i]);
    norm += reference[i] * reference[i];
  }
  double relative = std::sqrt (error / norm);
  printf ("%-32s error %.2e, allowed %.1e\n", what.c_str (), relative, allowed);
  expect (relative <= allowed, what);
}

static void
test_results (const std::string &name, const AttentionShape &s)
{
  size_t n_q = s.sequences * s.seq * s.heads * s.d, n_kv = s.sequences * s.seq * s.kv_heads * s.d, n_rows = s.sequences * s.heads * s.seq;
  Halves q = random_halves (n_q, 1), k = random_halves (n_kv, 2), v = random_halves (n_kv, 3), dout = random_halves (n_q, 4);
  Halves out (n_q, 0xffff), dq (n_q, 0xffff), dk (n_kv, 0xffff), dv (n_kv, 0xffff); /* NaN */
  std::vector<float> lse (n_rows), delta (n_rows), dq_sum (n_q), workspace (64);
  std::map<int64_t, void *> memory = { { SDPA_Q, q.data () }, { SDPA_K, k.data () }, { SDPA_V, v.data () }, { SDPA_OUT, out.data () },
                                       { SDPA_LSE, lse.data () } };
  AttentionReference r = attention_reference (s, numbers_of (q), numbers_of (k), numbers_of (v), numbers_of (dout));
  CudnnPlan forward (graph_of (s, false), made_up_gpu ()), backward (graph_of (s, true), made_up_gpu ());
  forward.bind (memory, workspace.data ());
  forward.run ();
  expect_close (name + " out", numbers_of (out), r.out, 2 * bf16_tolerance ());
  expect_close (name + " lse", Vector (lse.begin (), lse.end ()), r.lse, fp32_tolerance ());
  memory.insert ({ { SDPA_DOUT, dout.data () }, { SDPA_DQ, dq.data () }, { SDPA_DK, dk.data () }, { SDPA_DV, dv.data () },
                   { SDPA_DELTA, delta.data () }, { SDPA_DQ_SUM, dq_sum.data () } });
  backward.bind (memory, workspace.data ());
  backward.run ();
  expect_close (name + " dq", numbers_of (dq), r.dq, 3 * bf16_tolerance ());
  expect_close (name + " dk", numbers_of (dk), r.dk, 3 * bf16_tolerance ());
  expect_close (name + " dv", numbers_of (dv), r.dv, 3 * bf16_tolerance ());
}

/* A plan that is not given each tensor's place does not run. */
static void
test_operands (const AttentionShape &s)
{
  char place[16] = "";
  CudnnPlan plan (graph_of (s, false), made_up_gpu ());
  plan.bind ({ { SDPA_Q, place }, { SDPA_K, place }, { SDPA_OUT, place }, { SDPA_LSE, place } }, place);
  expect_failure ("cudnnBackendExecute: CUDNN_STATUS_BAD_PARAM: no address of tensor 3", [&] { plan.run (); });
}

/* What is not a graph is none for the made-up cuDNN either. */
static void
test_graphs ()
{
  auto plan = [] (const std::function<void (CudnnGraph &)> &build) {
    return [build] {
      auto graph = std::make_unique<CudnnGraph> ();
      build (*graph);
      CudnnPlan (std::move (graph), made_up_gpu ());
    };
  };
  CudnnSizes sizes = { 2, 3, 4, 5 };
  auto memory = [&] (CudnnGraph &g, int64_t id) -> CudnnGraph::Tensor { return g.memory (id, sizes, dense_strides (sizes), CudnnData::FLOAT); };
  expect_failure ("read before it is written", plan ([&] (CudnnGraph &g) { g.pointwise (CudnnPointwise::EXP, g.temporary (sizes), memory (g, 1)); }));
  expect_failure ("never read", plan ([&] (CudnnGraph &g) { g.pointwise (CudnnPointwise::EXP, memory (g, 1), g.temporary (sizes)); }));
  expect_failure ("two tensors of one id", plan ([&] (CudnnGraph &g) { g.pointwise (CudnnPointwise::EXP, memory (g, 1), memory (g, 1)); }));
  expect_failure ("sizes of a product", plan ([&] (CudnnGraph &g) { g.matmul (memory (g, 1), memory (g, 2), memory (g, 3)); }));
  expect_failure ("sizes of a reduction", plan ([&] (CudnnGraph &g) { g.reduce (CudnnReduction::ADD, memory (g, 1), memory (g, 2)); }));
  expect_failure ("inputs of a pointwise", plan ([&] (CudnnGraph &g) { g.pointwise (CudnnPointwise::ADD, memory (g, 1), memory (g, 2)); }));
}

static void
test_faults (const AttentionShape &s)
{
  auto make = [&] { CudnnPlan (graph_of (s, true), made_up_gpu ()); };
  auto with = [&] (const char *fault, const std::string &text, const std::function<void ()> &body) {
    setenv ("KB_CUDNN", fault, 1);
    expect_failure (text, body);
    unsetenv ("KB_CUDNN");
  };
  with ("no-engine", "cuDNN has no engine for this graph: its heuristics propose none", make);
  with ("no-plan", "cuDNN has no engine for this graph: a plan of cuDNN: CUDNN_STATUS_NOT_SUPPORTED: this engine takes no such graph", make);
  with ("no-handle", "cudnnCreate: CUDNN_STATUS_NOT_INITIALIZED: no device", make);
  with ("9.10.0", "known to be wrong", make);
  AttentionShape uneven = s, wide = s;
  uneven.seq = 192;
  wide.d = 256;
  expect_failure ("multiples of 128", [&] { graph_of (uneven, false); });
  expect_failure ("a width up to 128", [&] { graph_of (wide, false); });
  expect (failure_of (make) == "", "a plan without a fault");
  expect (!sdpa_zeroes_dq_sum (90500) && sdpa_zeroes_dq_sum (90600), "who zeroes dq");
}

static void
test_fake ()
{
  AttentionShape shape = { 1, 128, 2, 2, 64, true };
  test_results ("causal d=64", shape);
  test_results ("causal d=128 gqa", { 2, 128, 4, 2, 128, true });
  test_results ("full d=64 mqa", { 1, 256, 3, 1, 64, false });
  setenv ("KB_CUDNN", "9.5", 1);
  test_results ("causal, of 9.5", shape);
  setenv ("KB_CUDNN", "second", 1);
  test_results ("by the second engine", shape);
  unsetenv ("KB_CUDNN");
  test_operands (shape);
  test_graphs ();
  test_faults (shape);
}

/* --- NVIDIA's -------------------------------------------------------------------------------- */

/* A GPU as cuDNN describes one; the keys are those that its messages name when they are missing. The sizes are the H100's: kernels are
 * chosen and compiled by the generation. */
static CudnnDescriptor
described_gpu (int generation)
{
  std::string json = "{\"maxGridSize\":[2147483647,65535,65535],\"maxBlockSize\":[1024,1024,64],\"regsPerBlock\":65536,"
                     "\"multiProcessorCount\":132,\"warpSize\":32,\"maxSharedMemoryPerBlock\":49152,\"maxSharedMemoryPerBlockOptin\":232448,"
                     "\"reservedSharedMemoryPerBlock\":1024,\"maxRegistersPerSM\":65536,\"maxCtasPerSM\":32,\"maxThreadsPerBlock\":1024,"
                     "\"maxThreadsPerSM\":2048,\"pciDeviceId\":0,\"isTccDriver\":0,\"supportCoopLaunch\":1,\"smClockRateKHz\":1980000,"
                     "\"memClockRateKHz\":2619000,\"l2CacheSize\":52428800,\"deviceName\":\"a GPU\",\"driverVer\":13000,\"cudaDeviceId\":0,"
                     "\"totalGlobalMem\":85899345920,\"GPUProfile\":0,\"deviceVer\":";
  json += std::to_string (generation) + ",\"smVersion\":" + std::to_string (generation) + "}";
  CudnnDescriptor device (CudnnKind::DEVICEPROP);
  device.set (CudnnName::DEVICEPROP_JSON_REPRESENTATION, CudnnType::CHAR, (int64_t) json.size (), json.data ());
  device.finalize ("a described GPU");
  return device;
}

/* fake_cuda_driver.c */
static std::string
last_kernel ()
{
  void *driver = dlopen ("libcuda.so.1", RTLD_NOW);
  auto name = reinterpret_cast<const char *(*) ()> (driver ? dlsym (driver, "fake_last_kernel") : nullptr);
  return name ? name () : "";
}

static void
test_compiles (int generation, const AttentionShape &s)
{
  CudnnDescriptor device = described_gpu (generation);
  CudnnTarget target;
  target.device = &device;
  for (bool is_backward : { false, true }) {
    char place[16] = "";
    std::string why = failure_of ([&] {
      CudnnPlan plan (graph_of (s, is_backward), target);
      plan.bind ({ { SDPA_Q, place }, { SDPA_K, place } }, place);
    });
    std::string kernel = last_kernel ();
    printf ("%d d=%zu: %s\n", generation, s.d, kernel.c_str ());
    expect (why.empty (), why);
    expect (kernel.find ("sdpa") != std::string::npos && kernel.find (is_backward ? "bprop" : "fprop") != std::string::npos,
            "\"" + kernel + "\" is no kernel of attention");
  }
}

static void
skip_unless (bool holds, const char *what)
{
  if (holds)
    return;
  printf ("skipped: %s\n", what);
  exit (77);
}

static void
test_real ()
{
  skip_unless (failure_of ([] { cudnn (); }) == "", "there is no cuDNN 9");
  skip_unless (cudnn ().version () >= 90800, "before 9.8 cuDNN compiles for no described GPU");
  skip_unless (dlopen ("libnvrtc.so.13", RTLD_NOW) || dlopen ("libnvrtc.so.12", RTLD_NOW), "there is no NVRTC");
  test_compiles (800, { 4, 2048, 12, 12, 128, true });
  test_compiles (900, { 2, 4096, 32, 8, 128, true });
  test_compiles (900, { 4, 2048, 12, 12, 128, false });
  test_compiles (900, { 4, 2048, 16, 16, 64, true });
  test_compiles (1000, { 4, 2048, 16, 16, 64, true });
}

int
main (int n_arguments, char **arguments)
{
  std::string mode = n_arguments > 1 ? arguments[1] : "";
  if (mode == "fake")
    test_fake ();
  else if (mode == "real")
    test_real ();
  else if (mode == "refused" && n_arguments == 3)
    expect_failure (arguments[2], [] { cudnn (); });
  else
    return 2;
  return n_failed > 0;
}
