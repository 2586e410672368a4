#include "sweep/family.h"

#include <string.h>

char *
ls_family_of_id (const char *id)
{
  static const char *const two_part[] = { "sc21-t1", "sc21-t2", "vtrain-multi", "vtrain-single" };
  for (guint i = 0; i < G_N_ELEMENTS (two_part); i++)
    if (g_str_has_prefix (id, two_part[i]))
      return g_strdup (two_part[i]);

  size_t n = 0;
  while (g_ascii_isalpha (id[n]))
    n++;
  return n > 0 ? g_strndup (id, n) : g_strdup ("other");
}

bool
ls_family_sets_knobs (const char *family)
{
  static const char *const known[] = { "bloom",   "internevo", "korth",   "maxtext", "mpt",          "mtnlg",         "sc21-t1",
                                       "sc21-t2", "simumax",   "titan",   "zb",      "vtrain-multi", "vtrain-single", NULL };
  return g_strv_contains (known, family);
}

/* Whose code it ran, from the latest to what is furthest from it. */
typedef enum {
  CODE_OTHER,              /* Megatron-Core too                                     */
  CODE_MEGATRON,           /* Megatron-LM of 2022 and 2023                          */
  CODE_MEGATRON_2021,      /* Narayanan et al.                                      */
  CODE_MEGATRON_DEEPSPEED, /* which branched off then                               */
  CODE_DEEPSPEED_PIPE,     /* that, with DeepSpeed's pipeline and its bf16 optimizer */
} Code;

static Code
code_of (const char *family)
{
  static const struct {
    const char *family;
    Code code;
  } codes[] = {
    { "bloom", CODE_DEEPSPEED_PIPE },
    { "korth", CODE_MEGATRON },
    { "mtnlg", CODE_DEEPSPEED_PIPE },
    { "sc21-t1", CODE_MEGATRON_2021 },
    { "sc21-t2", CODE_MEGATRON_2021 },
    { "vtrain-multi", CODE_MEGATRON_DEEPSPEED },
    { "vtrain-single", CODE_MEGATRON_DEEPSPEED },
    { "zb", CODE_MEGATRON },
  };
  for (guint i = 0; i < G_N_ELEMENTS (codes); i++)
    if (strcmp (codes[i].family, family) == 0)
      return codes[i].code;
  return CODE_OTHER;
}

LsSoftware
ls_family_software (const char *family, LsSoftware said)
{
  if (code_of (family) >= CODE_MEGATRON_DEEPSPEED)
    return LS_SOFTWARE_OTHER;
  return strcmp (family, "sc21-t1") == 0 ? LS_SOFTWARE_MEGATRON : said;
}

bool
ls_family_tp_async (const char *family)
{
  return code_of (family) < CODE_MEGATRON_2021 && strcmp (family, "titan") != 0;
}

bool
ls_family_apex_norm (const char *family)
{
  return code_of (family) >= CODE_MEGATRON_2021;
}

bool
ls_family_split_bias_dropout (const char *family)
{
  return strcmp (family, "zb") == 0;
}

bool
ls_family_batch_sync (const char *family)
{
  return code_of (family) != CODE_OTHER;
}

bool
ls_family_grad_fusion (const char *family)
{
  return strcmp (family, "zb") == 0;
}

int
ls_family_attention (const char *family, int column)
{
  return strcmp (family, "zb") == 0 ? LS_ATTENTION_UNFUSED : column;
}

int
ls_family_p2p (const char *family, int column)
{
  bool is_megatron = strcmp (family, "korth") == 0 || g_str_has_prefix (family, "vtrain-");
  if (column != LS_P2P_BATCHED)
    return column;
  return code_of (family) == CODE_DEEPSPEED_PIPE ? LS_P2P_DEEPSPEED : is_megatron ? LS_P2P_SCATTER_GATHER : column;
}

int
ls_family_dp_kind (const char *family, int column)
{
  return code_of (family) == CODE_DEEPSPEED_PIPE ? LS_DP_DEEPSPEED : column;
}

uint32_t
ls_family_zero_stage (const char *family, uint32_t column)
{
  return code_of (family) == CODE_DEEPSPEED_PIPE ? 1 : column;
}

bool
ls_family_launch_blocking (const char *family)
{
  return strcmp (family, "bloom") == 0;
}

int
ls_family_cp_kind (const char *family)
{
  return strcmp (family, "simumax") == 0 ? LS_CP_ULYSSES : LS_CP_RING;
}

bool
ls_family_wgrad_placeholders (const char *family)
{
  return strcmp (family, "simumax") == 0;
}

int
ls_family_backward_prefetch (const char *family)
{
  return strcmp (family, "mpt") == 0 ? LS_PREFETCH_POST : LS_PREFETCH_PRE;
}

bool
ls_family_collective_lists (const char *family)
{
  return strcmp (family, "sc21-t2") == 0;
}

