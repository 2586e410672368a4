/* data/machines/read_calibration.c — topologies/calib/, jitter/ and reliability/ read: kernels, also by how
 * they touch memory, residuals; how parts differ, and how they fail. */
#include "data/machines/machines.h"

#include <math.h>
#include <string.h>

#include "compute/measured.h"
#include "data/datadir.h"
#include "data/jobs/job_files.h"

#define OF_FIT(key_, kind_) #key_, kind_, offsetof(LsKindFit, key_)
const LsField ls_kind_fit_fields[] = {
  { "fitted", LS_FIELD_BOOL, offsetof (LsKindFit, is_fitted), .required = true,
    .meaning = "false: the figures are a stated guess" },
  { OF_FIT (compute_efficiency, LS_FIELD_DOUBLE), .above = true, .max = 1, .default_text = "1",
    .meaning = "share of the peak FLOP rate, in the largest tile and a deep loop" },
  { OF_FIT (flops_half, LS_FIELD_DOUBLE), .max = 1e24, .default_text = "0",
    .meaning = "FLOPs of one launch at which that share is halved (kinds without tiles); 0: no fall-off" },
  { OF_FIT (depth_half, LS_FIELD_DOUBLE), .max = 1e9, .default_text = "0",
    .meaning = "length of the inner loop (k of a GEMM, keys of attention) at which half of a tile's time is "
               "overhead" },
  { OF_FIT (width_half, LS_FIELD_DOUBLE), .max = 1e9, .default_text = "0",
    .meaning = "width of a head at which softmax takes half the time of attention" },
  { OF_FIT (wide_slow, LS_FIELD_DOUBLE), .max = 10, .default_text = "0",
    .meaning = "extra share of the time of attention with heads wider than wide_head" },
  { OF_FIT (wide_head, LS_FIELD_DOUBLE), .max = 1e9, .default_text = "128",
    .meaning = "width of a head from which on wide_slow is paid, itself not" },
  { OF_FIT (width_step, LS_FIELD_DOUBLE), .max = 1e9, .default_text = "0",
    .meaning = "heads run kernels for the next multiple of this width, up to 128; 0: for their own" },
  { OF_FIT (causal_block, LS_FIELD_DOUBLE), .max = 1e9, .default_text = "128",
    .meaning = "edge of the blocks of queries and keys that attention computes or skips whole" },
  { OF_FIT (tail, LS_FIELD_DOUBLE), .max = 10, .default_text = "0",
    .meaning = "longest tiles of attention in which the SMs run out of work; 0: it spreads evenly over "
               "them" },
  { OF_FIT (tile_half, LS_FIELD_DOUBLE), .max = 1e9, .default_text = "0",
    .meaning = "edge of the square tile that runs at half rate" },
  { OF_FIT (square_tile, LS_FIELD_DOUBLE), .max = 4096, .default_text = "0",
    .meaning
    = "edge of a square tile that the library of GEMMs has next to 256 x 128 and smaller ones; 0: none" },
  { OF_FIT (wave_blind, LS_FIELD_BOOL), .default_text = "false",
    .meaning = "that library chooses a tile as if of a started wave only its share were paid" },
  { OF_FIT (wave_rounding, LS_FIELD_DOUBLE), .max = 1, .default_text = "0",
    .meaning = "how much of a started wave of tiles is paid; 0: the work spreads evenly over the SMs" },
  { OF_FIT (split_launch, LS_FIELD_TIME), .max = (double) LS_S, .default_text = "0us",
    .meaning = "joining the partial sums of a GEMM that is cut along k" },
  { OF_FIT (throttle, LS_FIELD_DOUBLE), .max = 10, .default_text = "0",
    .meaning = "extra share of compute time on a hot chip" },
  { OF_FIT (burst, LS_FIELD_TIME), .max = (double) LS_S, .default_text = "0us",
    .meaning = "compute time of a kernel up to which a loop of its like stays cool" },
  { OF_FIT (overlap, LS_FIELD_DOUBLE), .max = 1e3, .default_text = "0",
    .meaning = "p of (compute^p + memory^p)^(1/p); 0: the larger of the two" },
  { OF_FIT (wide_exposed, LS_FIELD_DOUBLE), .max = 1, .default_text = "0",
    .meaning = "of GEMMs: of the traffic of a result beyond 16 bits an element, as of one that is added to "
               "in fp32, the share that moves while no FLOPs run, at the full HBM bandwidth" },
  { OF_FIT (memory_efficiency, LS_FIELD_DOUBLE), .above = true, .max = 1, .default_text = "1",
    .meaning = "share of the HBM bandwidth" },
  { OF_FIT (bytes_half, LS_FIELD_DOUBLE), .max = 1e18, .default_text = "0",
    .meaning = "bytes of one launch at which that share is halved; 0: no fall-off" },
  { OF_FIT (cache_bytes, LS_FIELD_DOUBLE), .max = 1e18, .default_text = "0",
    .meaning = "traffic of one launch that the L2 serves whole, none of twice that; of GEMMs that of the "
               "first operand and the result" },
  { OF_FIT (cache_speed, LS_FIELD_DOUBLE), .max = 1e3, .default_text = "0",
    .meaning = "rate of the L2 relative to the HBM; up to 1: no effect" },
  { OF_FIT (launch, LS_FIELD_TIME), .max = (double) LS_S, .default_text = "0us",
    .meaning = "fixed time of one launch" },
  { OF_FIT (matrix_launch, LS_FIELD_TIME), .max = (double) LS_S, .default_text = "0us",
    .meaning = "what each matrix but the first of a grouped product adds to that" },
  { OF_FIT (timed_host, LS_FIELD_TIME), .max = (double) LS_S, .default_text = "0us",
    .meaning = "constant that the timings of the fit held besides the kernel" },
  { OF_FIT (timed_efficiency, LS_FIELD_DOUBLE), .max = 1e3, .default_text = "0",
    .meaning = "share of the bandwidth at which a second kernel in those timings ran; 0: none" },
  { OF_FIT (min_work, LS_FIELD_DOUBLE), .max = 1e24, .default_text = "0",
    .meaning = "least FLOPs (compute kinds) or bytes seen in the fit" },
  { OF_FIT (max_work, LS_FIELD_DOUBLE), .max = 1e24, .default_text = "0",
    .meaning = "most FLOPs or bytes seen in the fit" },
  { OF_FIT (mape, LS_FIELD_DOUBLE), .max = 1e6, .default_text = "none",
    .meaning = "mean absolute error on held-out shapes, as a fraction" },
  { "source", LS_FIELD_IGNORED, .required = true, .meaning = "data, method and hold-out, or why this guess" },
  { NULL },
};

