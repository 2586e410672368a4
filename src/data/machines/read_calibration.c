/* data/machines/read_calibration.c — topologies/calib/, kernels, read; of a cluster file, what runs on the
 * cluster itself say about it. */
#include "data/machines/machines.h"

#include "analysis/interval.h"
#include "compute/measured.h"
#include "data/datadir.h"
#include "data/jobs/job_files.h"

/* --- of a cluster file, what runs on the cluster itself say about it ----------------------------- */

#define SPEC(member) offsetof (LsClusterSpec, member)

static const LsField left_out_trait[] = { { "", LS_FIELD_STRING, 0, .required = true, .max = 64 }, { NULL } };
#define MOST(key_, member, max_, meaning_)                                                                   \
  {                                                                                                          \
    key_, LS_FIELD_DOUBLE, SPEC (fitted.runs.member), .above = true, .max = (max_),                          \
                                                      .default_text = "not known", .meaning = (meaning_)     \
  }
static const LsField left_out_fields[] = {
  { "runs", LS_FIELD_UINT, SPEC (fitted.runs.n), .required = true, .min = 1,
    .meaning = "how many, of different jobs" },
  { "file", LS_FIELD_STRING, SPEC (fitted.runs.file), .required = true, .meaning = "where they were read" },
  { "low", LS_FIELD_DOUBLE, SPEC (fitted.runs.low), .above = true, .max = 1000,
    .default_text = "none: too few runs",
    .meaning = "measured step over that predicted by a fit to the other runs: where the interval begins "
               "(`src/analysis/interval.h`)" },
  { "high", LS_FIELD_DOUBLE, SPEC (fitted.runs.high), .above = true, .max = 1000,
    .default_text = "none: too few runs", .meaning = "where it ends" },
  { "architecture", LS_FIELD_STRING, SPEC (fitted.runs.architecture), .default_text = "not known",
    .meaning = "of their GPUs" },
  MOST ("lowest_mfu", lowest_mfu, 10, "the lowest MFU that the fit predicts for one of them"),
  MOST ("gpus", gpus, 1e9, "the most GPUs of one of them"),
  MOST ("tp", tp, 1e9, "their highest degree of tensor parallelism"),
  MOST ("params", params, 1e18, "parameters of their largest model"),
  MOST ("fabric", fabric, 1e15, "bytes/s of the NICs per GPU, the least of those on several nodes"),
  { "traits", LS_FIELD_ARRAY, SPEC (fitted.runs.traits), .fields = left_out_trait,
    .element_size = sizeof (char *), .default_text = "not known",
    .meaning = "what they have: aspect and word, as \"format bf16\" (`src/analysis/interval.h`)" },
  { NULL },
};

#define FACTOR(key_, member, meaning_)                                                                       \
  {                                                                                                          \
    key_, LS_FIELD_DOUBLE, SPEC (fitted.member), .above = true, .max = 10, .default_text = "1",              \
                                                 .meaning = (meaning_)                                       \
  }
const LsField ls_fitted_fields[] = {
  FACTOR ("compute", compute, "rate of arithmetic, times that of the GPU's calibration"),
  FACTOR ("overlap", overlap,
          "what moving data cost a kernel together with them, times that of the NCCL file"),
  FACTOR ("intra_node", intra_node,
          "rate inside a node, times that of the NCCL file and the links' efficiency (at most 1)"),
  FACTOR ("inter_node", inter_node, "rate between nodes, likewise"),
  { "host_launch", LS_FIELD_TIME, SPEC (fitted.host_launch), .above = true, .max = (double) LS_S,
    .default_text = "10us", .meaning = "what issuing a kernel costs the host, unless `--host-launch` says" },
  { "left_out", LS_FIELD_OBJECT, 0, .fields = left_out_fields, .default_text = "none",
    .meaning = "how far the runs were off, left out one at a time: the interval around a job's step" },
  { "provenance", LS_FIELD_SOURCES, .default_text = "none",
    .meaning = "what they were fitted to, and how well" },
  { NULL },
};

