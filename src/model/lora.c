#include "model/lora.h"

#include <string.h>

#include "model/mixer.h"
#include "model/operators_build.h"

/* --- adapters on one rank, and what is left of operators whose weights are frozen (model/lora.h) --- */

static const LsLinearNames a_names = LS_LINEAR ("lora-a", 0);
static const LsLinearNames b_names = LS_LINEAR ("lora-b", 0);

/* The input of all modules is one, kept once unless a list says otherwise; each adds its gradient to that of
 * the frozen layer. */
static void
append_a (GArray *operators, const LsCut *cut, const LsAdapted *what)
{
  uint64_t rank = cut->shard->lora.rank;
  LsCut own = *cut;
  LsTpMode tp = !what->cuts_in ? LS_TP_NONE : what->is_inside ? LS_TP_REDUCE : LS_TP_ROW;
  own.tokens = what->cuts_in || what->is_inside ? cut->tokens : cut->local_tokens;
  LsOperator *op = ls_operator_append (operators, a_names.fwd, tp);
  bool keeps_each = false; /* each module keeps a tensor of its own */
  uint64_t kept = 0;
  for (uint32_t i = 0; i < what->n; i++) {
    const LsAdapterPart part = { op->n_fwd, op->n_igrad, own.tokens, what->in };
    uint64_t saved = 0;
    ls_operator_linear (op, &own, &a_names, cut->act, what->in, rank);
    ls_operator_passes (op, cut, own.tokens, what->in, NULL, 0, "lora-grad-add", 3);
    ls_operator_weight (op, what->cuts_in ? LS_TENSOR_COLUMNS : LS_TENSOR_WHOLE, rank, what->in, 1);
    keeps_each = ls_operator_adapter_as_launched (op, cut, LS_RECIPE_LORA_A, &part, &saved);
    kept += saved;
  }
  if (keeps_each)
    op->kept.saved_bytes = op->kept.input_bytes = kept;
  else if (what->is_input_kept)
    op->kept.saved_bytes = op->kept.input_bytes = 0;
  op->params.is_adapter = true;
  op->params.is_replicated = !what->cuts_in;
  op->params.has_whole_grad = what->is_inside;
  if (tp == LS_TP_ROW)
    op->comm.tp_bytes = cut->tokens * rank * cut->elt;
  if (tp == LS_TP_REDUCE)
    op->comm.reduce_bytes = cut->tokens * rank * cut->elt;
}

static void
append_b (GArray *operators, const LsCut *cut, const LsAdapted *what)
{
  uint64_t rank = cut->shard->lora.rank;
  LsCut own = *cut;
  LsTpMode tp = what->cuts_out && !what->is_inside ? LS_TP_COLUMN : LS_TP_NONE;
  own.tokens = what->cuts_out || what->is_inside ? cut->tokens : cut->local_tokens;
  LsOperator *op = ls_operator_append (operators, b_names.fwd, tp);
  uint64_t kept = 0;
  for (uint32_t i = 0; i < what->n; i++) {
    uint64_t out = what->out[i], saved = 0;
    const LsAdapterPart part = { op->n_fwd, op->n_igrad, own.tokens, out };
    ls_operator_passes (op, cut, own.tokens, out, NULL, 0, "lora-scale-bwd", 2);
    ls_operator_linear (op, &own, &b_names, cut->act, rank, out);
    ls_operator_passes (op, cut, own.tokens, out, "lora-scale", 2, NULL, 0);
    ls_operator_passes (op, cut, own.tokens, out, "lora-add", 3, NULL, 0);
    ls_operator_weight (op, what->cuts_out ? LS_TENSOR_ROWS : LS_TENSOR_WHOLE, out, rank, 1);
    kept += ls_operator_adapter_as_launched (op, cut, LS_RECIPE_LORA_B, &part, &saved) ? saved
                                                                                       : op->kept.input_bytes;
  }
  op->kept.saved_bytes = op->kept.input_bytes = kept;
  op->params.is_adapter = true;
  op->params.is_replicated = !what->cuts_out;
  op->params.has_whole_grad = what->is_inside;
  if (tp == LS_TP_COLUMN)
    op->comm.tp_bytes = cut->tokens * rank * what->n * cut->elt;
}

void
ls_operators_adapter (GArray *operators, const LsCut *cut, const LsAdapted *what)
{
  if (what->n == 0)
    return;
  append_a (operators, cut, what);
  append_b (operators, cut, what);
}

void
ls_operators_adapter_of (GArray *operators, const LsCut *cut, LsLoraModule module, LsAdapted what)
{
  what.n = cut->shard->lora.rank > 0 && cut->shard->lora.modules & module ? 1 : 0;
  ls_operators_adapter (operators, cut, &what);
}