#define ENTRY(slot_) LS_FIELD_OBJECT, offsetof (LsCalibration, kind[slot_]), .fields = ls_kind_fit_fields

#define KIND(key_, kind_)                                                                                    \
  {                                                                                                          \
    key_, ENTRY (kind_), .default_text = "roofline", .meaning = "coefficients of this kind of kernel"        \
  }

#define ATTENTION(kernel_, backward_)                                                                        \
  ENTRY (LS_ENTRY_ATTENTION + 2 * (kernel_ - 1) + backward_), .default_text = "not known"

/* In the order of LsCalibrationEntry. */
static const LsField kernel_fields[] = {
  LS_KERNEL_KINDS (KIND),
  { "gemm_fp8", ENTRY (LS_ENTRY_GEMM_FP8), .default_text = "as gemm",
    .meaning = "coefficients of fp8 GEMMs" },
  { "gemm_fp8_blocks", ENTRY (LS_ENTRY_GEMM_FP8_BLOCKS), .default_text = "as gemm_fp8",
    .meaning = "the same whose operands both have scales of blocks along k: fp8_recipe deepseek, weight "
               "gradients" },
  { "gemm_nvfp4", ENTRY (LS_ENTRY_GEMM_NVFP4), .default_text = "as gemm_fp8",
    .meaning = "coefficients of nvfp4 GEMMs" },
  { "attention_fp8", ENTRY (LS_ENTRY_ATTENTION_FP8), .default_text = "as attention-fwd",
    .meaning = "coefficients of fp8 attention, forward" },
  { "vllm_rmsnorm", ENTRY (LS_ENTRY_VLLM_RMSNORM), .default_text = "roofline",
    .meaning = "vLLM's RMSNorm of 2023: only for comparing with its timings" },
  { "vllm_silu_mul", ENTRY (LS_ENTRY_VLLM_SILU_MUL), .default_text = "roofline",
    .meaning = "vLLM's SiLU and product of 2023: the same" },
  { "fa1_fwd", ATTENTION (LS_ATTENTION_KERNEL_FA1, 0),
    .meaning = "FlashAttention, forward: for attention_kernel fa1" },
  { "fa1_bwd", ATTENTION (LS_ATTENTION_KERNEL_FA1, 1), .meaning = "backward" },
  { "triton_fwd", ATTENTION (LS_ATTENTION_KERNEL_TRITON, 0), .meaning = "FlashAttention in Triton, forward" },
  { "triton_bwd", ATTENTION (LS_ATTENTION_KERNEL_TRITON, 1), .meaning = "backward" },
  { "fa2_fwd", ATTENTION (LS_ATTENTION_KERNEL_FA2, 0), .meaning = "FlashAttention-2, forward" },
  { "fa2_bwd", ATTENTION (LS_ATTENTION_KERNEL_FA2, 1), .meaning = "backward" },
  { "fa3_fwd", ATTENTION (LS_ATTENTION_KERNEL_FA3, 0), .meaning = "FlashAttention-3, forward" },
  { "fa3_bwd", ATTENTION (LS_ATTENTION_KERNEL_FA3, 1), .meaning = "backward" },
  { "pallas_fwd", ATTENTION (LS_ATTENTION_KERNEL_PALLAS, 0),
    .meaning = "flash attention of JAX's Pallas on TPUs, forward, where all keys are met" },
  { "pallas_bwd", ATTENTION (LS_ATTENTION_KERNEL_PALLAS, 1), .meaning = "backward" },
  { "aotriton_fwd", ATTENTION (LS_ATTENTION_KERNEL_AOTRITON, 0),
    .meaning = "AOTriton's, which PyTorch's scaled_dot_product_attention runs on AMD's GPUs, forward" },
  { "aotriton_bwd", ATTENTION (LS_ATTENTION_KERNEL_AOTRITON, 1), .meaning = "backward" },
  { "cudnn_fwd", ATTENTION (LS_ATTENTION_KERNEL_CUDNN, 0), .meaning = "cuDNN's, forward" },
  { "cudnn_bwd", ATTENTION (LS_ATTENTION_KERNEL_CUDNN, 1), .meaning = "backward" },
  { "cudnn_fp8_fwd", ATTENTION (LS_ATTENTION_KERNEL_CUDNN_FP8, 0),
    .meaning = "cuDNN's in fp8, forward: for fp8_attention delayed and current" },
  { "cudnn_fp8_bwd", ATTENTION (LS_ATTENTION_KERNEL_CUDNN_FP8, 1), .meaning = "backward" },
  { "cudnn_mxfp8_fwd", ATTENTION (LS_ATTENTION_KERNEL_CUDNN_MXFP8, 0),
    .meaning = "the same with a scale for each 32 values, forward: for fp8_attention mxfp8" },
  { "cudnn_mxfp8_bwd", ATTENTION (LS_ATTENTION_KERNEL_CUDNN_MXFP8, 1), .meaning = "backward" },
  { NULL },
};
G_STATIC_ASSERT (G_N_ELEMENTS (kernel_fields) == LS_N_ENTRIES + 1);

