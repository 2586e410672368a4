/* kernels.cu — times kernels of Transformer Engine's library through its C interface: norms, SwiGLU, casts to fp8, rotations,
 * Megatron's optimizer. Writes rows as kernelbench does (lockstep.kernelbench/1), `implementation` transformer-engine.
 *
 *     nvcc -O2 -std=c++17 -arch=native -I INCLUDE tools/kernelbench/te/kernels.cu -o te_kernels -L LIB -ltransformer_engine
 *     ./te_kernels > te.json
 *
 * INCLUDE and LIB are those of Transformer Engine (transformer_engine/common/include and where libtransformer_engine.so lies).
 *
 * A row is the steady time: launches back to back, on operands that rotate through 1 GiB so that none is in L2, the median of nine
 * groups of launches; `isolated_us` has one launch between two events behind a flushed L2, without what two events show around
 * nothing. A case that launches several kernels (an amax, its scale, a cast) is one row. */
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include <cuda_runtime.h>
#include <transformer_engine/activation.h>
#include <transformer_engine/cast.h>
#include <transformer_engine/fused_rope.h>
#include <transformer_engine/fused_router.h>
#include <transformer_engine/multi_tensor.h>
#include <transformer_engine/normalization.h>
#include <transformer_engine/recipe.h>
#include <transformer_engine/transformer_engine.h>

using namespace transformer_engine;

static constexpr size_t pool_bytes = size_t (6) << 30, ring_bytes = size_t (1) << 30;
static char *pool;
static size_t pool_used;
static cudaStream_t stream;
static int n_sms;

static void
check (cudaError_t status)
{
  if (status != cudaSuccess)
    throw std::runtime_error (cudaGetErrorString (status));
}

__global__ void
fill (unsigned *data, size_t n)
{
  for (size_t i = blockIdx.x * size_t (blockDim.x) + threadIdx.x; i < n;
       i += size_t (gridDim.x) * blockDim.x) {
    unsigned x = unsigned (i) * 2654435761u;
    x ^= x >> 15;
    data[i] = (x & 0x807f807fu) | 0x3f803f80u; /* two bf16 from 1 to 2, of either sign; as fp32 likewise */
  }
}

__global__ void
sum (const float4 *data, size_t n, float *out)
{
  float total = 0;
  for (size_t i = blockIdx.x * size_t (blockDim.x) + threadIdx.x; i < n; i += size_t (gridDim.x) * blockDim.x)
    total += data[i].x + data[i].w;
  if (total == 12345.f)
    *out = total;
}

static void *
take (size_t bytes)
{
  bytes = (bytes + 1023) / 1024 * 1024;
  if (pool_used + bytes > pool_bytes)
    throw std::runtime_error ("the pool is too small");
  void *at = pool + pool_used;
  pool_used += bytes;
  return at;
}

static size_t
size_of (DType type)
{
  return type == DType::kFloat32 || type == DType::kInt32 ? 4
      : type == DType::kBFloat16                          ? 2
      : type == DType::kInt64                             ? 8
                                                          : 1;
}

using Shape = std::vector<size_t>;

static size_t
count (const Shape &shape)
{
  size_t n = 1;
  for (size_t s : shape)
    n *= s;
  return n;
}

using Tensor = std::shared_ptr<TensorWrapper>;

static Tensor
tensor (const Shape &shape, DType type = DType::kBFloat16)
{
  return std::make_shared<TensorWrapper> (take (count (shape) * size_of (type)), shape, type);
}

/* Of fp8: rows, and columns if asked, with one scale. */
static Tensor
quantized (size_t rows, size_t columns, bool transposed)
{
  auto scale = static_cast<float *> (take (4)), amax = static_cast<float *> (take (4)),
       inverse = static_cast<float *> (take (4));
  auto t = std::make_shared<TensorWrapper> (take (rows * columns), Shape { rows, columns },
                                            DType::kFloat8E4M3, amax, scale, inverse);
  if (transposed) {
    t->set_columnwise_data (take (rows * columns), DType::kFloat8E4M3, Shape { columns, rows });
    t->set_columnwise_scale_inv (inverse, DType::kFloat32, Shape { 1 });
  }
  return t;
}

