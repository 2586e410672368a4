/* data/machines/read_gpu.c — topologies/gpu/ read. */
#include "data/machines/machines.h"

#include "data/datadir.h"

#define PEAK(dtype) LS_FIELD_FLOPS, (dtype) * sizeof (double), .above = true, .default_text = "not supported"

static const LsField peak_fields[] = {
  { "fp32", PEAK (LS_DTYPE_FP32), .meaning = "dense matrix rate" },
  { "tf32", PEAK (LS_DTYPE_TF32), .meaning = "dense matrix rate" },
  { "fp16", PEAK (LS_DTYPE_FP16), .meaning = "dense matrix rate" },
  { "bf16", PEAK (LS_DTYPE_BF16), .meaning = "dense matrix rate" },
  { "fp8", PEAK (LS_DTYPE_FP8), .meaning = "dense matrix rate" },
  { "nvfp4", PEAK (LS_DTYPE_NVFP4), .meaning = "dense matrix rate" },
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

#define WATTS(key_)                                                                                          \
#key_, LS_FIELD_DOUBLE, offsetof(LsGpuPower, key_), .required = true, .above = true, .max = 1e5

static const LsField power_fields[] = {
  { WATTS (computing), .meaning = "kernels run" },
  { WATTS (communicating), .meaning = "collectives, copies and transfers run, and no kernels" },
  { WATTS (idle), .meaning = "a process holds it, and waits" },
  { WATTS (free), .meaning = "no process holds it" },
  { NULL },
};

#define OF_GPU(key_, kind_, member) key_, kind_, offsetof (LsGpu, member)
const LsField ls_gpu_fields[] = {
  LS_FIELDS_HEADER (LsGpu),
  { OF_GPU ("peak_flops", LS_FIELD_OBJECT, peak_flops), .required = true, .fields = peak_fields,
    .meaning = "peak rates by number format, without sparsity" },
  { OF_GPU ("vector_flops", LS_FIELD_FLOPS, vector_flops), .required = true, .above = true,
    .meaning = "fp32 rate outside the matrix units" },
  { OF_GPU ("hbm_bandwidth", LS_FIELD_RATE, hbm_bytes_per_s), .required = true, .above = true,
    .meaning = "of the data sheet" },
  { OF_GPU ("hbm_efficiency", LS_FIELD_DOUBLE, hbm_efficiency), .required = true, .above = true, .max = 1,
    .meaning = "share of it that kernels together can reach" },
  { OF_GPU ("power_limited", LS_FIELD_FLOPS, power_limited_flops), .above = true, .default_text = "no limit",
    .meaning = "16-bit rate that long matrix products keep under a power limit below that of the "
               "calibration" },
  { OF_GPU ("clock_spread", LS_FIELD_DOUBLE, clock_spread), .max = 0.2, .default_text = "0",
    .meaning = "standard deviation of the rate of matrix products among such chips: a job waits for its "
               "slowest" },
  { OF_GPU ("persistent_gemms", LS_FIELD_BOOL, persistent_gemms), .default_text = "false",
    .meaning
    = "GEMMs launch a block for each SM: what finds none together with communication runs in a second "
      "wave" },
  { OF_GPU ("mxfp8", LS_FIELD_BOOL, has_mxfp8), .default_text = "false",
    .meaning = "its matrix units take fp8 with a scale for each 32 values (fp8_recipe mxfp8)" },
  { OF_GPU ("lacks_flash", LS_FIELD_BOOL, lacks_flash), .default_text = "false",
    .meaning = "FlashAttention-2 and cuDNN's fused attention do not run on it: jobs of launch files compute "
               "attention in parts" },
  { OF_GPU ("product", LS_FIELD_STRING, product), .default_text = "not known",
    .meaning = "as its driver calls it, which programs read (lockstep capture)" },
  { OF_GPU ("capability", LS_FIELD_STRING, capability), .default_text = "not known, as of other vendors",
    .meaning = "compute capability of NVIDIA's GPUs, \"9.0\": which kernels run on it (lockstep capture)" },
  { OF_GPU ("hbm_size", LS_FIELD_BYTES, hbm_bytes), .required = true, .above = true,
    .meaning = "an \"80 GB\" HBM holds 80GiB" },
  { OF_GPU ("reserved", LS_FIELD_BYTES, reserved_bytes), .default_text = "0B",
    .meaning = "CUDA context and the like, not for tensors" },
  { OF_GPU ("blas_workspace", LS_FIELD_BYTES, blas_workspace_bytes), .default_text = "0B",
    .meaning = "memory that PyTorch gives cuBLAS for each stream" },
  { OF_GPU ("watts", LS_FIELD_DOUBLE, watts), .above = true, .max = 1e5, .default_text = "not known",
    .meaning = "power limit of the board" },
  { OF_GPU ("power", LS_FIELD_OBJECT, power), .fields = power_fields,
    .default_text = "not known: `watts` all the time", .meaning = "watts by what it does" },
  { OF_GPU ("usd_per_hour", LS_FIELD_DOUBLE, usd_per_hour), .above = true, .max = 1e6,
    .default_text = "not known", .meaning = "what one costs to rent" },
  { OF_GPU ("sm", LS_FIELD_UINT, n_sm), .required = true, .min = 1, .max = 65536,
    .meaning = "streaming multiprocessors or cores" },
  { OF_GPU ("calibration", LS_FIELD_STRING, calibration), .default_text = "plain roofline",
    .meaning = "name of a file in topologies/calib" },
  { OF_GPU ("nccl", LS_FIELD_STRING, nccl), .default_text = "nccl- and calibration, or else name",
    .meaning = "name of a file in topologies/calib" },
  { OF_GPU ("access", LS_FIELD_STRING, access), .default_text = "the bandwidth",
    .meaning = "name of a file in topologies/calib: rates of kernels by how they touch memory, for kernels "
               "as launched" },
  { OF_GPU ("cluster", LS_FIELD_STRING, cluster), .default_text = "not known",
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
