/* What a job asks of a machine, and of the accelerators in it. */
#include <lockstep/error.h>

#include "cluster/route.h"
#include "compute/measured.h"
#include "data/jobs/job_files.h"
#include "data/machines/machines.h"
#include "job/hardware.h"

/* Of 16 bits if there is one, as training wants; LS_N_DTYPES: none. */
static LsDtype
usual_dtype (const LsGpu *gpu)
{
  static const LsDtype order[] = { LS_DTYPE_BF16, LS_DTYPE_FP16, LS_DTYPE_FP32 };
  for (guint i = 0; i < G_N_ELEMENTS (order); i++)
    if (gpu->peak_flops[order[i]] > 0)
      return order[i];
  return LS_N_DTYPES;
}

gboolean
ls_hardware_check_dtype (const LsGpu *gpu, LsDtype dtype, GError **error)
{
  if (gpu->peak_flops[dtype] > 0)
    return TRUE;
  LsDtype usual = usual_dtype (gpu);
  g_autofree char *hint = usual < LS_N_DTYPES
      ? g_strdup_printf ("\nnote: it has one for --dtype %s", ls_dtype_name (usual))
      : g_strdup ("");
  g_set_error (error, LS_ERROR, LS_ERROR_CONFLICT, "--dtype %s: %s gives no peak_flops for it%s",
               ls_dtype_name (dtype), gpu->name, hint);
  return FALSE;
}

static gboolean
check_formats_of (const LsGpu *gpu, const LsStrategy *s, GError **error)
{
  if (!ls_hardware_check_dtype (gpu, (LsDtype) s->dtype, error))
    return FALSE;
  bool has_mxfp8 = ls_formats_have (&s->module_formats, LS_FORMAT_MXFP8),
       is_mxfp8 = s->dtype == LS_DTYPE_FP8 && s->fp8_recipe == LS_FP8_MXFP8;
  if (ls_formats_have (&s->module_formats, LS_FORMAT_NVFP4)
      && !ls_hardware_check_dtype (gpu, LS_DTYPE_NVFP4, error))
    return FALSE;
  if ((!is_mxfp8 && !has_mxfp8) || gpu->has_mxfp8)
    return TRUE;
  g_set_error (error, LS_ERROR, LS_ERROR_CONFLICT,
               "%s mxfp8: the matrix units of %s take no scale for each 32 values\n"
               "note: expected %s there",
               is_mxfp8 ? "--fp8-recipe" : "--module-formats", gpu->name,
               is_mxfp8 ? "delayed, current or blockwise" : "bf16, current or blockwise");
  return FALSE;
}

gboolean
ls_hardware_check_formats (const LsClusterSpec *spec, const LsStrategy *s, GError **error)
{
  for (uint32_t k = 0; k < ls_cluster_spec_n_kinds (spec); k++)
    if (!check_formats_of (&ls_cluster_spec_of_kind (spec, k)->gpu, s, error))
      return FALSE;
  return TRUE;
}

/* Of any kind of node. Hopper has it with scales of earlier steps alone (NVIDIA/TransformerEngine@d0067d0d,
 * attention/dot_product_attention/utils.py, get_attention_backend); what takes mxfp8 is no Hopper. */
