#include <math.h>
#include <string.h>

#include "recipe.h"

/* Attention of which there are single rates alone: share of peak with an endless inner loop, and the length at which half
 * of it is reached. Backward: of its own FLOPs. */
typedef struct {
  double forward, backward, depth_half;
  const char *why;
} Rates;

/* n and k of products in a table that are not what the others are. */
typedef struct {
  uint64_t n, k;
} Family;

/* Of a GPU, what its tables are called, and what was not measured on it. */
typedef struct {
  const char *name, *table; /* of the calibration; blackwell/gemm_TABLE.csv */
  LsGpu gpu;                /* sizes, as in topologies/gpu */
  double bf16, fp8, nvfp4;
  const char
      *like; /* whose gather, and unless said otherwise streaming kernels and sustained rate, it takes over */
  double stream; /* share of the HBM's bandwidth; 0: that of `like` */
  const char *stream_why;
  double sustained; /* 0: that of `hot_like`, NULL: of `like` */
  const char *hot_like, *hot_why;
  double backward; /* rate of attention's backward over the forward's */
  const char *backward_why;
  const char
      *rows; /* of a table of several GPUs: "gfx=gfx950,cu=256"; NULL: TensorRT-LLM's sweep of this one */
  const Rates *rates;   /* of attention; NULL: it has a table */
  LsKindFit library;    /* what is known of its GEMMs in 16 bits, not fitted */
  double square_fp8;    /* square_tile of those in fp8 */
  guint attention_free; /* what is fitted of attention besides */
  const Family *others; /* families that are left out, up to one of zeros; NULL: none */
  const LsCudnnOf
      *cudnn;   /* its attention; NULL: not known                                                   */
  bool is_rocm; /* its attention of PyTorch and of flash-attention is in attention_figures.csv */
  bool has_fp8_attention; /* that the model describes: consumers' chips fall by more than it knows */
  double promised[3];     /* held-out errors of GEMMs in 16 bits, of those in others, of attention */
} Swept;

/* NVIDIA/cudnn-frontend@3929da2, sdpa benchmark of training, cuDNN 9.22: GB300, causal, batch 2, 8,192 tokens, 64 heads of
 * 128: backward 1,435 TFLOP/s, forward 1,856. TensorRT-LLM's forward in attn_fwd_gb300.csv, which is all that the B300 has,
 * is 8 % below that backward, and cannot be set faster than its peak. */
#define GB300_BACKWARD 1.0
#define GB300_WHY                                                                                            \
  "cuDNN's backward over TensorRT-LLM's forward, 8,192 tokens, 64 heads of 128, causal, on GB300 (NVIDIA/cudnn-frontend@3929da2)"
#define FA2_WHY "the ratio of FlashAttention-2 on the A100, whose kind of instructions it has"

/* Without a tail attention has no tiles, and its depth_half no effect: the least that a fit may find. */
#define NO_TAIL 0.01

/* MI355X, AITER's assembly. Forward, causal, heads of 128: 1,105 TFLOP/s at best (FlyDSL's best, 928, is on average 0.84 of it:
 * ROCm/FlyDSL pull request 225), 427 with 8 x 512 tokens and 64 heads (pull request 629): 320 keys on average there, so
 * 427 / 1105 = 320 / (320 + d). Backward: 8 x 8,192 tokens, 64 heads, 8 of keys, 20.893 ms with sums in 16 bits (ROCm/aiter,
 * pull request 815), as NVTE_CK_IS_V3_ATOMIC_FP32=0 asks for. */
static const Rates mi355x = {
  1105e12 / 2516.6e12 * (4160 + 508) / 4160,
  2.5 * 4 * 8 * 64 * 8192.0 * 8192 / 2 * 128 / 20.893e-3 / 2516.6e12 * (4160 + 508) / 4160, 508,
  "AITER's assembly on MI355X: forward 1,105 TFLOP/s at best and 427 at 512 tokens (ROCm/FlyDSL, pull requests 225 and 629), "
  "backward 8 x 8,192 tokens of 64 heads in 20.893 ms (ROCm/aiter, pull request 815)"
};

/* Of the bf16 products of AITER's runs (ROCm/aiter@e4048607, aiter/configs) some are other kernels than the rest, in files
 * that say so: with an fp32 result (bf16_tuned_gemm.csv: 2,048 x 6,144; shapes that were tuned for both results take 1.06 to
 * 1.8 times as long with it), with a bias (gptoss: 2,880 x 4,096 and 5,120 x 2,880), and with result rows of 200 bytes, which
 * begin on no 16 (qwen32B: 100 x 5,120, a kernel of Triton at a tenth of the rate). None is held out. */