bool
ls_fitted_finish (const LsJsonDoc *doc, const LsFitted *fitted, LsDiagList *diags)
{
  const LsFittedRuns *r = &fitted->runs;
  const cJSON *left_out = cJSON_GetObjectItemCaseSensitive (
      cJSON_GetObjectItemCaseSensitive (ls_json_doc_root (doc), "fitted"), "left_out");
  guint least = ls_conformal_least (LS_INTERVAL_LEVEL), n_before = ls_diag_list_n (diags);
  bool has_low = r->low > 0, has_high = r->high > 0;
  if (has_low != has_high || (left_out && has_low != (r->n >= least)))
    ls_json_doc_diag (doc, left_out, LS_JSON_AT_VALUE, diags, NULL,
                      "expected both \"low\" and \"high\" of %u runs or more, of fewer neither", least);
  if (r->low > r->high && has_high)
    ls_json_doc_diag (doc, cJSON_GetObjectItemCaseSensitive (left_out, "high"), LS_JSON_AT_VALUE, diags, NULL,
                      "expected at least \"low\"");
  return ls_diag_list_n (diags) == n_before;
}

const LsField ls_kind_fit_fields[] = {
  { "fitted", LS_FIELD_BOOL, offsetof (LsKindFit, is_fitted), .required = true,
    .meaning = "false: the figures are a stated guess" },
  { "compute_efficiency", LS_FIELD_DOUBLE, offsetof (LsKindFit, compute_efficiency), .above = true, .max = 1,
    .default_text = "1", .meaning = "share of the peak FLOP rate, in the largest tile and a deep loop" },
  { "flops_half", LS_FIELD_DOUBLE, offsetof (LsKindFit, flops_half), .max = 1e24, .default_text = "0",
    .meaning = "FLOPs of one launch at which that share is halved (kinds without tiles); 0: no fall-off" },
  { "depth_half", LS_FIELD_DOUBLE, offsetof (LsKindFit, depth_half), .max = 1e9, .default_text = "0",
    .meaning = "length of the inner loop (k of a GEMM, keys of attention) at which half of a tile's time is "
               "overhead" },
  { "width_half", LS_FIELD_DOUBLE, offsetof (LsKindFit, width_half), .max = 1e9, .default_text = "0",
    .meaning = "width of a head at which softmax takes half the time of attention" },
  { "wide_slow", LS_FIELD_DOUBLE, offsetof (LsKindFit, wide_slow), .max = 10, .default_text = "0",
    .meaning = "extra share of the time of attention with heads wider than wide_head" },
  { "wide_head", LS_FIELD_DOUBLE, offsetof (LsKindFit, wide_head), .max = 1e9, .default_text = "128",
    .meaning = "width of a head from which on wide_slow is paid, itself not" },
  { "width_step", LS_FIELD_DOUBLE, offsetof (LsKindFit, width_step), .max = 1e9, .default_text = "0",
    .meaning = "heads run kernels for the next multiple of this width, up to 128; 0: for their own" },
  { "causal_block", LS_FIELD_DOUBLE, offsetof (LsKindFit, causal_block), .max = 1e9, .default_text = "128",
    .meaning = "edge of the blocks of queries and keys that attention computes or skips whole" },
  { "tail", LS_FIELD_DOUBLE, offsetof (LsKindFit, tail), .max = 10, .default_text = "0",
    .meaning = "longest tiles of attention in which the SMs run out of work; 0: it spreads evenly over "
               "them" },
  { "tile_half", LS_FIELD_DOUBLE, offsetof (LsKindFit, tile_half), .max = 1e9, .default_text = "0",
    .meaning = "edge of the square tile that runs at half rate" },
  { "square_tile", LS_FIELD_DOUBLE, offsetof (LsKindFit, square_tile), .max = 4096, .default_text = "0",
    .meaning
    = "edge of a square tile that the library of GEMMs has next to 256 x 128 and smaller ones; 0: none" },
  { "wave_blind", LS_FIELD_BOOL, offsetof (LsKindFit, wave_blind), .default_text = "false",
    .meaning = "that library chooses a tile as if of a started wave only its share were paid" },
  { "wave_rounding", LS_FIELD_DOUBLE, offsetof (LsKindFit, wave_rounding), .max = 1, .default_text = "0",
    .meaning = "how much of a started wave of tiles is paid; 0: the work spreads evenly over the SMs" },
  { "split_launch", LS_FIELD_TIME, offsetof (LsKindFit, split_launch), .max = (double) LS_S,
    .default_text = "0us", .meaning = "joining the partial sums of a GEMM that is cut along k" },
  { "throttle", LS_FIELD_DOUBLE, offsetof (LsKindFit, throttle), .max = 10, .default_text = "0",
    .meaning = "extra share of compute time on a hot chip" },
  { "burst", LS_FIELD_TIME, offsetof (LsKindFit, burst), .max = (double) LS_S, .default_text = "0us",
    .meaning = "compute time of a kernel up to which a loop of its like stays cool" },
  { "overlap", LS_FIELD_DOUBLE, offsetof (LsKindFit, overlap), .max = 1e3, .default_text = "0",
    .meaning = "p of (compute^p + memory^p)^(1/p); 0: the larger of the two" },
  { "wide_exposed", LS_FIELD_DOUBLE, offsetof (LsKindFit, wide_exposed), .max = 1, .default_text = "0",
    .meaning = "of GEMMs: of the traffic of a result beyond 16 bits an element, as of one that is added to "
               "in fp32, the share that moves while no FLOPs run, at the full HBM bandwidth" },
  { "memory_efficiency", LS_FIELD_DOUBLE, offsetof (LsKindFit, memory_efficiency), .above = true, .max = 1,
    .default_text = "1", .meaning = "share of the HBM bandwidth" },
  { "bytes_half", LS_FIELD_DOUBLE, offsetof (LsKindFit, bytes_half), .max = 1e18, .default_text = "0",
    .meaning = "bytes of one launch at which that share is halved; 0: no fall-off" },
  { "cache_bytes", LS_FIELD_DOUBLE, offsetof (LsKindFit, cache_bytes), .max = 1e18, .default_text = "0",
    .meaning = "traffic of one launch that the L2 serves whole, none of twice that; of GEMMs that of the "
               "first operand and the result" },
  { "cache_speed", LS_FIELD_DOUBLE, offsetof (LsKindFit, cache_speed), .max = 1e3, .default_text = "0",
    .meaning = "rate of the L2 relative to the HBM; up to 1: no effect" },
  { "launch", LS_FIELD_TIME, offsetof (LsKindFit, launch), .max = (double) LS_S, .default_text = "0us",
    .meaning = "fixed time of one launch" },
  { "matrix_launch", LS_FIELD_TIME, offsetof (LsKindFit, matrix_launch), .max = (double) LS_S,
    .default_text = "0us", .meaning = "what each matrix but the first of a grouped product adds to that" },
  { "timed_host", LS_FIELD_TIME, offsetof (LsKindFit, timed_host), .max = (double) LS_S,
    .default_text = "0us", .meaning = "constant that the timings of the fit held besides the kernel" },
  { "timed_efficiency", LS_FIELD_DOUBLE, offsetof (LsKindFit, timed_efficiency), .max = 1e3,
    .default_text = "0",
    .meaning = "share of the bandwidth at which a second kernel in those timings ran; 0: none" },
  { "min_work", LS_FIELD_DOUBLE, offsetof (LsKindFit, min_work), .max = 1e24, .default_text = "0",
    .meaning = "least FLOPs (compute kinds) or bytes seen in the fit" },
  { "max_work", LS_FIELD_DOUBLE, offsetof (LsKindFit, max_work), .max = 1e24, .default_text = "0",
    .meaning = "most FLOPs or bytes seen in the fit" },
  { "mape", LS_FIELD_DOUBLE, offsetof (LsKindFit, mape), .max = 1e6, .default_text = "none",
    .meaning = "mean absolute error on held-out shapes, as a fraction" },
  { "source", LS_FIELD_IGNORED, .required = true, .meaning = "data, method and hold-out, or why this guess" },
  { NULL },
};

