/* Pins what Megatron-Core copies around attention (strategies/kernels: megatron-core): Q where a rank has
 * several groups of several heads or a norm, K where it has a norm or is not rotated, V, and the gradients of
 * all three; by hand for 64 heads in 8 groups. With latent attention nothing is copied so. */
#include "ls_test.h"

#include <string.h>

#include "data/jobs/job_files.h"
#include "model/operators.h"

enum { SEQ = 2048 };

typedef struct {
  uint32_t heads, groups, tp, kv_lora;
  LsPosition position;
  const char *copied; /* in order: the forward, the backward */
  double bytes;       /* an element of [tokens, head_dim] of the rank */
  bool qk_norm;
  uint32_t cp, sequences;
} Copies;

static void
check_copies (const Copies *c, const LsRecipes *recipes)
{
  LsModel m = { .n_layers = 32,
                .hidden = 4096,
                .head_dim = 128,
                .ffn = 11008,
                .vocab = 103168,
                .seq = SEQ,
                .norm = LS_NORM_RMSNORM,
                .mlp = LS_MLP_SWIGLU };
  m.n_heads = c->heads, m.n_kv_heads = c->groups, m.latent.kv_lora = c->kv_lora, m.position = c->position;
  m.latent.q_lora = 0, m.latent.rope_dim = c->kv_lora > 0 ? 64 : 0, m.v_dim = c->kv_lora > 0 ? 128 : 0;
  m.attn.qk_norm = c->qk_norm;
  LsShard shard = { .tp = c->tp,
                    .cp = MAX (1, c->cp),
                    .micro_batch = MAX (1, c->sequences),
                    .seq = SEQ,
                    .attention = LS_ATTENTION_FLASH,
                    .dtype = LS_DTYPE_BF16,
                    .grad_dtype = LS_DTYPE_BF16,
                    .recipes = recipes };
  double tokens = (double) SEQ * shard.micro_batch / shard.cp;
  g_autoptr (GArray) operators = ls_operators_new ();
  g_autoptr (GString) copied = g_string_new (NULL);
  double bytes = 0;
  uint64_t saved = 0;
  ls_operators_layer (&m, &shard, 0, operators);
  for (guint i = 0; i < operators->len; i++) {
    const LsOperator *o = &g_array_index (operators, LsOperator, i);
    saved += o->kept.saved_bytes;
    for (uint32_t k = 0; k < (uint32_t) o->n_fwd + o->n_igrad; k++) {
      const LsKernel *kernel = k < o->n_fwd ? &o->fwd[k] : &o->igrad[k - o->n_fwd];
      if (!strstr (kernel->name, " cop") && !strstr (kernel->name, " concat"))
        continue;
      g_string_append_printf (copied, "%s; ", kernel->name);
      bytes += kernel->bytes / (tokens * 128);
    }
  }
  LS_CHECK_STR (copied->str, c->copied);
  LS_CHECK_DOUBLE (bytes, ==, c->bytes);
  /* copies take the place of what is kept: as much as without them */
  g_array_set_size (operators, 0);
  shard.recipes = NULL;
  ls_operators_layer (&m, &shard, 0, operators);
  for (guint i = 0; i < operators->len; i++)
    saved -= g_array_index (operators, LsOperator, i).kept.saved_bytes;
  LS_CHECK_INT ((int64_t) saved, ==, 0);
}

static void
check_each (const char *list, const Copies *copies, guint n)
{
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  g_autoptr (LsRecipes) recipes = ls_recipes_load (list, diags);
  for (guint i = 0; LS_CHECK (recipes != NULL) && i < n; i++)
    check_copies (&copies[i], recipes);
}