const char *
ls_entry_key (guint slot)
{
  return kernel_fields[slot].key;
}

#define MAX_SIZE                       1e9 /* of a dimension */
#define MEASURED(key_, kind_, member_) key_, kind_, offsetof (LsMeasuredKernel, member_)

static const LsEnumName dtype_names[] = { { "fp32", LS_DTYPE_FP32 },
                                          { "tf32", LS_DTYPE_TF32 },
                                          { "fp16", LS_DTYPE_FP16 },
                                          { "bf16", LS_DTYPE_BF16 },
                                          { "fp8", LS_DTYPE_FP8 },
                                          { "nvfp4", LS_DTYPE_NVFP4 },
                                          { NULL } };

/* kernelbench's own attention is a kernel that no job runs: it is none of these. */
const LsEnumName ls_measured_attentions[] = { { "fa1", LS_ATTENTION_KERNEL_FA1 },
                                              { "triton", LS_ATTENTION_KERNEL_TRITON },
                                              { "fa2", LS_ATTENTION_KERNEL_FA2 },
                                              { "fa3", LS_ATTENTION_KERNEL_FA3 },
                                              { "aotriton", LS_ATTENTION_KERNEL_AOTRITON },
                                              { "cudnn", LS_ATTENTION_KERNEL_CUDNN },
                                              { NULL } };

static const LsField measured_fields[] = {
  { MEASURED ("kernel", LS_FIELD_ENUM, kind), .required = true, .names = ls_kernel_kind_names,
    .meaning = "kind of kernel" },
  { MEASURED ("name", LS_FIELD_STRING, name), .default_text = "any",
    .meaning = "which one of that kind, as the timeline shows it" },
  { MEASURED ("implementation", LS_FIELD_ENUM, implementation), .names = ls_measured_attentions,
    .default_text = "the usual one",
    .meaning = "of attention: whose; used for jobs with that `attention_kernel` only" },
  { MEASURED ("dtype", LS_FIELD_ENUM, dtype), .required = true, .names = dtype_names,
    .meaning = "of the inputs" },
  { MEASURED ("m", LS_FIELD_UINT64, m), .required = true, .min = 1, .max = MAX_SIZE,
    .meaning = "rows of the result; of attention queries" },
  { MEASURED ("n", LS_FIELD_UINT64, n), .required = true, .min = 1, .max = MAX_SIZE,
    .meaning = "its columns; of attention keys" },
  { MEASURED ("k", LS_FIELD_UINT64, k), .max = MAX_SIZE, .default_text = "0",
    .meaning = "length of the inner loop; of attention the width of a head" },
  { MEASURED ("batch", LS_FIELD_UINT64, batch), .max = MAX_SIZE, .default_text = "1",
    .meaning = "so many at once" },
  { MEASURED ("flops", LS_FIELD_DOUBLE, flops), .max = 1e24, .default_text = "0", .meaning = "of all" },
  { MEASURED ("bytes", LS_FIELD_DOUBLE, bytes), .required = true, .above = true, .max = 1e18,
    .meaning = "that cross HBM once" },
  { MEASURED ("time", LS_FIELD_TIME, time), .required = true, .above = true, .max = (double) (1000 * LS_S),
    .meaning = "alone on a cool GPU" },
  { NULL },
};

const LsEnumName ls_gemms_names[] = {
  { "tiles", LS_GEMMS_TILES },
  { "clusters", LS_GEMMS_CLUSTERS },
  { "persistent", LS_GEMMS_PERSISTENT },
  { NULL },
};