/* Written in 16 bits before each use. */
static void
dequantise (LsOperator *op, const LsCut *cut)
{
  uint64_t numel = op->params.numel[0];
  LsKernel kernel = ls_kernel_stream ("nf4-dequant", LS_KERNEL_ELEMENTWISE, cut->act, 1, numel,
                                      (double) ls_nf4_bytes (numel) + cut->elt * (double) numel, 0);
  g_assert (op->n_fwd < LS_OPERATOR_MAX_KERNELS && op->n_igrad < LS_OPERATOR_MAX_KERNELS);
  memmove (&op->fwd[1], &op->fwd[0], op->n_fwd++ * sizeof *op->fwd);
  memmove (&op->igrad[1], &op->igrad[0], op->n_igrad++ * sizeof *op->igrad);
  op->fwd[0] = op->igrad[0] = kernel;
  op->params.is_nf4 = true;
}

void
ls_operators_freeze (GArray *operators, guint from, const LsCut *cut)
{
  for (guint i = from; cut->shard->lora.rank > 0 && i < operators->len; i++) {
    LsOperator *op = &g_array_index (operators, LsOperator, i);
    if (op->params.is_adapter)
      continue;
    op->params.is_frozen = op->params.n > 0;
    op->n_wgrad = 0;
    op->kept.saved_bytes -= op->kept.input_bytes;
    op->kept.input_bytes = 0;
    if (cut->shard->lora.is_nf4 && (op->n_products > 0 || op->params.is_linear))
      dequantise (op, cut);
  }
}

/* --- which there are, and how wide ---------------------------------------------------------- */

static const struct {
  const char *name;
  LsLoraModule module;
} names[] = {
  { "q", LS_LORA_Q },           { "k", LS_LORA_K },       { "v", LS_LORA_V },       { "o", LS_LORA_O },
  { "gate", LS_LORA_GATE },     { "up", LS_LORA_UP },     { "down", LS_LORA_DOWN }, { "in", LS_LORA_IN },
  { "select", LS_LORA_SELECT }, { "step", LS_LORA_STEP }, { "out", LS_LORA_OUT },
};

/* Linear layers into a mixer, in keys, inner widths and heads, as far as they make up the whole way in: the
 * gate of kda may be of low rank instead. The first of a mixer are those of a model that does not say how
 * many there are. Of others there is one. */
static const struct {
  LsMixerKind mixer;
  struct {
    LsLoraModule module;
    uint8_t keys, inners, heads;
  } parts[LS_LORA_MAX_PRODUCTS];
} ways_in[] = {
#define EACH_BY_ITSELF                                                                                       \
  {                                                                                                          \
    { LS_LORA_Q, 1, 0, 0 }, { LS_LORA_K, 1, 0, 0 }, { LS_LORA_V, 0, 1, 0 }, { LS_LORA_IN, 0, 1, 0 },         \
        { LS_LORA_IN, 0, 0, 1 }, { LS_LORA_IN, 0, 0, 1 },                                                    \
  }
  { LS_MIXER_DELTA, { { LS_LORA_IN, 2, 2, 0 }, { LS_LORA_IN, 0, 0, 2 } } },
  { LS_MIXER_DELTA,
    { { LS_LORA_IN, 2, 1, 0 }, { LS_LORA_IN, 0, 1, 0 }, { LS_LORA_IN, 0, 0, 1 }, { LS_LORA_IN, 0, 0, 1 } } },
  { LS_MIXER_DELTA, EACH_BY_ITSELF },
#define Q_K_V                                                                                                \
  { LS_LORA_Q, 1, 0, 0 }, { LS_LORA_K, 1, 0, 0 },                                                            \
  {                                                                                                          \
    LS_LORA_V, 0, 1, 0                                                                                       \
  }
  { LS_MIXER_DELTA, { Q_K_V, { LS_LORA_IN, 0, 0, 1 }, { LS_LORA_IN, 0, 0, 1 } } }, /* ungated */
  { LS_MIXER_DELTA, { Q_K_V, { LS_LORA_IN, 0, 0, 1 } } },                          /* and undecayed */
  { LS_MIXER_DELTA, { Q_K_V, { LS_LORA_IN, 0, 0, 1 }, { LS_LORA_IN, 0, 1, 0 } } }, /* undecayed alone */
  { LS_MIXER_LINEAR, { { LS_LORA_IN, 2, 1, 0 }, { LS_LORA_IN, 0, 1, 0 } } },
  { LS_MIXER_LINEAR, { Q_K_V, { LS_LORA_IN, 0, 1, 0 } } },
  { LS_MIXER_LINEAR, { Q_K_V } },
#undef Q_K_V
  { LS_MIXER_KDA,
    { { LS_LORA_Q, 1, 0, 0 },
      { LS_LORA_K, 1, 0, 0 },
      { LS_LORA_V, 0, 1, 0 },
      { LS_LORA_IN, 0, 0, 1 },
      { LS_LORA_IN, 0, 1, 0 } } },
  { LS_MIXER_RGLRU, { { LS_LORA_IN, 0, 1, 0 }, { LS_LORA_IN, 0, 1, 0 } } },
  { LS_MIXER_MLSTM, EACH_BY_ITSELF },
#undef EACH_BY_ITSELF
};