#define KIND(key_, kind_)                                                                                    \
  {                                                                                                          \
    key_, LS_FIELD_OBJECT, offsetof (LsCalibration, kind[kind_]),                                            \
        .fields = ls_kind_fit_fields, .default_text = "roofline",                                            \
        .meaning = "coefficients of this kind of kernel"                                                     \
  }

#define ATTENTION(key_, kernel_, backward_, meaning_)                                                        \
  {                                                                                                          \
    key_, LS_FIELD_OBJECT, offsetof (LsCalibration, attention[kernel_][backward_]),                          \
        .fields = ls_kind_fit_fields, .default_text = "not known", .meaning = (meaning_)                     \
  }

static const LsField kernel_fields[] = {
  LS_KERNEL_KINDS (KIND),
  { "gemm_fp8", LS_FIELD_OBJECT, offsetof (LsCalibration, gemm_fp8), .fields = ls_kind_fit_fields,
    .default_text = "as gemm", .meaning = "coefficients of fp8 GEMMs" },
  { "gemm_fp8_blocks", LS_FIELD_OBJECT, offsetof (LsCalibration, gemm_fp8_blocks),
    .fields = ls_kind_fit_fields, .default_text = "as gemm_fp8",
    .meaning = "the same whose operands both have scales of blocks along k: fp8_recipe deepseek, weight "
               "gradients" },
  { "gemm_nvfp4", LS_FIELD_OBJECT, offsetof (LsCalibration, gemm_nvfp4), .fields = ls_kind_fit_fields,
    .default_text = "as gemm_fp8", .meaning = "coefficients of nvfp4 GEMMs" },
  { "attention_fp8", LS_FIELD_OBJECT, offsetof (LsCalibration, attention_fp8), .fields = ls_kind_fit_fields,
    .default_text = "as attention-fwd", .meaning = "coefficients of fp8 attention, forward" },
  { "vllm_rmsnorm", LS_FIELD_OBJECT, offsetof (LsCalibration, vllm_rmsnorm), .fields = ls_kind_fit_fields,
    .default_text = "roofline", .meaning = "vLLM's RMSNorm of 2023: only for comparing with its timings" },
  { "vllm_silu_mul", LS_FIELD_OBJECT, offsetof (LsCalibration, vllm_silu_mul), .fields = ls_kind_fit_fields,
    .default_text = "roofline", .meaning = "vLLM's SiLU and product of 2023: the same" },
  ATTENTION ("fa1_fwd", LS_ATTENTION_KERNEL_FA1, 0, "FlashAttention, forward: for attention_kernel fa1"),
  ATTENTION ("fa1_bwd", LS_ATTENTION_KERNEL_FA1, 1, "backward"),
  ATTENTION ("triton_fwd", LS_ATTENTION_KERNEL_TRITON, 0, "FlashAttention in Triton, forward"),
  ATTENTION ("triton_bwd", LS_ATTENTION_KERNEL_TRITON, 1, "backward"),
  ATTENTION ("fa2_fwd", LS_ATTENTION_KERNEL_FA2, 0, "FlashAttention-2, forward"),
  ATTENTION ("fa2_bwd", LS_ATTENTION_KERNEL_FA2, 1, "backward"),
  ATTENTION ("fa3_fwd", LS_ATTENTION_KERNEL_FA3, 0, "FlashAttention-3, forward"),
  ATTENTION ("fa3_bwd", LS_ATTENTION_KERNEL_FA3, 1, "backward"),
  ATTENTION ("pallas_fwd", LS_ATTENTION_KERNEL_PALLAS, 0,
             "flash attention of JAX's Pallas on TPUs, forward, where all keys are met"),
  ATTENTION ("pallas_bwd", LS_ATTENTION_KERNEL_PALLAS, 1, "backward"),
  ATTENTION ("aotriton_fwd", LS_ATTENTION_KERNEL_AOTRITON, 0,
             "AOTriton's, which PyTorch's scaled_dot_product_attention runs on AMD's GPUs, forward"),
  ATTENTION ("aotriton_bwd", LS_ATTENTION_KERNEL_AOTRITON, 1, "backward"),
  ATTENTION ("cudnn_fwd", LS_ATTENTION_KERNEL_CUDNN, 0, "cuDNN's, forward"),
  ATTENTION ("cudnn_bwd", LS_ATTENTION_KERNEL_CUDNN, 1, "backward"),
  ATTENTION ("cudnn_fp8_fwd", LS_ATTENTION_KERNEL_CUDNN_FP8, 0,
             "cuDNN's in fp8, forward: for fp8_attention delayed and current"),
  ATTENTION ("cudnn_fp8_bwd", LS_ATTENTION_KERNEL_CUDNN_FP8, 1, "backward"),
  ATTENTION ("cudnn_mxfp8_fwd", LS_ATTENTION_KERNEL_CUDNN_MXFP8, 0,
             "the same with a scale for each 32 values, forward: for fp8_attention mxfp8"),
  ATTENTION ("cudnn_mxfp8_bwd", LS_ATTENTION_KERNEL_CUDNN_MXFP8, 1, "backward"),
  { NULL },
};
G_STATIC_ASSERT (G_N_ELEMENTS (kernel_fields) == LS_N_KERNEL_KINDS + 25);