#define AROUND(key_, kind_, member_) key_, kind_, offsetof (LsCalibration, around.member_), .above = true
static const LsField around_fields[] = {
  { AROUND ("host_launch", LS_FIELD_TIME, host_launch), .max = (double) LS_S, .default_text = "0us",
    .meaning = "what the driver's call to launch a kernel takes on the host: no job pays less, unless "
               "`--host-launch` says so" },
  { AROUND ("kernel_gap", LS_FIELD_TIME, kernel_gap), .max = (double) LS_S,
    .default_text = "as the access file has it",
    .meaning = "from the end of a kernel to the start of the next of a full queue: of kernels with an access "
               "kind" },
  { AROUND ("graph_gap", LS_FIELD_TIME, graph_gap), .max = (double) LS_S, .default_text = "kernel_gap",
    .meaning = "the same in a CUDA graph: of all kernels that a graph launches" },
  { AROUND ("memcpy_share", LS_FIELD_DOUBLE, memcpy_share), .max = 1,
    .default_text = "as the access file has it",
    .meaning = "share of the HBM bandwidth that copies within the GPU reach" },
  { AROUND ("copy_duplex", LS_FIELD_DOUBLE, copy_duplex), .max = 1, .default_text = "1",
    .meaning = "rate of a copy to or from the host while another goes the other way, over its rate alone" },
  { AROUND ("priority_wait", LS_FIELD_TIME, priority_wait), .max = (double) LS_S, .default_text = "0us",
    .meaning
    = "how long communication waits for SMs that gets ready while a kernel runs; at most until that kernel "
      "ends" },
  { AROUND ("streams_in_layer", LS_FIELD_DOUBLE, streams_in_layer), .max = 16, .default_text = "1",
    .meaning
    = "time of elementwise kernels, norms, softmaxes and reductions inside a layer, over their time alone; "
      "not of those with an access kind" },
  { "gemms", LS_FIELD_ENUM, offsetof (LsCalibration, around.gemms), .names = ls_gemms_names,
    .default_text = "as persistent_gemms of the GPU",
    .meaning = "how the library's GEMMs occupy the SMs: a block for each tile, clusters of blocks, or a "
               "block for each SM" },
  { AROUND ("lost_tiles", LS_FIELD_DOUBLE, lost_tiles), .max = 16, .default_text = "1",
    .meaning = "SMs that a GEMM of a block for each tile loses for each that communication holds" },
  { AROUND ("lost_clusters", LS_FIELD_DOUBLE, lost_clusters), .max = 16, .default_text = "1",
    .meaning = "the same of one in clusters" },
  { AROUND ("lost_told", LS_FIELD_DOUBLE, lost_told), .max = 16, .default_text = "1",
    .meaning = "the same of one that was given how many SMs are left" },
  { AROUND ("waves", LS_FIELD_DOUBLE, waves), .max = 16, .default_text = "2",
    .meaning = "time of a persistent GEMM that begins together with communication, over its time alone" },
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

/* --- kernels by how they touch memory ----------------------------------------------------------- */

static const LsField fit_fields[] = {
  { "fitted", LS_FIELD_BOOL, offsetof (LsAccessFit, is_fitted), .required = true,
    .meaning = "false: the figures are a stated guess" },
  { "share", LS_FIELD_DOUBLE, offsetof (LsAccessFit, share), .above = true, .max = 1, .default_text = "1",
    .meaning = "share of the HBM bandwidth" },
  { "elements_per_sm", LS_FIELD_DOUBLE, offsetof (LsAccessFit, elements_per_sm), .max = 1e15,
    .default_text = "0",
    .meaning = "elements that an SM does in a second, whatever their bytes; 0: no limit" },
  { "launch", LS_FIELD_TIME, offsetof (LsAccessFit, launch), .max = (double) LS_S, .default_text = "0us",
    .meaning = "gap between two kernels of a queue, and what a small kernel takes at least" },
  { "step", LS_FIELD_TIME, offsetof (LsAccessFit, step), .max = (double) LS_S, .default_text = "0us",
    .meaning = "triton-dot: what a tile takes that waits for another" },
  { "source", LS_FIELD_IGNORED, .required = true, .meaning = "who measured it, or why this guess" },
  { NULL },
};

#define FIT(key_, access_, default_, meaning_)                                                               \
  {                                                                                                          \
    key_, LS_FIELD_OBJECT, offsetof (LsAccessFile, fit[access_]),                                            \
        .fields = fit_fields, .default_text = (default_), .meaning = (meaning_)                              \
  }
#define ACCESS(key_, access_, meaning_) FIT (key_, access_, "the bandwidth", meaning_)
/* Of ls_access_is_of_library(). */
#define LIBRARY(key_, access_, meaning_) FIT (key_, access_, "as other kernels of its kind", meaning_)

/* Keys are those of ls_access_names; a test compares them. */
static const LsField kind_fields[] = {
  ACCESS ("vec", LS_ACCESS_VEC, "contiguous tensors of one shape, loaded in vectors"),
  ACCESS ("castdn", LS_ACCESS_CASTDN, "fp32 to 16 bits"),
  ACCESS ("castup", LS_ACCESS_CASTUP, "16 bits to fp32"),
  ACCESS ("bcast16", LS_ACCESS_BCAST16, "elementwise with an operand that is broadcast, 16 bits"),
  ACCESS ("bcast32", LS_ACCESS_BCAST32, "the same in fp32"),
  ACCESS ("strided16", LS_ACCESS_STRIDED16,
          "elementwise or a copy with an operand that is transposed or a slice, 16 bits"),
  ACCESS ("strided32", LS_ACCESS_STRIDED32, "the same in fp32"),
  ACCESS ("cat", LS_ACCESS_CAT, "tensors side by side copied into one"),
  ACCESS ("gather", LS_ACCESS_GATHER, "rows by an index"),
  ACCESS ("scatter", LS_ACCESS_SCATTER, "rows added by an index"),
  ACCESS ("rowred", LS_ACCESS_ROWRED, "a reduction over the last dimension"),
  ACCESS ("colred", LS_ACCESS_COLRED, "over the first"),
  ACCESS ("fill", LS_ACCESS_FILL, "writes a constant"),
  ACCESS ("memcpy", LS_ACCESS_MEMCPY, "a copy by the driver"),
  ACCESS ("multi-tensor", LS_ACCESS_MULTI, "many tensors in one launch: foreach, apex; fp32"),
  ACCESS ("multi-tensor16", LS_ACCESS_MULTI16, "the same in 16 bits"),
  ACCESS ("adam", LS_ACCESS_ADAM, "a fused step of Adam, many tensors in one launch; fp32"),
  ACCESS ("adam16", LS_ACCESS_ADAM16, "the same in 16 bits"),
  ACCESS ("softmax", LS_ACCESS_SOFTMAX, "a softmax that is not fused with what is around it"),
  ACCESS ("triton", LS_ACCESS_TRITON, "made by a compiler: elementwise, fused"),
  ACCESS ("triton-red", LS_ACCESS_TRITON_RED, "the same with a reduction over rows"),
  ACCESS ("xla", LS_ACCESS_XLA, "made by XLA for a GPU: elementwise, fused"),
  ACCESS ("xla-red", LS_ACCESS_XLA_RED, "the same with a reduction over rows"),
  ACCESS ("xla-colred", LS_ACCESS_XLA_COLRED, "elementwise, with sums over the first dimension next to it"),
  ACCESS ("xla-transpose", LS_ACCESS_XLA_TRANSPOSE, "transposes, with sums next to it"),
  ACCESS ("tiny", LS_ACCESS_TINY, "a few kB: all launch"),
  ACCESS ("triton-dot", LS_ACCESS_TRITON_DOT,
          "made by a compiler: products of tiles of a chunk; an element is a multiply-add"),
  LIBRARY ("mx-cast", LS_ACCESS_MX_CAST,
           "16 bits to fp8 with a scale for each 32 values, along one dimension"),
  LIBRARY ("mx-cast-both", LS_ACCESS_MX_CAST_BOTH, "the same along both dimensions in one kernel"),
  LIBRARY ("block-cast", LS_ACCESS_BLOCK_CAST,
           "16 bits to fp8 with a scale for each 128 values, along both dimensions in one kernel"),
  LIBRARY ("te-norm", LS_ACCESS_TE_NORM, "RMSNorm of Transformer Engine, of widths that it is tuned for"),
  LIBRARY ("te-norm-grad", LS_ACCESS_TE_NORM_GRAD, "its backward"),
  LIBRARY ("te-layer-norm", LS_ACCESS_TE_LAYER_NORM, "LayerNorm of Transformer Engine, forward or backward"),
  LIBRARY ("te-norm-any", LS_ACCESS_TE_NORM_ANY, "its RMSNorm of any other width"),
  LIBRARY ("te-norm-any-grad", LS_ACCESS_TE_NORM_ANY_GRAD, "the backward of that"),
  LIBRARY ("te-norm-any-sum", LS_ACCESS_TE_NORM_ANY_SUM,
           "the kernel after that, which sums the weight's gradients of all its blocks"),
  LIBRARY ("te-norm-sum", LS_ACCESS_TE_NORM_SUM,
           "the same for rows of a head, of which more blocks fit on an SM"),
  LIBRARY ("te-rope", LS_ACCESS_TE_ROPE, "Transformer Engine's rotations of Q or K"),
  { NULL },
};
G_STATIC_ASSERT (G_N_ELEMENTS (kind_fields) == LS_N_ACCESSES);

const LsField ls_access_fields[] = {
  LS_FIELDS_HEADER (LsAccessFile),
  { "gap", LS_FIELD_TIME, offsetof (LsAccessFile, gap), .max = (double) LS_S, .default_text = "not known",
    .meaning = "what of each launch is the gap between two kernels of a full queue: one that was measured "
               "replaces it" },
  { "access", LS_FIELD_OBJECT, 0, .required = true, .fields = kind_fields,
    .meaning = "by how kernels touch memory" },
  { NULL },
};

void
ls_access_file_clear (LsAccessFile *file)
{
  g_free (file->name);
  g_free (file->source);
  memset (file, 0, sizeof *file);
}

bool
ls_access_read (const LsJsonDoc *doc, LsAccessFile *ret_file, LsDiagList *diags)
{
  LsAccessFile file = { 0 };
  ls_access_init_roofline (file.fit);
  bool ok = ls_fields_read_file (ls_access_fields, "access", doc, &file, diags);
  if (ok)
    *ret_file = file;
  else
    ls_access_file_clear (&file);
  return ok;
}

static void
put_copy (LsCalibration *c)
{
  LsAccessFit *copy = &c->access[LS_ACCESS_MEMCPY];
  if (c->around.memcpy_share <= 0)
    return;
  copy->share = c->around.memcpy_share;
  copy->is_fitted = true;
}

static void
put_gap (LsCalibration *c, LsTime gap)
{
  for (int i = 0; i < LS_N_ACCESSES; i++)
    c->access[i].launch = ls_around_launch (&c->around, c->access[i].launch, gap);
}

static bool
load_file (const char *name, LsAccessFile *file, LsDiagList *diags)
{
  g_autoptr (LsJsonDoc) doc = ls_data_load (LS_DATA_CALIBRATIONS, name, diags);
  return doc && ls_access_read (doc, file, diags);
}

bool
ls_access_gap (const char *name, LsTime *ret_gap, LsDiagList *diags)
{
  LsAccessFile file;
  *ret_gap = 0;
  if (!name)
    return true;
  if (!load_file (name, &file, diags))
    return false;
  *ret_gap = file.gap;
  ls_access_file_clear (&file);
  return true;
}

bool
ls_access_load (const char *name, LsCalibration *c, LsDiagList *diags)
{
  if (!name) {
    ls_access_init_roofline (c->access);
    put_gap (c, 0);
    put_copy (c);
    return true;
  }
  LsAccessFile file;
  if (!load_file (name, &file, diags))
    return false;
  memcpy (c->access, file.fit, sizeof file.fit);
  if (file.gap > 0)
    put_gap (c, file.gap);
  put_copy (c);
  ls_access_file_clear (&file);
  return true;
}

/* --- what published runs measured -------------------------------------------------------------------- */

static const LsField residual_element[] = {
  { "", LS_FIELD_DOUBLE, 0, .min = -1, .max = 1 },
  { NULL },
};

#define TEXT(member) #member, LS_FIELD_STRING, offsetof(LsResidualGroup, member), .required = true

static const LsField trait_element[] = { { "", LS_FIELD_STRING, 0, .required = true, .max = 64 }, { NULL } };

#define FIGURE(aspect, key_, max_, meaning_)                                                                 \
  {                                                                                                          \
    key_, LS_FIELD_DOUBLE,                                                                                   \
        offsetof (LsResidualGroup, figures) + ((aspect) -LS_N_WORD_ASPECTS) * sizeof (double),               \
        .min = 0, .max = (max_), .default_text = "not known", .meaning = (meaning_)                          \
  }

static const LsField stretch_fields[] = {
  { "aspect", LS_FIELD_ENUM, offsetof (LsStretch, aspect), .required = true, .names = ls_aspect_names,
    .meaning = "in which a job may be unlike all runs with its software" },
  { "factor", LS_FIELD_DOUBLE, offsetof (LsStretch, factor), .required = true, .min = 1, .max = 1e6,
    .meaning = "how many times as wide its interval then is" },
  { "reach", LS_FIELD_DOUBLE, offsetof (LsStretch, reach), .min = 0, .max = 100,
    .default_text = "0: of a word",
    .meaning = "of a figure: how far beyond those of the runs it holds; ln of the ratio, of shares their "
               "difference" },
  { "n", LS_FIELD_UINT, offsetof (LsStretch, n), .required = true, .min = 2,
    .meaning = "words or figures of runs that were left out in turn to find it" },
  { NULL },
};

static const LsField group_fields[] = {
  { TEXT (source), .meaning = "paper or benchmark; all sources count alike" },
  { TEXT (family), .meaning = "which of its runs" },
  { TEXT (architecture), .meaning = "of their GPUs: name of a file in topologies/nccl, or tpu" },
  { TEXT (software),
    .meaning
    = "whose training loop ran them (runs_like of a file of software); jobs are compared with runs of the "
      "same" },
  { "n", LS_FIELD_UINT, offsetof (LsResidualGroup, n), .required = true, .min = 1, .meaning = "runs" },
  { "lowest_mfu", LS_FIELD_DOUBLE, offsetof (LsResidualGroup, lowest_mfu), .required = true, .min = 1e-4,
    .max = 1, .meaning = "the lowest MFU that was predicted for one of them" },
  FIGURE (LS_ASPECT_GPUS, "gpus", 1e9, "the most GPUs of one of them"),
  FIGURE (LS_ASPECT_FABRIC, "fabric", 1e15,
          "bytes/s of the NICs per GPU, the least of those on several nodes"),
  FIGURE (LS_ASPECT_GUESSED, "guessed", 1,
          "the largest share of kernel time by data sheets and stated guesses"),
  FIGURE (LS_ASPECT_TENSOR, "tp", 1e9, "the highest degree of tensor parallelism"),
  FIGURE (LS_ASPECT_PARAMS, "params", 1e18, "parameters of the largest model"),
  { "traits", LS_FIELD_ARRAY, offsetof (LsResidualGroup, traits), .fields = trait_element,
    .element_size = sizeof (char *), .default_text = "not known",
    .meaning = "what they have: aspect and word, as \"format bf16\" (analysis/interval.h)" },
  { "residuals", LS_FIELD_ARRAY, offsetof (LsResidualGroup, residuals), .required = true,
    .fields = residual_element, .element_size = sizeof (double),
    .meaning = "quantiles of MFU · ln (measured / predicted step), ascending" },
  { NULL },
};

const LsField ls_residuals_fields[] = {
  LS_FIELDS_HEADER (LsResiduals),
  { "provenance", LS_FIELD_SOURCES, .default_text = "none",
    .meaning = "the command that wrote the file, and what it was given" },
  { "stretches", LS_FIELD_ARRAY, offsetof (LsResiduals, stretches), .fields = stretch_fields,
    .element_size = sizeof (LsStretch), .default_text = "none",
    .meaning = "for jobs that are unlike all runs; without one of its aspect they have no interval" },
  { "groups", LS_FIELD_ARRAY, offsetof (LsResiduals, groups), .required = true, .fields = group_fields,
    .element_size = sizeof (LsResidualGroup), .meaning = "runs of one kind" },
  { NULL },
};

/* What keys by themselves do not show. */
static bool
check_group (const LsJsonDoc *doc, const LsResidualGroup *g, const cJSON *node, LsDiagList *diags)
{
  bool is_sorted = true;
  for (guint k = 1; k < g->residuals->len; k++)
    is_sorted
        = is_sorted && g_array_index (g->residuals, double, k - 1) <= g_array_index (g->residuals, double, k);
  if (g->residuals->len > 0 && g->residuals->len <= g->n && is_sorted)
    return true;
  return ls_json_doc_diag (doc, ls_json_at (node, "residuals"), LS_JSON_AT_VALUE, diags,
                           "lockstep validate CASES.csv --residuals FILE.json writes such a file",
                           "expected 1 to n = %u numbers, ascending; got %u%s", g->n, g->residuals->len,
                           is_sorted ? "" : ", not ascending");
}

LsResiduals *
ls_residuals_read (const LsJsonDoc *doc, LsDiagList *diags)
{
  g_autoptr (LsResiduals) r = ls_residuals_new ();
  if (!ls_fields_read_file (ls_residuals_fields, "residuals", doc, r, diags))
    return NULL;
  const cJSON *node = ls_json_doc_at (doc, "groups")->child;
  bool ok = true;
  for (guint i = 0; i < r->groups->len; i++, node = node->next)
    ok = check_group (doc, &g_array_index (r->groups, LsResidualGroup, i), node, diags) && ok;
  return ok ? g_steal_pointer (&r) : NULL;
}

LsResiduals *
ls_residuals_load (const char *name, LsDiagList *diags)
{
  g_autoptr (LsJsonDoc) doc = ls_data_load (LS_DATA_CALIBRATIONS, name, diags);
  return doc ? ls_residuals_read (doc, diags) : NULL;
}

bool
ls_residuals_exist (const char *name)
{
  g_autofree char *message = NULL, *path = ls_data_find (LS_DATA_CALIBRATIONS, name, &message);
  return path && g_file_test (path, G_FILE_TEST_EXISTS);
}

/* --- topologies/jitter/ -------------------------------------------------------------------------- */

#define OF_JITTER(key_, member_) key_, LS_FIELD_DOUBLE, offsetof (LsJitter, member_)

const LsField ls_jitter_fields[] = {
  LS_FIELDS_HEADER (LsJitter),
  { OF_JITTER ("noise", noise), .required = true, .max = 0.5,
    .meaning = "standard deviation of the kernel time of an accelerator in steps of one second, of its mean; "
               "steps of T seconds have it over the root of T" },
  { OF_JITTER ("spread", spread), .max = 0.2, .default_text = "`clock_spread` of the accelerator",
    .meaning = "standard deviation of the rate of matrix products among accelerators" },
  { OF_JITTER ("day", day), .max = 0.5, .default_text = "0",
    .meaning = "how much longer steps of all are in the slowest hour of a day than in the fastest" },
  { "sources", LS_FIELD_SOURCES, .default_text = "none", .meaning = "where each figure comes from, by key" },
  { NULL },
};

bool
ls_jitter_read (const LsJsonDoc *doc, LsJitter *ret_jitter, LsDiagList *diags)
{
  LsJitter j = { .spread = NAN };
  bool ok = ls_fields_read_file (ls_jitter_fields, "jitter", doc, &j, diags);
  if (ok)
    *ret_jitter = j;
  else
    ls_jitter_clear (&j);
  return ok;
}

bool
ls_jitter_load (const char *name, LsJitter *ret_jitter, LsDiagList *diags)
{
  g_autoptr (LsJsonDoc) doc = ls_data_load (LS_DATA_JITTER, name, diags);
  return doc && ls_jitter_read (doc, ret_jitter, diags);
}

/* --- topologies/reliability/ --------------------------------------------------------------------- */

#define MAX_PER_DAY 1e6
#define MAX_TIME_PS (90.0 * 86400 * (double) LS_S)

#define SEEN(unit_)                                                                                          \
  LS_FIELD_DOUBLE, offsetof (LsExposure, of) + (unit_) * sizeof (double), .above = true, .max = 1e9,         \
                                                                          .default_text = "not said"

static const LsField seen_fields[] = {
  { "days", LS_FIELD_DOUBLE, offsetof (LsExposure, days), .required = true, .above = true, .max = 1e5,
    .meaning = "how long they were counted" },
  { "gpus", SEEN (LS_FAILS_GPU), .meaning = "on so many accelerators" },
  { "nodes", SEEN (LS_FAILS_NODE), .meaning = "that is, nodes" },
  { "nics", SEEN (LS_FAILS_NIC), .meaning = "that is, ports of the network" },
  { "jobs", SEEN (LS_FAILS_JOB), .meaning = "that is, jobs" },
  { "racks", SEEN (LS_FAILS_RACK), .meaning = "that is, racks" },
  { NULL },
};

static const LsEnumName units[]
    = { { "gpu", LS_FAILS_GPU }, { "node", LS_FAILS_NODE }, { "nic", LS_FAILS_NIC },
        { "job", LS_FAILS_JOB }, { "rack", LS_FAILS_RACK }, { NULL } };
static const LsEnumName effects[] = { { "replace", LS_FAILURE_REPLACE },
                                      { "restart", LS_FAILURE_RESTART },
                                      { "planned", LS_FAILURE_PLANNED },
                                      { "stall", LS_FAILURE_STALL },
                                      { "slow", LS_FAILURE_SLOW },
                                      { "corrupt", LS_FAILURE_CORRUPT },
                                      { NULL } };

#define CAUSE(key_, kind_, member_) key_, kind_, offsetof (LsFailureCause, member_)
#define OF(key_, kind_, member_)    key_, kind_, offsetof (LsReliability, member_)

static const LsField cause_fields[] = {
  { CAUSE ("name", LS_FIELD_STRING, name), .required = true, .meaning = "what tables call it" },
  { CAUSE ("unit", LS_FIELD_ENUM, unit), .required = true, .names = units,
    .meaning = "what fails: its rate is of one of these" },
  { CAUSE ("effect", LS_FIELD_ENUM, effect), .names = effects, .default_text = "`\"replace\"`",
    .meaning
    = "replace: the job ends, and goes on with another node; restart: it ends, and goes on with the same; "
      "planned: the same, after a checkpoint; stall: it waits; slow: it is slower until the node is found "
      "and replaced; corrupt: it goes on with wrong numbers, and later back after them" },
  { CAUSE ("count", LS_FIELD_DOUBLE, count), .max = 1e9, .default_text = "`per_day` says it",
    .meaning = "how many were seen" },
  { CAUSE ("per_day", LS_FIELD_DOUBLE, per_day), .max = MAX_PER_DAY, .default_text = "`count` says it",
    .meaning = "how many there are of one unit in a day" },
  { CAUSE ("detect", LS_FIELD_TIME, detect), .max = MAX_TIME_PS, .default_text = "0s",
    .meaning = "until it is noticed; of a stall, how long it is" },
  { CAUSE ("locate", LS_FIELD_TIME, locate), .max = MAX_TIME_PS, .default_text = "0s",
    .meaning = "until the node is found and taken out" },
  { CAUSE ("repair", LS_FIELD_TIME, repair), .max = MAX_TIME_PS, .default_text = "that of the file",
    .meaning = "until a node that failed is back" },
  { CAUSE ("nodes", LS_FIELD_UINT, nodes), .min = 1, .max = 100000, .default_text = "1",
    .meaning = "of replace: nodes that it takes at once, such as those behind a switch" },
  { CAUSE ("factor", LS_FIELD_DOUBLE, factor), .min = 1, .max = 100, .default_text = "1",
    .meaning = "of slow: a step takes so many times as long" },
  { NULL },
};

static const LsFailureCause cause_blank
    = { .effect = LS_FAILURE_REPLACE, .factor = 1, .nodes = 1, .repair = LS_TIME_NEVER };

const LsField ls_reliability_fields[] = {
  LS_FIELDS_HEADER (LsReliability),
  { "seen", LS_FIELD_OBJECT, offsetof (LsReliability, seen), .fields = seen_fields,
    .default_text = "needed by causes with a count", .meaning = "where failures were counted" },
  { OF ("causes", LS_FIELD_ARRAY, causes), .required = true, .fields = cause_fields, .blank = &cause_blank,
    .element_size = sizeof (LsFailureCause), .meaning = "what stops or slows a job" },
  { OF ("gpus_per_node", LS_FIELD_UINT, gpus_per_node), .max = 1e6, .default_text = "as those of the job",
    .meaning = "of the nodes that were counted: a job meets rates of nodes by its accelerators over this" },
  { OF ("nodes_per_rack", LS_FIELD_UINT, nodes_per_rack), .min = 1, .max = 1e6,
    .default_text = "needed by causes of the unit rack",
    .meaning = "a job has its nodes over this many racks" },
  { OF ("place", LS_FIELD_TIME, place), .max = MAX_TIME_PS, .default_text = "0s",
    .meaning = "until a job that ended has its nodes again" },
  { OF ("place_gpus", LS_FIELD_UINT, place_gpus), .default_text = "any",
    .meaning = "with so many GPUs or fewer" },
  { OF ("place_more", LS_FIELD_TIME, place_more), .max = MAX_TIME_PS, .default_text = "0s",
    .meaning = "and longer for each doubling of them" },
  { OF ("initialise", LS_FIELD_TIME, initialise), .max = MAX_TIME_PS, .default_text = "0s",
    .meaning
    = "until it trains: process groups, compilation, the first batch; reading its checkpoint is apart" },
  { OF ("repair", LS_FIELD_TIME, repair), .max = MAX_TIME_PS, .default_text = "0s",
    .meaning = "until a node that failed is back" },
  { "sources", LS_FIELD_SOURCES, .default_text = "none", .meaning = "where each figure comes from, by key" },
  { NULL },
};

static bool
complain (const LsJsonDoc *doc, const cJSON *node, LsDiagList *diags, const char *message)
{
  return ls_json_doc_diag (doc, node, LS_JSON_AT_VALUE, diags, NULL, "%s", message);
}

/* The rate of a cause that was counted. */
static bool
finish_cause (const LsJsonDoc *doc, const cJSON *node, const LsReliability *r, LsFailureCause *c,
              LsDiagList *diags)
{
  bool has_count = cJSON_GetObjectItemCaseSensitive (node, "count"),
       has_rate = cJSON_GetObjectItemCaseSensitive (node, "per_day");
  if (has_count == has_rate)
    return complain (doc, node, diags, "expected either \"count\" or \"per_day\"");
  if (has_count && !(r->seen.days > 0 && r->seen.of[c->unit] > 0))
    return complain (doc, node, diags, "a \"count\" needs \"seen\" with days, and how many units there were");
  if (has_count)
    c->per_day = c->count / (r->seen.days * r->seen.of[c->unit]);
  if (!(c->per_day <= MAX_PER_DAY))
    return complain (doc, node, diags, "expected at most 1e6 a day of one unit");
  if ((c->effect == LS_FAILURE_SLOW) != (c->factor > 1))
    return complain (doc, node, diags, "a \"factor\" above 1 and the effect slow go together");
  if (c->nodes > 1 && c->effect != LS_FAILURE_REPLACE)
    return complain (doc, node, diags, "several \"nodes\" go with the effect replace");
  if (c->unit == LS_FAILS_RACK && r->nodes_per_rack == 0)
    return complain (doc, node, diags, "the unit rack needs \"nodes_per_rack\"");
  if (c->repair == LS_TIME_NEVER)
    c->repair = r->repair;
  return true;
}

bool
ls_reliability_read (const LsJsonDoc *doc, LsReliability *ret_reliability, LsDiagList *diags)
{
  LsReliability r = { 0 };
  bool ok = ls_fields_read_file (ls_reliability_fields, "reliability", doc, &r, diags);
  const cJSON *list = ls_json_doc_at (doc, "causes"), *node = list ? list->child : NULL;
  for (guint i = 0; ok && i < r.causes->len; i++, node = node->next)
    ok = finish_cause (doc, node, &r, &g_array_index (r.causes, LsFailureCause, i), diags);
  if (ok)
    *ret_reliability = r;
  else
    ls_reliability_clear (&r);
  return ok;
}

bool
ls_reliability_load (const char *name, LsReliability *ret_reliability, LsDiagList *diags)
{
  g_autoptr (LsJsonDoc) doc = ls_data_load (LS_DATA_RELIABILITY, name, diags);
  return doc && ls_reliability_read (doc, ret_reliability, diags);
}
