/* data/machines/read_gpu.c — topologies/gpu/ read. */
#include "data/machines/machines.h"

#include "data/datadir.h"

#define PEAK(key_, dtype)                                                                                    \
  {                                                                                                          \
    key_, LS_FIELD_FLOPS, (dtype) * sizeof (double), .above = true, .default_text = "not supported",         \
                                                     .meaning = "dense matrix rate"                          \
  }

static const LsField peak_fields[] = {
  PEAK ("fp32", LS_DTYPE_FP32),
  PEAK ("tf32", LS_DTYPE_TF32),
  PEAK ("fp16", LS_DTYPE_FP16),
  PEAK ("bf16", LS_DTYPE_BF16),
  PEAK ("fp8", LS_DTYPE_FP8),
  PEAK ("nvfp4", LS_DTYPE_NVFP4),
  { NULL },
};

static const LsEnumName known_by[] = { { "measured", LS_KNOWN_MEASURED },
                                       { "scaled", LS_KNOWN_SCALED },
                                       { "data-sheet", LS_KNOWN_DATA_SHEET },
                                       { NULL } };

const LsField ls_known_fields[] = {
  { "by", LS_FIELD_ENUM, offsetof (LsKnown, by), .required = true, .names = known_by,
    .meaning
    = "on the machine itself, by ratios of data sheets from another one, or from data sheets alone" },
  { "of", LS_FIELD_STRING, offsetof (LsKnown, of), .default_text = "not said",
    .meaning = "what they were measured on, if scaled" },
  { "error", LS_FIELD_DOUBLE, offsetof (LsKnown, error), .max = 2, .default_text = "0 of what was measured",
    .meaning
    = "typical error of a time for that reason, relative: the interval around a step is wider by it" },
  { NULL },
};

static const LsField gpu_known_fields[] = {
  { "kernels", LS_FIELD_OBJECT, offsetof (LsGpu, kernels_known), .fields = ls_known_fields,
    .default_text = "measured", .meaning = "figures of `calibration`" },
  { "collectives", LS_FIELD_OBJECT, offsetof (LsGpu, collectives_known), .fields = ls_known_fields,
    .default_text = "measured", .meaning = "figures of `nccl` inside a node" },
  { NULL },
};

#define WATTS(key_, meaning_)                                                                                \
  {                                                                                                          \
#key_, LS_FIELD_DOUBLE, offsetof(LsGpuPower, key_), .required = true, .above = true, .max = 1e5,         \
                                                        .meaning = meaning_                                  \
  }

static const LsField power_fields[] = {
  WATTS (computing, "kernels run"),
  WATTS (communicating, "collectives, copies and transfers run, and no kernels"),
  WATTS (idle, "a process holds it, and waits"),
  WATTS (free, "no process holds it"),
  { NULL },
};