#define MAX_SIZE 1e9 /* of a dimension */
#define MEASURED(key_, kind_, member_)                                                                       \
  {                                                                                                          \
    key_, kind_, offsetof (LsMeasuredKernel, member_)
#define SIZE(member_, min_, default_, meaning_)                                                              \
  MEASURED (#member_, LS_FIELD_UINT64, member_), .required = (min_) > 0, .min = (min_), .max = MAX_SIZE,     \
                                                 .default_text = (default_), .meaning = (meaning_)           \
  }

static const LsEnumName dtype_names[] = { { "fp32", LS_DTYPE_FP32 },
                                          { "tf32", LS_DTYPE_TF32 },
                                          { "fp16", LS_DTYPE_FP16 },
                                          { "bf16", LS_DTYPE_BF16 },
                                          { "fp8", LS_DTYPE_FP8 },
                                          { "nvfp4", LS_DTYPE_NVFP4 },
                                          { NULL } };

/* kernelbench's own attention is a kernel that no job runs: it is none of these. */
const LsEnumName ls_measured_attentions[] = {
  { "fa1", LS_ATTENTION_KERNEL_FA1 },
  { "triton", LS_ATTENTION_KERNEL_TRITON },
  { "fa2", LS_ATTENTION_KERNEL_FA2 },
  { "fa3", LS_ATTENTION_KERNEL_FA3 },
  { "aotriton", LS_ATTENTION_KERNEL_AOTRITON },
  { "cudnn", LS_ATTENTION_KERNEL_CUDNN },
  { NULL },
};

static const LsField measured_fields[] = { MEASURED ("kernel", LS_FIELD_ENUM, kind), .required = true,
                                           .names = ls_kernel_kind_names, .meaning = "kind of kernel" },
                     MEASURED ("name", LS_FIELD_STRING, name), .default_text = "any",
                     .meaning = "which one of that kind, as the timeline shows it"
}
, MEASURED ("implementation", LS_FIELD_ENUM, implementation),
    .names = ls_measured_attentions, .default_text = "the usual one",
    .meaning = "of attention: whose; used for jobs with that `attention_kernel` only"
}
, MEASURED ("dtype", LS_FIELD_ENUM, dtype), .required = true, .names = dtype_names, .meaning = "of the inputs"
}
, SIZE (m, 1, NULL, "rows of the result; of attention queries"),
    SIZE (n, 1, NULL, "its columns; of attention keys"),
    SIZE (k, 0, "0", "length of the inner loop; of attention the width of a head"),
    SIZE (batch, 0, "1", "so many at once"), MEASURED ("flops", LS_FIELD_DOUBLE, flops),
    .max = 1e24, .default_text = "0", .meaning = "of all"
}
, MEASURED ("bytes", LS_FIELD_DOUBLE, bytes), .required = true, .above = true, .max = 1e18,
                                              .meaning = "that cross HBM once"
}
, MEASURED ("time", LS_FIELD_TIME, time), .required = true, .above = true, .max = (double) (1000 * LS_S),
                                          .meaning = "alone on a cool GPU"
}
, { NULL },
}
;