/* "mpt-h100_80gb-13b-s2048-..." */
static int
mpt_attention_kernel (const char *id, uint32_t n_gpus)
{
  g_auto (GStrv) parts = g_strsplit (id, "-", 4);
  bool is_sweep = n_gpus >= 128 && g_strv_length (parts) == 4 && g_str_has_prefix (parts[1], "h100");
  bool is_triton = !is_sweep || strcmp (parts[2], "13b") == 0 || strcmp (parts[2], "30b") == 0;
  return is_triton ? LS_ATTENTION_KERNEL_TRITON : LS_ATTENTION_KERNEL_FA2;
}

int
ls_family_attention_kernel (const char *id, uint32_t n_gpus)
{
  g_autofree char *family = ls_family_of_id (id);
  if (strcmp (family, "mpt") == 0)
    return mpt_attention_kernel (id, n_gpus);
  if (strcmp (family, "titan") == 0)
    return LS_ATTENTION_KERNEL_FA2;
  return strcmp (family, "internevo") == 0 ? LS_ATTENTION_KERNEL_FA1 : LS_ATTENTION_KERNEL_AUTO;
}

int
ls_family_qkv_layout (const char *id, uint32_t n_gpus)
{
  g_autofree char *family = ls_family_of_id (id);
  if (strcmp (family, "mpt") != 0)
    return LS_QKV_JOINT;
  return mpt_attention_kernel (id, n_gpus) == LS_ATTENTION_KERNEL_FA2 ? LS_QKV_UNPADDED : LS_QKV_SPLIT;
}

int
ls_family_loss (const char *family)
{
  return strcmp (family, "mpt") == 0 ? LS_LOSS_FUSED : LS_LOSS_PARALLEL;
}

uint32_t
ls_family_train_metrics (const char *family)
{
  return strcmp (family, "mpt") == 0 ? 2 : 0;
}

bool
ls_family_recompute_early_stop (const char *id)
{
  return g_str_has_prefix (id, "mpt-") && !g_str_has_prefix (id, "mpt-a100_40gb");
}

bool
ls_family_grad_norm (const char *id, const char *schedule)
{
  static const char *const validated_later[] = { "zb-1p", "zb-2p", NULL };
  g_autofree char *family = ls_family_of_id (id);
  return strcmp (family, "zb") != 0 || g_str_has_suffix (id, "-sync") || !schedule
         || !g_strv_contains (validated_later, schedule);
}

/* MaxText's decoder_block "llama2" with mlp_activations [silu, linear] and head_dim 128 (base.yml). */
static void
complete_maxtext (LsModel *m)
{
  m->mlp = LS_MLP_SWIGLU;
  m->head_dim = 128;
}

void
ls_family_complete_model (const char *family, LsModel *m)
{
  if (strcmp (family, "maxtext") == 0)
    complete_maxtext (m);
  if (strcmp (family, "zb") == 0)
    m->vocab = 32000;
  gboolean is_gpt = m->mlp == LS_MLP_GELU;
  m->norm = m->mlp == LS_MLP_SWIGLU ? LS_NORM_RMSNORM : LS_NORM_LAYERNORM;
  m->position = is_gpt ? LS_POSITION_LEARNED : LS_POSITION_ROPE;
  if (strcmp (family, "bloom") == 0)
    m->position = LS_POSITION_ALIBI;
  m->linear_bias = is_gpt;
  m->qkv_bias = false;
  m->tied_embeddings = is_gpt;
  m->dropout = is_gpt && code_of (family) != CODE_OTHER;
}

void
ls_family_complete_strategy (const char *id, const char *family, LsStrategy *s)
{
  s->tp_async = ls_family_tp_async (family);
  s->apex_norm = ls_family_apex_norm (family);
  s->split_bias_dropout = ls_family_split_bias_dropout (family);
  s->batch_sync = ls_family_batch_sync (family);
  s->grad_fusion = ls_family_grad_fusion (family);
  s->attention = ls_family_attention (family, s->attention);
  s->p2p = ls_family_p2p (family, s->p2p);
  s->dp_kind = ls_family_dp_kind (family, s->dp_kind);
  s->zero_stage = ls_family_zero_stage (family, s->zero_stage);
  s->launch_blocking = ls_family_launch_blocking (family);
  s->backward_prefetch = ls_family_backward_prefetch (family);
  s->collective_lists = s->zero_stage == 3 && ls_family_collective_lists (family);
  s->grad_norm = ls_family_grad_norm (id, s->schedule);
  s->cp_kind = ls_family_cp_kind (family);
  s->wgrad_placeholders = ls_family_wgrad_placeholders (family);
  s->attention_kernel = ls_family_attention_kernel (id, s->gpus);
  s->recompute_early_stop = s->recompute == LS_RECOMPUTE_FULL && ls_family_recompute_early_stop (id);
  s->qkv_layout = ls_family_qkv_layout (id, s->gpus);
  s->loss = ls_family_loss (family);
  s->train_metrics = ls_family_train_metrics (family);
}