const LsField ls_gpu_fields[] = {
  LS_FIELDS_HEADER (LsGpu),
  { "peak_flops", LS_FIELD_OBJECT, offsetof (LsGpu, peak_flops), .required = true, .fields = peak_fields,
    .meaning = "peak rates by number format, without sparsity" },
  { "vector_flops", LS_FIELD_FLOPS, offsetof (LsGpu, vector_flops), .required = true, .above = true,
    .meaning = "fp32 rate outside the matrix units" },
  { "hbm_bandwidth", LS_FIELD_RATE, offsetof (LsGpu, hbm_bytes_per_s), .required = true, .above = true,
    .meaning = "of the data sheet" },
  { "hbm_efficiency", LS_FIELD_DOUBLE, offsetof (LsGpu, hbm_efficiency), .required = true, .above = true,
    .max = 1, .meaning = "share of it that kernels together can reach" },
  { "power_limited", LS_FIELD_FLOPS, offsetof (LsGpu, power_limited_flops), .above = true,
    .default_text = "no limit",
    .meaning = "16-bit rate that long matrix products keep under a power limit below that of the "
               "calibration" },
  { "clock_spread", LS_FIELD_DOUBLE, offsetof (LsGpu, clock_spread), .max = 0.2, .default_text = "0",
    .meaning = "standard deviation of the rate of matrix products among such chips: a job waits for its "
               "slowest" },
  { "persistent_gemms", LS_FIELD_BOOL, offsetof (LsGpu, persistent_gemms), .default_text = "false",
    .meaning
    = "GEMMs launch a block for each SM: what finds none together with communication runs in a second "
      "wave" },
  { "mxfp8", LS_FIELD_BOOL, offsetof (LsGpu, has_mxfp8), .default_text = "false",
    .meaning = "its matrix units take fp8 with a scale for each 32 values (fp8_recipe mxfp8)" },
  { "lacks_flash", LS_FIELD_BOOL, offsetof (LsGpu, lacks_flash), .default_text = "false",
    .meaning = "FlashAttention-2 and cuDNN's fused attention do not run on it: jobs of launch files compute "
               "attention in parts" },
  { "product", LS_FIELD_STRING, offsetof (LsGpu, product), .default_text = "not known",
    .meaning = "as its driver calls it, which programs read (lockstep capture)" },
  { "capability", LS_FIELD_STRING, offsetof (LsGpu, capability),
    .default_text = "not known, as of other vendors",
    .meaning = "compute capability of NVIDIA's GPUs, \"9.0\": which kernels run on it (lockstep capture)" },
  { "hbm_size", LS_FIELD_BYTES, offsetof (LsGpu, hbm_bytes), .required = true, .above = true,
    .meaning = "an \"80 GB\" HBM holds 80GiB" },
  { "reserved", LS_FIELD_BYTES, offsetof (LsGpu, reserved_bytes), .default_text = "0B",
    .meaning = "CUDA context and the like, not for tensors" },
  { "blas_workspace", LS_FIELD_BYTES, offsetof (LsGpu, blas_workspace_bytes), .default_text = "0B",
    .meaning = "memory that PyTorch gives cuBLAS for each stream" },
  { "watts", LS_FIELD_DOUBLE, offsetof (LsGpu, watts), .above = true, .max = 1e5, .default_text = "not known",
    .meaning = "power limit of the board" },
  { "power", LS_FIELD_OBJECT, offsetof (LsGpu, power), .fields = power_fields,
    .default_text = "not known: `watts` all the time", .meaning = "watts by what it does" },
  { "usd_per_hour", LS_FIELD_DOUBLE, offsetof (LsGpu, usd_per_hour), .above = true, .max = 1e6,
    .default_text = "not known", .meaning = "what one costs to rent" },
  { "sm", LS_FIELD_UINT, offsetof (LsGpu, n_sm), .required = true, .min = 1, .max = 65536,
    .meaning = "streaming multiprocessors or cores" },
  { "calibration", LS_FIELD_STRING, offsetof (LsGpu, calibration), .default_text = "plain roofline",
    .meaning = "name of a file in topologies/calib" },
  { "nccl", LS_FIELD_STRING, offsetof (LsGpu, nccl), .default_text = "nccl- and calibration, or else name",
    .meaning = "name of a file in topologies/calib" },
  { "access", LS_FIELD_STRING, offsetof (LsGpu, access), .default_text = "the bandwidth",
    .meaning = "name of a file in topologies/calib: rates of kernels by how they touch memory, for kernels "
               "as launched" },
  { "cluster", LS_FIELD_STRING, offsetof (LsGpu, cluster), .default_text = "not known",
    .meaning = "which of several clusters is meant where only the accelerator is named (lockstep validate)" },
  { "known", LS_FIELD_OBJECT, 0, .fields = gpu_known_fields, .default_text = "measured",
    .meaning = "how the figures of its files are known" },
  { NULL },
};

bool
ls_known_check (const LsJsonDoc *doc, const cJSON *at, const LsKnown *known, LsDiagList *diags)
{
  bool is_measured = known->by == LS_KNOWN_MEASURED;
  if (!at || is_measured == (known->error == 0))
    return true;
  return ls_json_doc_diag (doc, at, LS_JSON_AT_VALUE, diags, NULL,
                           is_measured ? "what was measured has no \"error\" here"
                                       : "what was not measured wants an \"error\" above 0");
}

/* What one key alone cannot show. Takes gpu, of which all is read if ok. */
static bool
finish (const LsJsonDoc *doc, const cJSON *object, bool ok, LsGpu *gpu, LsGpu *ret_gpu, LsDiagList *diags)
{
  if (ok && gpu->reserved_bytes >= gpu->hbm_bytes)
    ok = ls_json_doc_diag (doc, ls_json_at (object, "reserved"), LS_JSON_AT_VALUE, diags, NULL,
                           "leaves nothing of \"hbm_size\"");
  else if (ok) {
    ok = ls_known_check (doc, ls_json_at (object, "known.kernels"), &gpu->kernels_known, diags);
    ok &= ls_known_check (doc, ls_json_at (object, "known.collectives"), &gpu->collectives_known, diags);
  }
  if (ok)
    *ret_gpu = *gpu;
  else
    ls_gpu_clear (gpu);
  return ok;
}

bool
ls_gpu_read (const LsJsonDoc *doc, LsGpu *ret_gpu, LsDiagList *diags)
{
  LsGpu gpu = { 0 };
  bool ok = ls_fields_read_file (ls_gpu_fields, "gpu", doc, &gpu, diags);
  return finish (doc, ls_json_doc_root (doc), ok, &gpu, ret_gpu, diags);
}

bool
ls_gpu_read_part (const LsJsonDoc *doc, const cJSON *object, const char *as_name, const char *as_source,
                  LsGpu *ret_gpu, LsDiagList *diags)
{
  LsGpu gpu = { .name = g_strdup (as_name), .source = g_strdup (as_source) };
  bool ok = ls_fields_read (ls_gpu_fields, doc, object, &gpu, NULL, diags);
  return finish (doc, object, ok, &gpu, ret_gpu, diags);
}

bool
ls_gpu_load (const char *name, LsGpu *ret_gpu, LsDiagList *diags)
{
  g_autoptr (LsJsonDoc) doc = ls_data_load (LS_DATA_GPUS, name, diags);
  return doc && ls_gpu_read (doc, ret_gpu, diags);
}