static void
megatron_copies_slices (void)
{
  static const Copies copies[] = {
    /* 4 bytes: read and written. Q 64, the gradients 64 + 8 + 8, V 8 */
    { 64, 8, 1, 0, LS_POSITION_ROPE, "q copy; qkv grad concat; v copy; ", 4 * (64 + 80 + 8) },
    /* one group a rank: Q is a view */
    { 64, 8, 8, 0, LS_POSITION_ROPE, "qkv grad concat; v copy; ", 4 * (10 + 1) },
    { 32, 32, 1, 0, LS_POSITION_ROPE, "qkv grad concat; v copy; ", 4 * (96 + 32) },
    { 32, 32, 1, 0, LS_POSITION_LEARNED, "", 0 }, /* attention takes slices of one tensor */
    { 64, 64, 1, 512, LS_POSITION_ROPE, "", 0 },
    { 64, 1, 1, 512, LS_POSITION_ROPE, "", 0 },
    /* norms take no slices */
    { 64, 8, 1, 0, LS_POSITION_ROPE, "q copy; k copy; qkv grad concat; v copy; ", 4 * (64 + 8 + 80 + 8),
      true },
    { 64, 8, 8, 0, LS_POSITION_ROPE, "q copy; k copy; qkv grad concat; v copy; ", 4 * (8 + 1 + 10 + 1),
      true },
    { 32, 32, 1, 0, LS_POSITION_ROPE, "q copy; k copy; qkv grad concat; v copy; ", 4 * (32 + 32 + 96 + 32),
      true },
    /* keys that nothing has made anew */
    { 64, 8, 1, 0, LS_POSITION_NONE, "q copy; qkv grad concat; k copy; v copy; ", 4 * (64 + 80 + 8 + 8) },
    /* sequences that are cut over ranks; several of them */
    { 64, 8, 1, 0, LS_POSITION_ROPE, "q copy; v copy; qkv grad concat; ", 4 * (64 + 8 + 80), false, 2 },
    { 64, 8, 1, 0, LS_POSITION_ROPE, "q copy; qkv grad concat; v copy; ", 4 * (64 + 80 + 8), false, 1, 2 },
  };
  static const Copies none[] = { { 64, 8, 1, 0, LS_POSITION_ROPE, "", 0 },
                                 { 64, 8, 1, 0, LS_POSITION_ROPE, "", 0, false, 2 },
                                 { 32, 32, 1, 0, LS_POSITION_ROPE, "", 0 },
                                 /* it is not for heads with norms */
                                 { 64, 8, 1, 0, LS_POSITION_ROPE, "q copy; k copy; qkv grad concat; v copy; ",
                                   4 * (64 + 8 + 80 + 8), true } };
  check_each ("megatron-core", copies, G_N_ELEMENTS (copies));
  check_each ("megatron-core-2024", copies, G_N_ELEMENTS (copies));
  check_each ("megatron-core-op-fuser+megatron-core-te-loss", copies, G_N_ELEMENTS (copies));
  check_each ("megatron-core-fused-rope", none, G_N_ELEMENTS (none));
  check_each ("megatron-core-op-fuser+megatron-core-fused-rope", none, G_N_ELEMENTS (none));
}

/* Pins: what FlashAttention-2 wants besides: several sequences first, the context back. */
static void
flash_attention_2_wants_sequences_first (void)
{
  static const Copies copies[] = {
    { 64, 8, 1, 0, LS_POSITION_ROPE, "q copy; qkv grad concat; v copy; ", 4 * (64 + 80 + 8) },
    { 64, 8, 1, 0, LS_POSITION_ROPE, "q copy; qkv grad concat; v copy; qkv transpose copies; context copy; ",
      4 * (64 + 80 + 8 + 80 + 64), false, 1, 2 },
    { 32, 32, 1, 0, LS_POSITION_LEARNED, "qkv copy; qkv grad copy; ", 4 * (96 + 96) },
    { 32, 32, 1, 0, LS_POSITION_LEARNED, "qkv copy; context copy; qkv grad copy; ", 4 * (96 + 32 + 96), false,
      1, 2 },
  };
  check_each ("megatron-core-fa2", copies, G_N_ELEMENTS (copies));
  check_each ("megatron-core-fa2+megatron-core-2024", copies, G_N_ELEMENTS (copies));
}

LS_TEST_SUITE (LS_TEST (megatron_copies_slices), LS_TEST (flash_attention_2_wants_sequences_first))