const LsEnumName ls_gemms_names[] = {
  { "tiles", LS_GEMMS_TILES },
  { "clusters", LS_GEMMS_CLUSTERS },
  { "persistent", LS_GEMMS_PERSISTENT },
  { NULL },
};

#define AROUND(key_, kind_, member_, max_, default_, meaning_)                                               \
  {                                                                                                          \
    key_, kind_, offsetof (LsCalibration, around.member_), .above = true, .max = (max_),                     \
                                                           .default_text = (default_), .meaning = (meaning_) \
  }
static const LsField around_fields[] = {
  AROUND ("host_launch", LS_FIELD_TIME, host_launch, (double) LS_S, "0us",
          "what the driver's call to launch a kernel takes on the host: no job pays less, unless "
          "`--host-launch` says so"),
  AROUND ("kernel_gap", LS_FIELD_TIME, kernel_gap, (double) LS_S, "as the access file has it",
          "from the end of a kernel to the start of the next of a full queue: of kernels with an access "
          "kind"),
  AROUND ("graph_gap", LS_FIELD_TIME, graph_gap, (double) LS_S, "kernel_gap",
          "the same in a CUDA graph: of all kernels that a graph launches"),
  AROUND ("memcpy_share", LS_FIELD_DOUBLE, memcpy_share, 1, "as the access file has it",
          "share of the HBM bandwidth that copies within the GPU reach"),
  AROUND ("copy_duplex", LS_FIELD_DOUBLE, copy_duplex, 1, "1",
          "rate of a copy to or from the host while another goes the other way, over its rate alone"),
  AROUND (
      "priority_wait", LS_FIELD_TIME, priority_wait, (double) LS_S, "0us",
      "how long communication waits for SMs that gets ready while a kernel runs; at most until that kernel "
      "ends"),
  AROUND (
      "streams_in_layer", LS_FIELD_DOUBLE, streams_in_layer, 16, "1",
      "time of elementwise kernels, norms, softmaxes and reductions inside a layer, over their time alone; "
      "not of those with an access kind"),
  { "gemms", LS_FIELD_ENUM, offsetof (LsCalibration, around.gemms), .names = ls_gemms_names,
    .default_text = "as persistent_gemms of the GPU",
    .meaning = "how the library's GEMMs occupy the SMs: a block for each tile, clusters of blocks, or a "
               "block for each SM" },
  AROUND ("lost_tiles", LS_FIELD_DOUBLE, lost_tiles, 16, "1",
          "SMs that a GEMM of a block for each tile loses for each that communication holds"),
  AROUND ("lost_clusters", LS_FIELD_DOUBLE, lost_clusters, 16, "1", "the same of one in clusters"),
  AROUND ("lost_told", LS_FIELD_DOUBLE, lost_told, 16, "1",
          "the same of one that was given how many SMs are left"),
  AROUND ("waves", LS_FIELD_DOUBLE, waves, 16, "2",
          "time of a persistent GEMM that begins together with communication, over its time alone"),
  { "source", LS_FIELD_SOURCES, .default_text = "none", .meaning = "by key: which rows it comes from" },
  { NULL },
};