static const Family aiter_others[]
    = { { 2048, 6144 }, { 2880, 4096 }, { 5120, 2880 }, { 100, 5120 }, { 0, 0 } };

/* What the sweep of TensorRT-LLM times is a loop over up to five copies of the weights, together larger than the L2, with one
 * input (ai-dynamo/aiconfigurator, collector/trtllm/collect_gemm.py): weights come from memory, the input does not while
 * it fits. Of the GPUs here it shows on the L40S, whose L2 of 96 MB is large and whose memory is slow. */
static const LsCudnnOf gb300_cudnn = { .gpu = "NVIDIA GB300", .name = "gb300", .is_hot_when_long = true },
                       b300_cudnn = { .gpu = "NVIDIA GB300",
                                      .name = "gb300",
                                      .is_hot_when_long = true,
                                      .own_table = "blackwell/attn_fwd_b300.csv",
                                      .its_table = "blackwell/attn_fwd_gb300.csv" };

static const Swept swept[] = {
  { .name = "b300",
    .table = "b300",
    .gpu = { .n_sm = 148, .hbm_bytes_per_s = 8e12, .vector_flops = 80e12 },
    .bf16 = 2250e12,
    .fp8 = 4500e12,
    .nvfp4 = 14000e12,
    .like = "b200",
    .hot_why = "; sustained: hot loops of Transformer Engine (tools/fit/hot_loops.csv)",
    .backward = GB300_BACKWARD,
    .backward_why = GB300_WHY,
    .cudnn = &b300_cudnn,
    .has_fp8_attention = true,
    .promised = { 0.07, 0.06, 0.07 } },
  { .name = "gb300",
    .table = "gb300",
    .gpu = { .n_sm = 152, .hbm_bytes_per_s = 8e12, .vector_flops = 80e12 },
    .bf16 = 2500e12,
    .fp8 = 5000e12,
    .nvfp4 = 15000e12,
    .like = "gb200",
    .hot_like = "b300",
    .hot_why = "; sustained: hot loops of Azure in fp8, and as b300 (tools/fit/hot_loops.csv)",
    .backward = GB300_BACKWARD,
    .backward_why = GB300_WHY,
    .cudnn = &gb300_cudnn,
    .has_fp8_attention = true,
    .promised = { 0.05, 0.065, 0.075 } },
  { .name = "l40s",
    .table = "l40s",
    .gpu = { .n_sm = 142, .hbm_bytes_per_s = 864e9, .vector_flops = 91.6e12 },
    .bf16 = 362e12,
    .fp8 = 733e12,
    .like = "a100",
    .stream = 0.92,
    .stream_why = "an assumption: 0.92 of the bandwidth of GDDR6",
    .sustained = 0.985,
    .backward = 63.0 / 73.0,
    .backward_why = FA2_WHY,
    .library = { .wave_blind = true, .cache_bytes = 96e6 },
    .attention_free = LS_FREE_LAUNCH,
    .promised = { 0.08, 0.1, 0.12 } },
  { .name = "rtx-pro-6000",
    .table = "rtxpro6000",
    .gpu = { .n_sm = 188, .hbm_bytes_per_s = 1.792e12, .vector_flops = 116.9e12 },
    .bf16 = 467.8e12,
    .fp8 = 935.6e12,
    .nvfp4 = 1871.2e12,
    .like = "a100",
    .stream = 0.92,
    .stream_why = "an assumption: 0.92 of the bandwidth of GDDR7",
    .sustained = 0.985,
    .backward = 63.0 / 73.0,
    .backward_why = FA2_WHY,
    .promised = { 0.055, 0.085, 0.105 } },
  { .name = "mi355x",
    .table = "amd_aiter",
    .gpu = { .n_sm = 256, .hbm_bytes_per_s = 8e12, .vector_flops = 157.3e12 },
    .bf16 = 2516.6e12,
    .fp8 = 5033.2e12,
    .like = "a100",
    .stream = 0.76,
    .stream_why
    = "PyTorch's contiguous kernels on MI300X reach 0.72 to 0.76 of its bandwidth (a profile of AMD-AGI/TraceLens)",
    .sustained = 1565.0 / 1597.0,
    .rows = "gfx=gfx950,cu=256",
    .rates = &mi355x,
    .is_rocm = true,
    .library = { .square_tile = 256 },
    .square_fp8 = 256,
    .others = aiter_others,
    .promised = { 0.08, 0.18, 0 } },
};

