#include "model/lora.h"

#include <string.h>

static const struct {
  const char *name;
  LsLoraModule module;
} names[] = {
  { "q", LS_LORA_Q },       { "k", LS_LORA_K },   { "v", LS_LORA_V },       { "o", LS_LORA_O },
  { "gate", LS_LORA_GATE }, { "up", LS_LORA_UP }, { "down", LS_LORA_DOWN },
};

static uint32_t
module_named (const char *name)
{
  for (guint i = 0; i < G_N_ELEMENTS (names); i++)
    if (strcmp (names[i].name, name) == 0)
      return names[i].module;
  return 0;
}

/* Experts have none. */
static uint32_t
all_of (const LsModel *m)
{
  uint32_t mlp = m->n_experts > 0 ? 0 : LS_LORA_MLP;
  return LS_LORA_ATTENTION | (ls_mlp_is_gated (m->mlp) ? mlp : mlp & ~(uint32_t) LS_LORA_GATE);
}

bool
ls_lora_modules (const LsModel *m, const char *text, uint32_t *ret_modules, char **ret_wrong)
{
  *ret_modules = all_of (m);
  if (!text || strcmp (text, "all-linear") == 0)
    return true;
  g_auto (GStrv) words = g_strsplit (text, ",", -1);
  uint32_t set = 0;
  for (guint i = 0; words[i]; i++) {
    uint32_t module = module_named (words[i]);
    if ((module & all_of (m)) == 0) {
      *ret_wrong = g_strdup (words[i]);
      return false;
    }
    set |= module;
  }
  *ret_modules = set;
  return true;
}

#define NF4_BITS 4.127

uint64_t
ls_nf4_bytes (uint64_t numel)
{
  return (uint64_t) ((double) numel * NF4_BITS / 8);
}

/* Of a layer: in and out of each module. */
static uint64_t
widths (const LsModel *all, uint32_t kind, uint32_t modules)
{
  LsModel own = ls_model_of_kind (all, kind), *m = &own;
  uint64_t h = m->hidden, q = (uint64_t) m->n_heads * m->head_dim,
           kv = (uint64_t) m->n_kv_heads * m->head_dim;
  uint64_t n = 0;
  n += modules & LS_LORA_Q ? h + q : 0;
  n += modules & LS_LORA_K ? h + kv : 0;
  n += modules & LS_LORA_V ? h + kv : 0;
  n += modules & LS_LORA_O ? q + h : 0;
  for (uint32_t mlp = LS_LORA_GATE; mlp <= LS_LORA_DOWN; mlp <<= 1)
    n += modules & mlp && !(kind & LS_LAYER_EXPERTS) ? h + m->ffn : 0;
  return n;
}

uint64_t
ls_lora_params (const LsModel *m, const LsLora *lora)
{
  uint64_t n = 0;
  for (uint32_t i = 0; lora->rank > 0 && i < m->n_layers; i++)
    n += lora->rank * widths (m, ls_model_layer_kind (m, i), lora->modules);
  return n;
}

double
ls_lora_flops_saved (const LsModel *m, const LsLora *lora, uint64_t vocab, uint32_t seq, double n_sequences)
{
  if (lora->rank == 0)
    return 0;
  double tokens = n_sequences * seq, frozen = (double) ls_model_linear_params (m, vocab);
  return tokens * (2 * frozen - 6 * (double) ls_lora_params (m, lora));
}