/* Of fp8 in blocks of 128 (1 x 128, or 128 x 128 with two dimensions), both ways. */
static Tensor
blockwise (size_t rows, size_t columns, bool two)
{
  auto t = std::make_shared<TensorWrapper> (two ? NVTE_BLOCK_SCALING_2D : NVTE_BLOCK_SCALING_1D);
  auto up = [] (size_t n, size_t k) { return (n + k - 1) / k; };
  Shape a = two ? Shape { up (rows, 128), up (up (columns, 128), 4) * 4 }
                : Shape { up (columns, 128), up (rows, 4) * 4 };
  Shape b = two ? Shape { up (columns, 128), up (up (rows, 128), 4) * 4 }
                : Shape { up (rows, 128), up (columns, 4) * 4 };
  t->set_rowwise_data (take (rows * columns), DType::kFloat8E4M3, Shape { rows, columns });
  t->set_rowwise_scale_inv (take (4 * count (a)), DType::kFloat32, a);
  t->set_columnwise_data (take (rows * columns), DType::kFloat8E4M3, Shape { columns, rows });
  t->set_columnwise_scale_inv (take (4 * count (b)), DType::kFloat32, b);
  return t;
}

static double
median (std::vector<double> v)
{
  std::sort (v.begin (), v.end ());
  return v[v.size () / 2];
}

struct Clock {
  cudaEvent_t a, b;
  Clock ()
  {
    check (cudaEventCreate (&a)), check (cudaEventCreate (&b));
  }
  double
  us (const std::function<void ()> &work)
  {
    check (cudaEventRecord (a, stream));
    work ();
    check (cudaEventRecord (b, stream));
    check (cudaStreamSynchronize (stream));
    float ms;
    check (cudaEventElapsedTime (&ms, a, b));
    return 1e3 * ms;
  }
};

static bool is_first = true;
static std::string failures;

/* `make` gives a launch with operands of its own; `moved` bytes are read and written by one. */
static void
row (const char *name, const std::string &shape, double moved,
     const std::function<std::function<void ()> ()> &make)
{
  static Clock clock;
  try {
    pool_used = 0;
    std::vector<std::function<void ()> > sets;
    do
      sets.push_back (make ());
    while (pool_used < ring_bytes && sets.size () < 24);
    for (auto &launch : sets)
      launch ();
    check (cudaStreamSynchronize (stream));
    double once = clock.us ([&] {
      for (auto &launch : sets)
        launch ();
    }) / sets.size ();
    int n = std::max (int (sets.size ()), int (4e3 / std::max (once, 1.)));
    std::vector<double> steady, isolated, nothing;
    size_t at = 0;
    for (int i = 0; i < 9; i++)
      steady.push_back (clock.us ([&] {
        for (int j = 0; j < n; j++)
          sets[at++ % sets.size ()]();
      }) / n);
    for (int i = 0; i < 9; i++) {
      sum<<<1024, 256, 0, stream>>> (reinterpret_cast<float4 *> (pool), pool_bytes / 64,
                                       reinterpret_cast<float *> (pool));
      isolated.push_back (clock.us ([&] { sets[0](); }));
      nothing.push_back (clock.us ([] {}));
    }
    check (cudaGetLastError ());
    std::sort (steady.begin (), steady.end ());
    double us = steady[4], spread = 100 * (steady[8] - steady[0]) / us;
    printf (
        "%s\n  {\"group\": \"%s\", \"name\": \"%s\", \"shape\": \"%s\", \"dtype\": \"bf16\", \"bytes\": %.0f, \"flops\": 0, "
        "\"time_us\": %.3f, \"spread_pct\": %.2f, \"rate\": %.2f, \"note\": \"isolated_us=%.3f\", \"implementation\": "
        "\"transformer-engine\"}",
        is_first ? "" : ",", strncmp (name, "adam", 4) == 0 ? "streams" : "operators", name, shape.c_str (),
        moved, us, spread, moved / us * 1e-3, median (isolated) - median (nothing));
    is_first = false;
    fflush (stdout);
  } catch (const std::exception &error) {
    std::string why = error.what ();
    why = why.substr (0, why.find ('\n'));
    for (char &c : why)
      if (c == '"' || c == '\\')
        c = '\'';
    failures += (failures.empty () ? "" : ",") + std::string ("\n  {\"case\": \"") + name + " " + shape
        + "\", \"why\": \"" + why + "\"}";
    cudaGetLastError ();
  }
}

