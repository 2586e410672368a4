/* What is legal of the kernels around attention and loss. */
#include "strategy/strategy_rules.h"

/* Their bytes are those of 16 bits. */
static void
check_recipes (const LsStrategy *s, LsDiagList *diags)
{
  if (s->recipes && (s->dtype == LS_DTYPE_FP32 || s->dtype == LS_DTYPE_TF32))
    conflict (diags, "/kernels", "expected bf16, fp16, fp8 or nvfp4 with listed kernels; got %s",
              ls_dtype_name ((LsDtype) s->dtype));
}

static void
check_documents (const LsStrategy *s, const LsModel *m, LsDiagList *diags)
{
  if (!s->lengths)
    return;
  if (s->attention == LS_ATTENTION_UNFUSED)
    conflict (diags, "/lengths",
              "expected whole with unfused attention, which computes the scores of whole sequences and masks "
              "them; got \"%s\"",
              s->lengths);
  if (m->encoder_layers > 0 || m->index_heads > 0 || ls_model_is_compressed (m))
    unsupported (diags, "/lengths",
                 "several documents in a sequence with an encoder, with an indexer that chooses keys or with "
                 "compressed keys, are not modelled; expected whole, got \"%s\"",
                 s->lengths);
}

void
check_kernels (const LsStrategy *s, const LsModel *m, LsDiagList *diags)
{
  bool is_plain_flash = s->attention == LS_ATTENTION_FLASH && s->cp == 1 && !ls_model_has_latents (m);
  if (s->qkv_layout != LS_QKV_JOINT && !is_plain_flash)
    conflict (diags, "/qkv_layout",
              "expected joint but for flash attention over whole sequences, without latent attention; got %s",
              s->qkv_layout == LS_QKV_SPLIT ? "split" : "unpadded");
  if (s->loss_kernel == LS_LOSS_FUSED && s->tp > 1)
    conflict (diags, "/loss_kernel", "expected parallel with tp %u, which cuts the vocabulary; got fused",
              s->tp);
  check_recipes (s, diags);
  check_documents (s, m, diags);
}