static const LsRecipe *
find (const LsSweptFrom *from, const char *name)
{
  for (guint i = 0; i < from->relatives->len; i++) {
    const LsRecipe *r = g_ptr_array_index (from->relatives, i);
    if (strcmp (r->name, name) == 0)
      return r;
  }
  g_error ("no recipe %s", name);
}

/* Of each number format: measured on it, else on the sibling that has it, else as what it is like. */
static void
set_sustained (LsRecipe *r, const Swept *s, const LsSweptFrom *from, LsDiagList *diags)
{
  const LsCalibration *like = &find (from, s->hot_like ? s->hot_like : s->like)->calibration;
  r->calibration.sustained = s->sustained > 0 ? ls_fit_round (s->sustained, 3) : like->sustained;
  r->calibration.sustained_fp8 = s->sustained > 0 ? 0 : like->sustained_fp8;
  r->calibration.sustained_nvfp4 = s->sustained > 0 ? 0 : like->sustained_nvfp4;
  ls_recipe_fit_formats (r, from->own, from->in_layers, diags);
}

static void
copy_streams (LsRecipe *r, const Swept *s, const LsRecipe *like)
{
  LsKindFit stream = like->calibration.kind[LS_KERNEL_ELEMENTWISE];
  stream.cache_bytes = stream.cache_speed = stream.overlap = 0;
  if (s->stream > 0)
    stream.memory_efficiency = s->stream;
  g_autofree char *share = g_strdup_printf ("share of bandwidth of %s; the L2 is left out", like->name),
                  *gather = g_strdup_printf ("share of bandwidth of %s's gather", like->name);
  ls_recipe_copy (r, LS_KERNEL_ELEMENTWISE, &stream, s->stream > 0 ? s->stream_why : share);
  r->adam_s = like->adam_s;
  ls_recipe_copy_streams (r);
  ls_recipe_copy (r, LS_KERNEL_NORM, &stream, "as elementwise");
  ls_recipe_copy (r, LS_KERNEL_EMBEDDING, &like->calibration.kind[LS_KERNEL_EMBEDDING], gather);
}

static void
leave_out (GArray *samples, const Family *others)
{
  for (; others && others->n > 0; others++)
    for (guint i = samples->len; i-- > 0;) {
      const LsKernel *k = &g_array_index (samples, LsTimedKernel, i).kernel;
      if (k->n == others->n && k->k == others->k)
        g_array_remove_index (samples, i);
    }
}

static void
fit_gemms (LsRecipe *r, const Swept *s, LsDtype dtype, const char *in, const char *folder, LsDiagList *diags)
{
  LsSampleSink sink
      = { .folder = folder, .samples = g_array_new (FALSE, TRUE, sizeof (LsTimedKernel)), .diags = diags };
  g_autofree char *name = g_strdup_printf ("gemm_%s.csv", s->table),
                  *file = g_build_filename ("blackwell", name, NULL);
  bool casts = !s->rows && ls_dtype_is_scaled (dtype);
  if (dtype == LS_DTYPE_NVFP4) {
    ls_samples_gemm_nvfp4 (&sink, file);
  } else {
    g_autofree char *where = g_strdup_printf ("%s%sdtype=%s", s->rows ? s->rows : "", s->rows ? "," : "", in);
    ls_samples_where (&sink, file, where);
  }
  if (dtype == LS_DTYPE_BF16)
    leave_out (sink.samples, s->others);
  g_autofree char *words = g_strdup_printf (
      "%s, %s (%s%s)", name, dtype == LS_DTYPE_BF16 ? "bf16, for fp16 too" : in,
      s->rows ? "the best kernel of a tuning run of AITER" : "TensorRT-LLM, isolated loops",
      casts ? "; its cast of the input fitted apart" : "");
  const LsKindFit fp8 = { .square_tile = s->square_fp8 };
  ls_recipe_fit_gemm_samples (r, dtype, dtype == LS_DTYPE_BF16 ? &s->library : &fp8, sink.samples, casts,
                              words);
  g_array_unref (sink.samples);
}