static std::string
x (const Shape &shape)
{
  std::string s;
  for (size_t n : shape)
    s += (s.empty () ? "" : "x") + std::to_string (n);
  return s;
}

/* Calls a norm twice: for the size of its workspace, and as what is launched. */
template <class Call>
static std::function<void ()>
with_workspace (Call call)
{
  auto space = std::make_shared<TensorWrapper> ();
  call (space->data ());
  auto shape = space->shape ();
  auto type = space->dtype ();
  size_t n = 1;
  Shape dims;
  for (size_t i = 0; i < shape.ndim; i++)
    dims.push_back (shape.data[i]), n *= shape.data[i];
  auto real = std::make_shared<TensorWrapper> (n ? take (n * size_of (type)) : nullptr, dims, type);
  return [=] {
    call (real->data ());
    (void) real;
  };
}

static void
norms (size_t rows, size_t columns, bool is_layer)
{
  double values = double (rows) * columns;
  std::string shape = x ({ rows, columns });
  row (is_layer ? "layernorm-fwd" : "rmsnorm-fwd", shape, 4 * values, [=] {
    auto in = tensor ({ rows, columns }), out = tensor ({ rows, columns }), gain = tensor ({ columns }),
         bias = tensor ({ columns });
    auto mean = tensor ({ rows }, DType::kFloat32), rstd = tensor ({ rows }, DType::kFloat32);
    return with_workspace ([=] (NVTETensor space) {
      if (is_layer)
        nvte_layernorm_fwd (in->data (), gain->data (), bias->data (), 1e-5f, out->data (), mean->data (),
                            rstd->data (), space, n_sms, false, stream);
      else
        nvte_rmsnorm_fwd (in->data (), gain->data (), 1e-5f, out->data (), rstd->data (), space, n_sms, false,
                          stream);
    });
  });
  row (is_layer ? "layernorm-bwd" : "rmsnorm-bwd", shape, 6 * values, [=] {
    auto in = tensor ({ rows, columns }), out = tensor ({ rows, columns }), dz = tensor ({ rows, columns });
    auto gain = tensor ({ columns }), dgain = tensor ({ columns }), dbias = tensor ({ columns });
    auto mean = tensor ({ rows }, DType::kFloat32), rstd = tensor ({ rows }, DType::kFloat32);
    return with_workspace ([=] (NVTETensor space) {
      if (is_layer)
        nvte_layernorm_bwd (dz->data (), in->data (), mean->data (), rstd->data (), gain->data (),
                            out->data (), dgain->data (), dbias->data (), space, n_sms, false, stream);
      else
        nvte_rmsnorm_bwd (dz->data (), in->data (), rstd->data (), gain->data (), out->data (),
                          dgain->data (), space, n_sms, false, stream);
    });
  });
}

