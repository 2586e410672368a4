/* ask/proposals_kernels.c — single changes to a job's kernels and number formats. */
#include "ask/whatif.h"

#include "compute/measured.h"
#include "data/jobs/job_files.h"

void
propose_attention (Proposals *p)
{
  if (p->s->attention != LS_ATTENTION_FLASH)
    propose_one (p, "attention", "flash");
}

void
propose_attention_kernels (Proposals *p)
{
  const LsCalibration *known = &p->r->hardware->calibration;
  const LsEnumName *names = ls_field_find (ls_strategy_fields, "attention_kernel")->names;
  for (; p->s->attention == LS_ATTENTION_FLASH && names->name; names++)
    if (names->value != p->s->attention_kernel
        && ls_calibration_has_attention (known, (LsAttentionKernel) names->value))
      propose_one (p, "attention-kernel", names->name);
}

void
propose_kernels (Proposals *p)
{
  const GPtrArray *lists = ls_recipes_all ();
  for (guint i = 0; p->s->recipes && i < lists->len; i++) {
    const LsRecipes *list = lists->pdata[i];
    if (g_strcmp0 (list->variant_of, p->s->recipes->name) == 0 && ls_recipes_fit_alone (list, &p->r->model))
      propose_one (p, "kernels", list->name);
  }
}

void
propose_dtypes (Proposals *p)
{
  const LsGpu *gpu = &p->r->cluster->spec.gpu;
  const LsDtype tried[] = { LS_DTYPE_BF16, LS_DTYPE_FP16, LS_DTYPE_FP8, LS_DTYPE_NVFP4 };
  for (guint i = 0; i < G_N_ELEMENTS (tried); i++)
    if ((int) tried[i] != p->s->dtype && gpu->peak_flops[tried[i]] > 0)
      propose_one (p, "dtype", ls_dtype_name (tried[i]));
}

void
propose_grad_dtypes (Proposals *p)
{
  const LsDtype tried[] = { LS_DTYPE_BF16, LS_DTYPE_FP32 };
  for (guint i = 0; i < G_N_ELEMENTS (tried); i++)
    if ((int) tried[i] != p->s->grad_dtype)
      propose_one (p, "grad-dtype", ls_dtype_name (tried[i]));
}

void
propose_fp8 (Proposals *p)
{
  if (p->s->dtype != LS_DTYPE_FP8)
    return;
  propose_names (p, "fp8_recipe", p->s->fp8_recipe, 0);
  propose_one (p, "fp8-params", p->s->fp8_params ? "0" : "1");
}

void
propose_grad_fusion (Proposals *p)
{
  if (p->s->grad_apart)
    propose_one (p, "grad-apart", "0");
  else if (p->s->grad_dtype != LS_DTYPE_FP32)
    propose_one (p, "grad-fusion", p->s->grad_fusion ? "0" : "1");
}