/* Of one entry; 0: it is not this model's. */
static uint32_t
products_of (const LsModel *m, guint way, LsLoraProduct *products)
{
  uint64_t keys = (uint64_t) m->mixer.groups * m->mixer.state, width = ls_mixer_in_width (m), sum = 0;
  uint32_t n = 0;
  if (ways_in[way].mixer != m->mixer.kind)
    return 0;
  for (; n < LS_LORA_MAX_PRODUCTS && sum < width; n++) {
    products[n].module = ways_in[way].parts[n].module;
    products[n].columns = ways_in[way].parts[n].keys * keys
        + ways_in[way].parts[n].inners * ls_mixer_inner (m)
        + ways_in[way].parts[n].heads * (uint64_t) m->mixer.heads;
    sum += products[n].columns;
  }
  return sum == width && (m->mixer.products == 0 || m->mixer.products == n) ? n : 0;
}

uint32_t
ls_lora_products_in (const LsModel *m, LsLoraProduct ret_products[LS_LORA_MAX_PRODUCTS])
{
  uint32_t n = 0;
  for (guint i = 0; i < G_N_ELEMENTS (ways_in) && n == 0; i++)
    n = products_of (m, i, ret_products);
  if (n > 0 || m->mixer.kind == LS_MIXER_NONE || m->mixer.kind == LS_MIXER_PRODUCT)
    return n;
  ret_products[0] = (LsLoraProduct) { LS_LORA_IN, ls_mixer_in_width (m) };
  return 1;
}

LsLoraModule
ls_lora_way_out (const LsModel *m)
{
  bool is_o = m->mixer.kind == LS_MIXER_KDA || (m->mixer.kind == LS_MIXER_DELTA && m->mixer.products > 4)
      || m->mixer.undecayed || (m->mixer.kind == LS_MIXER_LINEAR && m->mixer.products > 2);
  return is_o ? LS_LORA_O : LS_LORA_OUT;
}

const char *
ls_lora_check_products (const LsModel *m)
{
  LsLoraProduct products[LS_LORA_MAX_PRODUCTS];
  return m->mixer.products == 0 || ls_lora_products_in (m, products) == m->mixer.products
      ? NULL
      : "expected it of mixers that are made of so many: delta of 2, 4 or 6, linear of 2 or 4, one fewer "
        "without a gate, and one without decays";
}

static uint32_t
module_named (const char *name)
{
  for (guint i = 0; i < G_N_ELEMENTS (names); i++)
    if (strcmp (names[i].name, name) == 0)
      return names[i].module;
  return 0;
}

static uint32_t
of_mixer (const LsModel *m)
{
  LsLoraProduct products[LS_LORA_MAX_PRODUCTS];
  uint32_t set = ls_lora_way_out (m) | (ls_mixer_selects (m) ? LS_LORA_SELECT | LS_LORA_STEP : 0);
  set |= ls_mixer_pairs (m).n > 0 ? LS_LORA_IN : 0;
  for (uint32_t i = ls_lora_products_in (m, products); i-- > 0;)
    set |= products[i].module;
  return set;
}

/* Experts have none; keys and values that are made of one latent have theirs together. */
static uint32_t
all_of (const LsModel *m)
{
  uint32_t mlp = m->moe.n_experts > 0 ? 0 : LS_LORA_MLP,
           attention = m->latent.kv_lora > 0 ? LS_LORA_ATTENTION & ~(uint32_t) LS_LORA_V : LS_LORA_ATTENTION;
  uint32_t first[LS_MAX_MODEL_KINDS], set = 0;
  for (uint32_t i = ls_model_first_of_kinds (m, first); i-- > 0;) {
    uint32_t kind = ls_model_layer_kind (m, first[i]);
    set |= ls_layer_has_attention (kind) ? attention : 0;
    set |= kind & LS_LAYER_NO_MLP ? 0 : mlp;
    set |= kind & LS_LAYER_MIXER ? of_mixer (m) : 0;
  }
  return ls_mlp_is_gated (m->mlp) ? set : set & ~(uint32_t) LS_LORA_GATE;
}

char *
ls_lora_words (uint32_t modules, const char *between)
{
  GString *text = g_string_new (NULL);
  for (guint i = 0; i < G_N_ELEMENTS (names); i++)
    if (modules & names[i].module)
      g_string_append_printf (text, "%s%s", text->len > 0 ? between : "", names[i].name);
  return g_string_free (text, FALSE);
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