static void
swiglu (size_t rows, size_t columns)
{
  double values = double (rows) * columns;
  row ("swiglu-fwd", x ({ rows, columns }), 6 * values, [=] {
    auto in = tensor ({ rows, 2 * columns }), out = tensor ({ rows, columns });
    return [=] { nvte_swiglu (in->data (), out->data (), stream); };
  });
  row ("swiglu-bwd", x ({ rows, columns }), 10 * values, [=] {
    auto dz = tensor ({ rows, columns }), in = tensor ({ rows, 2 * columns }),
         out = tensor ({ rows, 2 * columns });
    return [=] { nvte_dswiglu (dz->data (), in->data (), out->data (), stream); };
  });
}

static void
casts (size_t rows, size_t columns)
{
  double values = double (rows) * columns;
  std::string shape = x ({ rows, columns });
  row ("fp8-amax", shape, 2 * values, [=] {
    auto in = tensor ({ rows, columns }), out = quantized (rows, columns, false);
    return [=] { nvte_compute_amax (in->data (), out->data (), stream); };
  });
  row ("fp8-scale", shape, 12, [=] {
    auto out = quantized (rows, columns, false);
    auto config = std::make_shared<QuantizationConfigWrapper> ();
    return [=] { nvte_compute_scale_from_amax (out->data (), *config, stream); };
  });
  row ("fp8-cast", shape, 3 * values, [=] {
    auto in = tensor ({ rows, columns }), out = quantized (rows, columns, false);
    return [=] { nvte_quantize (in->data (), out->data (), stream); };
  });
  row ("fp8-cast-transpose", shape, 4 * values, [=] {
    auto in = tensor ({ rows, columns }), out = quantized (rows, columns, true);
    return [=] { nvte_quantize (in->data (), out->data (), stream); };
  });
  for (bool two : { false, true })
    row (two ? "fp8-block-cast-2d" : "fp8-block-cast", shape, 4 * values, [=] {
      auto in = tensor ({ rows, columns }), out = blockwise (rows, columns, two);
      auto config = std::make_shared<QuantizationConfigWrapper> ();
      return [=] { nvte_quantize_v2 (in->data (), out->data (), *config, stream); };
    });
}

static void
rotations (size_t tokens, size_t sequences, size_t heads, size_t width)
{
  double values = double (tokens) * sequences * heads * width;
  for (bool is_backward : { false, true })
    row (is_backward ? "rope-bwd" : "rope-fwd", x ({ tokens * sequences, heads * width }), 4 * values, [=] {
      auto in = tensor ({ tokens, sequences, heads, width }),
           out = tensor ({ tokens, sequences, heads, width });
      auto angles = tensor ({ tokens, 1, 1, width }, DType::kFloat32);
      auto none = std::make_shared<TensorWrapper> ();
      auto call = is_backward ? nvte_fused_rope_backward : nvte_fused_rope_forward;
      return [=] {
        call (in->data (), none->data (), angles->data (), none->data (), out->data (), NVTE_SBHD, false, 1,
              0, tokens, sequences, heads, width, width, sequences * heads * width, heads * width, width, 1,
              stream);
      };
    });
}

/* Parameters in parts of 64 Mi: gradient, weight in bf16, two moments, master. */
static void
optimizer (size_t n, DType gradient_type)
{
  size_t n_parts = (n + (size_t (64) << 20) - 1) / (size_t (64) << 20), part = n / n_parts;
  size_t g = size_of (gradient_type);
  row (g == 4 ? "adam" : "adam-bf16-grads", x ({ 1, n }), double (n) * (g + 2 + 24), [=] {
    auto kept = std::make_shared<std::vector<Tensor> > ();
    auto lists = std::make_shared<std::vector<std::vector<NVTETensor>>> (5);
    DType types[] = { gradient_type, DType::kBFloat16, DType::kFloat32, DType::kFloat32, DType::kFloat32 };
    for (size_t i = 0; i < 5; i++)
      for (size_t j = 0; j < n_parts; j++) {
        kept->push_back (tensor ({ part }, types[i]));
        (*lists)[i].push_back (kept->back ()->data ());
      }
    auto noop = tensor ({ 1 }, DType::kInt32);
    check (cudaMemset (noop->dptr (), 0, 4));
    return [=] {
      std::vector<NVTETensor *> heads;
      for (auto &list : *lists)
        heads.push_back (list.data ());
      (void) kept;
      nvte_multi_tensor_adam_cuda (2048 * 32, noop->data (), heads.data (), 5, n_parts, 1e-5f, 0.9f, 0.95f,
                                   1e-8f, 7, 1, 1, 0.1f, stream);
    };
  });
}