static void
fit_attention (LsRecipe *r, const Swept *s, LsDtype dtype, const char *in, const char *folder,
               LsDiagList *diags)
{
  LsSampleSink sink
      = { .folder = folder, .samples = g_array_new (FALSE, TRUE, sizeof (LsTimedKernel)), .diags = diags };
  g_autofree char *name = g_strdup_printf ("attn_fwd_%s.csv", s->table),
                  *file = g_build_filename ("blackwell", name, NULL),
                  *where = g_strdup_printf ("attn_dtype=%s,kv_dtype=%s", in, in);
  ls_samples_where (&sink, file, where);
  ls_recipe_fit_attention_samples (r, dtype, 0, LS_FREE_WIDE | s->attention_free, NULL, sink.samples, name);
  g_array_unref (sink.samples);
}

static void
set_rate (LsRecipe *r, const Swept *s, LsKernelKind kind, double rate)
{
  LsKindFit *fit = &r->calibration.kind[kind];
  *fit = (LsKindFit) { .is_fitted = true,
                       .compute_efficiency = ls_fit_round (rate, 4),
                       .depth_half = s->rates->depth_half,
                       .tail = NO_TAIL,
                       .memory_efficiency = r->calibration.kind[LS_KERNEL_ELEMENTWISE].memory_efficiency,
                       .launch = r->calibration.kind[LS_KERNEL_GEMM].launch,
                       .mape = NAN };
  ls_recipe_set_source (r, kind, "%s", s->rates->why);
}

static void
set_attention (LsRecipe *r, const Swept *s, const char *folder, LsDiagList *diags)
{
  if (s->rates) {
    set_rate (r, s, LS_KERNEL_ATTENTION_FWD, s->rates->forward);
    set_rate (r, s, LS_KERNEL_ATTENTION_BWD, s->rates->backward);
    return;
  }
  fit_attention (r, s, LS_DTYPE_BF16, "bfloat16", folder, diags);
  if (s->has_fp8_attention)
    fit_attention (r, s, LS_DTYPE_FP8, "fp8", folder, diags);
  ls_recipe_set_backward (r, s->backward, s->backward_why);
}

/* Each chip has its own. */
static void
set_promises (LsRecipe *r, const Swept *s)
{
  for (guint i = 0; i < r->checks->len; i++) {
    LsFitCheck *c = &g_array_index (r->checks, LsFitCheck, i);
    bool is_attention = c->slot == LS_KERNEL_ATTENTION_FWD || c->slot == LS_ENTRY_ATTENTION_FP8;
    c->promised_mape = s->promised[is_attention                                                         ? 2
                                       : c->slot == LS_KERNEL_GEMM || c->slot == LS_KERNEL_BATCHED_GEMM ? 0
                                                                                                        : 1];
    c->promised_median = s->rates ? 0.1 : 0.05;
  }
}

static char *
source_of (const Swept *s)
{
  return g_strdup_printf (
      "tools/fit/fit_kernels over the measured kernels of data/README.md (2026-11): %s; what was not "
      "measured on it as %s%s; mape on held-out families before sustained; no training run was used",
      s->rows ? "AITER's tuning runs" : "TensorRT-LLM sweeps", s->like, s->hot_why ? s->hot_why : "");
}

LsRecipe *
ls_recipe_swept (guint i, const LsSweptFrom *from, LsDiagList *diags)
{
  if (i >= G_N_ELEMENTS (swept))
    return NULL;
  const Swept *s = &swept[i];
  const LsRecipe *like = find (from, s->like);
  const char *folder = from->data;
  g_autofree char *source = source_of (s);
  LsRecipe *r = ls_recipe_new (s->name, source);
  r->gpu = s->gpu;
  r->gpu.peak_flops[LS_DTYPE_BF16] = r->gpu.peak_flops[LS_DTYPE_FP16] = s->bf16;
  r->gpu.peak_flops[LS_DTYPE_FP8] = s->fp8;
  r->gpu.peak_flops[LS_DTYPE_NVFP4] = s->nvfp4;
  copy_streams (r, s, like);
  fit_gemms (r, s, LS_DTYPE_BF16, s->rows ? "bf16" : "bfloat16", folder, diags);
  fit_gemms (r, s, LS_DTYPE_FP8, "fp8", folder, diags);
  if (s->nvfp4 > 0)
    fit_gemms (r, s, LS_DTYPE_NVFP4, "nvfp4", folder, diags);
  set_attention (r, s, folder, diags);
  set_promises (r, s);
  if (s->is_rocm)
    ls_recipe_fit_rocm_attention (r, from->own, diags);
  if (s->cudnn)
    ls_recipe_fit_cudnn (r, folder, s->cudnn, diags);
  ls_recipe_take_cublaslt_nvfp4 (r, like);
  ls_recipe_take_wide (r, &like, 1);
  set_sustained (r, s, from, diags);
  return r;
}