const LsField ls_calibration_fields[] = {
  LS_FIELDS_HEADER (LsCalibration),
  { "provenance", LS_FIELD_IGNORED, .expected = "object", .default_text = "none",
    .meaning = "what `lockstep calibrate` was given: command, version, files with their SHA-256, dates and "
               "rows; burst or "
               "sustained" },
  { "sustained", LS_FIELD_DOUBLE, offsetof (LsCalibration, sustained), .above = true, .max = 1,
    .default_text = "1",
    .meaning = "rate of GEMMs inside a training step relative to the loops that were measured" },
  { "sustained_fp8", LS_FIELD_DOUBLE, offsetof (LsCalibration, sustained_fp8), .above = true, .max = 1,
    .default_text = "as sustained", .meaning = "the same of GEMMs in fp8" },
  { "sustained_nvfp4", LS_FIELD_DOUBLE, offsetof (LsCalibration, sustained_nvfp4), .above = true, .max = 1,
    .default_text = "as sustained", .meaning = "and in nvfp4" },
  { "gemm_unaligned", LS_FIELD_DOUBLE, offsetof (LsCalibration, gemm_unaligned), .above = true, .max = 1,
    .default_text = "not known: as if aligned",
    .meaning = "of the peak, what 16-bit GEMMs reach at most with rows which begin on no 16 bytes" },
  { "attention_masked", LS_FIELD_DOUBLE, offsetof (LsCalibration, attention_masked), .above = true, .max = 1,
    .default_text = "not known: 1",
    .meaning = "rate of attention that reads a mask, relative to what its kernel reaches without" },
  { "around", LS_FIELD_OBJECT, 0, .fields = around_fields, .default_text = "nothing measured",
    .meaning = "what was measured besides kernels: launches, gaps, GEMMs together with communication" },
  { "kernels", LS_FIELD_OBJECT, 0, .required = true, .fields = kernel_fields,
    .meaning = "by kind of kernel" },
  { "measured", LS_FIELD_ARRAY, offsetof (LsCalibration, measured), .fields = measured_fields,
    .element_size = sizeof (LsMeasuredKernel), .lines = true, .default_text = "none",
    .meaning = "kernels that were timed, which go before the coefficients: exact, or between neighbours" },
  { NULL },
};

bool
ls_calibration_read (const LsJsonDoc *doc, LsCalibration *ret_calibration, LsDiagList *diags)
{
  LsCalibration c = { 0 };
  ls_calibration_init_roofline (&c);
  bool ok = ls_fields_read_file (ls_calibration_fields, "calibration", doc, &c, diags);
  if (ok)
    *ret_calibration = c;
  else
    ls_calibration_clear (&c);
  return ok;
}

bool
ls_calibration_load (const char *name, LsCalibration *ret_calibration, LsDiagList *diags)
{
  g_autoptr (LsJsonDoc) doc = ls_data_load (LS_DATA_CALIBRATIONS, name, diags);
  return doc && ls_calibration_read (doc, ret_calibration, diags);
}
