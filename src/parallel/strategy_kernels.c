/* What is legal of the kernels around attention and loss, and of what ends recomputation. */
#include "parallel/strategy_rules.h"

/* Their bytes are those of 16 bits; a ring moves what one matrix product takes. */
static void
check_recipes (const LsStrategy *s, const LsModel *m, LsDiagList *diags)
{
  bool has_ring = s->tp > 1 && s->sp && s->tp_overlap && s->tp_overlap_kind == LS_TP_OVERLAP_RING;
  if (s->recipes && (s->dtype == LS_DTYPE_FP32 || s->dtype == LS_DTYPE_TF32))
    conflict (diags, "/kernels", "expected bf16, fp16 or fp8 with listed kernels; got %s", ls_dtype_name ((LsDtype) s->dtype));
  if (has_ring && ls_recipes_are_one_by_one (s->recipes, m))
    conflict (diags, "/kernels", "expected one matrix product for Q, K and V, and for gate and up, with tp_overlap ring; %s has one for each",
              s->kernels);
}

void
check_kernels (const LsStrategy *s, const LsModel *m, LsDiagList *diags)
{
  bool is_plain_flash = s->attention == LS_ATTENTION_FLASH && s->cp == 1 && m->kv_lora == 0;
  if (s->qkv_layout != LS_QKV_JOINT && !is_plain_flash)
    conflict (diags, "/qkv_layout", "expected joint but for flash attention over whole sequences, without latent attention; got %s",
              s->qkv_layout == LS_QKV_SPLIT ? "split" : "unpadded");
  if (s->loss == LS_LOSS_FUSED && s->tp > 1)
    conflict (diags, "/loss", "expected parallel with tp %u, which cuts the vocabulary; got fused", s->tp);
  check_recipes (s, m, diags);
  if (s->recompute_early_stop && s->recompute != LS_RECOMPUTE_FULL)
    conflict (diags, "/recompute_early_stop", "expected recompute full with it; got %s", ls_recompute_name (s->recompute));
}