static gboolean
check_fp8_attention (const LsHardware *h, const LsStrategy *s, GError **error)
{
  bool by_blocks = s->fp8_attention == LS_FP8_ATTENTION_MXFP8;
  LsAttentionKernel kernel = ls_cudnn_attention (LS_DTYPE_FP8, by_blocks);
  const char *word = ls_field_find (ls_strategy_fields, "fp8_attention")->names[s->fp8_attention].name;
  for (uint32_t k = 0; k < ls_cluster_spec_n_kinds (&h->spec) && s->fp8_attention != LS_FP8_ATTENTION_NONE;
       k++) {
    const LsGpu *gpu = &ls_cluster_spec_of_kind (&h->spec, k)->gpu;
    const LsCalibration *c = k == 0 ? &h->calibration : &h->calibration.others[k - 1];
    bool is_known = ls_calibration_has_attention (c, kernel),
         has_delayed = ls_calibration_has_attention (c, LS_ATTENTION_KERNEL_CUDNN_FP8),
         is_delayed = s->fp8_attention == LS_FP8_ATTENTION_DELAYED;
    if (is_known && (is_delayed || gpu->has_mxfp8))
      continue;
    g_set_error (error, LS_ERROR, LS_ERROR_CONFLICT, "--fp8-attention %s: %s %s\nnote: expected %s there",
                 word,
                 is_known ? "Transformer Engine has it from Blackwell on, not on"
                          : "no times of cuDNN's attention in fp8 are known on",
                 gpu->name, has_delayed ? "delayed or none" : "none");
    return FALSE;
  }
  return TRUE;
}

gboolean
ls_hardware_check_parts (const LsHardware *h, const LsCluster *cluster, const LsStrategy *s, GError **error)
{
  bool wants_drives = s->offload != LS_OFFLOAD_NONE && s->offload_to == LS_OFFLOAD_TO_NVME,
       wants_dispatch = s->dispatcher != LS_DISPATCHER_ALL_TO_ALL && s->ep > 1,
       is_hybrid = s->dispatcher == LS_DISPATCHER_HYBRIDEP;
  if (wants_drives && !ls_cluster_has_nvme (cluster)) {
    g_set_error (error, LS_ERROR, LS_ERROR_CONFLICT,
                 "--offload-to nvme: the nodes of %s have no drives\n"
                 "note: expected cpu there, or node.nvme in the cluster's file",
                 h->spec.name);
    return FALSE;
  }
  const LsDispatchFigures *figures = is_hybrid ? &h->nccl.hybrid_dispatch : &h->nccl.dispatch;
  if (wants_dispatch && figures->of_nvlink <= 0) {
    const char *key = is_hybrid ? ", or the key hybrid_dispatch in its NCCL file"
                                : ", or the key dispatch in its NCCL file";
    g_set_error (error, LS_ERROR, LS_ERROR_CONFLICT,
                 "--dispatcher %s: no figures of %s on %s are known\n"
                 "note: expected all-to-all there%s",
                 ls_dispatcher_name (s->dispatcher), is_hybrid ? "HybridEP" : "DeepEP", h->spec.gpu.name,
                 h->spec.interior == LS_INTERIOR_TORUS ? "" : key);
    return FALSE;
  }
  if (!check_fp8_attention (h, s, error))
    return FALSE;
  uint32_t max_ctas = s->tp_max_ctas | s->cp_max_ctas | s->ep_max_ctas | s->dp_max_ctas | s->pp_max_ctas;
  if (max_ctas > 0 && h->spec.interior == LS_INTERIOR_TORUS) {
    g_set_error (error, LS_ERROR, LS_ERROR_CONFLICT,
                 "--set tp_max_ctas and its like: a torus has no NCCL, whose thread blocks these are");
    return FALSE;
  }
  return TRUE;
}

gboolean
ls_hardware_check_alike (const LsClusterSpec *spec, const char *what, GError **error)
{
  if (!spec->others)
    return TRUE;
  g_set_error (error, LS_ERROR, LS_ERROR_UNSUPPORTED,
               "%s is for nodes of one kind; %s has some with %s and some with %s", what, spec->name,
               spec->gpu.name, ls_cluster_spec_of_kind (spec, 1)->gpu.name);
  return FALSE;
}

gboolean
ls_hardware_check_allocator (const LsClusterSpec *spec, const LsMemoryOptions *memory, GError **error)
{
  if (memory->allocator != LS_MEMORY_CACHING || spec->interior != LS_INTERIOR_TORUS)
    return TRUE;
  g_set_error_literal (error, LS_ERROR, LS_ERROR_CONFLICT,
                       "--memory-allocator caching: TPUs have no caching allocator of PyTorch: XLA places "
                       "buffers when it compiles");
  return FALSE;
}
