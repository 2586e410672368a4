/* What is legal of the kernels around attention and loss, and of what ends recomputation. */
#include "parallel/strategy_rules.h"

void
check_kernels (const LsStrategy *s, const LsModel *m, LsDiagList *diags)
{
  bool is_plain_flash = s->attention == LS_ATTENTION_FLASH && s->cp == 1 && m->kv_lora == 0;
  if (s->qkv_layout != LS_QKV_JOINT && !is_plain_flash)
    conflict (diags, "/qkv_layout", "expected joint but for flash attention over whole sequences, without latent attention; got %s",
              s->qkv_layout == LS_QKV_SPLIT ? "split" : "unpadded");
  if (s->loss == LS_LOSS_FUSED && s->tp > 1)
    conflict (diags, "/loss", "expected parallel with tp %u, which cuts the vocabulary; got fused", s->tp);
  if (s->recompute_early_stop && s->recompute != LS_RECOMPUTE_FULL)
    conflict (diags, "/recompute_early_stop", "expected recompute full with it; got %s", ls_recompute_name (s->recompute));
}