static void
router (size_t tokens, size_t n, int top, int function, int groups, int group_top)
{
  row (function ? "router-softmax" : "router-sigmoid", x ({ tokens, n }), double (tokens) * n * 13, [=] {
    auto logits = tensor ({ tokens, n }, DType::kFloat32), probs = tensor ({ tokens, n }, DType::kFloat32);
    auto bias = function ? std::make_shared<TensorWrapper> () : tensor ({ n }, DType::kFloat32);
    auto map = tensor ({ tokens, n }, DType::kByte), between = tensor ({ tokens, n }, DType::kFloat32);
    return [=] {
      nvte_fused_topk_with_score_function_forward (logits->data (), tokens, n, top, 0, groups, group_top, 1.f,
                                                   function, bias->data (), probs->data (), map->data (),
                                                   between->data (), stream);
    };
  });
}

int
main ()
{
  cudaDeviceProp properties;
  check (cudaGetDeviceProperties (&properties, 0));
  n_sms = properties.multiProcessorCount;
  check (cudaMalloc (&pool, pool_bytes));
  check (cudaStreamCreate (&stream));
  fill<<<4096, 256, 0, stream>>> (reinterpret_cast<unsigned *> (pool), pool_bytes / 4);
  check (cudaStreamSynchronize (stream));
  printf (
      "{\"schema\": \"lockstep.kernelbench/1\", \"gpu\": \"%s\", \"n_sms\": %d, \"memory_bytes\": %zu,\n \"method\": \"te_kernels: steady, "
      "operands rotate through 1 GiB\",\n \"rows\": [",
      properties.name, n_sms, size_t (properties.totalGlobalMem));
  for (Shape s : { Shape { 8192, 2048 }, Shape { 8192, 4096 }, Shape { 8192, 5120 }, Shape { 8192, 7168 },
                   Shape { 8192, 8192 }, Shape { 4096, 12288 }, Shape { 8192, 16384 }, Shape { 32768, 128 },
                   Shape { 262144, 128 }, Shape { 8192, 1536 }, Shape { 8192, 512 } })
    norms (s[0], s[1], false);
  for (Shape s : { Shape { 8192, 4096 }, Shape { 4096, 12288 }, Shape { 8192, 6144 }, Shape { 2048, 20480 } })
    norms (s[0], s[1], true);
  for (Shape s : { Shape { 8192, 14336 }, Shape { 8192, 3584 }, Shape { 65536, 768 }, Shape { 65536, 2048 } })
    swiglu (s[0], s[1]);
  for (Shape s : { Shape { 8192, 4096 }, Shape { 8192, 14336 }, Shape { 65536, 2048 }, Shape { 65536, 768 },
                   Shape { 4096, 14336 }, Shape { 1536, 2048 }, Shape { 2048, 768 } })
    casts (s[0], s[1]);
  rotations (8192, 1, 32, 128);
  rotations (8192, 1, 8, 128);
  rotations (4096, 4, 32, 128);
  rotations (8192, 1, 128, 64);
  optimizer (size_t (50) << 20, DType::kFloat32);
  optimizer (size_t (160) << 20, DType::kFloat32);
  optimizer (size_t (160) << 20, DType::kBFloat16);
  router (8192, 128, 8, 1, -1, -1);
  router (8192, 64, 6, 1, -1, -1);
  router (8192, 256, 8, 0, 8, 4);
  printf ("\n ],\n \"failed\": [%s\n ]\n}\n", failures.c_str ());
  return 0;
}
