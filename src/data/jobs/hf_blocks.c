/* Layers of a config.json that differ in width one by one: lists of numbers, blocks that a search chose. */
#include <string.h>

#include "data/jobs/hf_family.h"

/* --- lists ---------------------------------------------------------------------------- */

#define MOST_LAYERS 65536

/* Each list, what it is of, and where it goes. */
#define LIST(of_, usual_)                                                                                    \
  {                                                                                                          \
    offsetof (HfConfig, layer_##of_), offsetof (HfConfig, usual_), offsetof (LsModel, layers.of_),           \
        offsetof (LsModel, layers.n_##of_)                                                                   \
  }

static const struct {
  size_t list, usual, model, n;
} lists[] = {
  LIST (heads, heads),           LIST (kv_heads, kv_heads), LIST (ffn, ffn),
  LIST (window, sliding_window), LIST (experts, experts),   LIST (top_k, top_k),
  LIST (expert_ffn, expert_ffn),
};

HfWidths *
hf_widths_of (HfConfig *c, size_t offset)
{
  for (guint i = 0; i < G_N_ELEMENTS (lists); i++)
    if (lists[i].usual == offset)
      return &G_STRUCT_MEMBER (HfWidths, c, lists[i].list);
  return NULL;
}

void
hf_free_widths (HfConfig *c)
{
  for (guint i = 0; i < G_N_ELEMENTS (lists); i++)
    g_free (G_STRUCT_MEMBER (HfWidths, c, lists[i].list).of);
}

static void
append_width (HfWidths *w, uint32_t width)
{
  w->of = g_renew (uint32_t, w->of, w->n + 1);
  w->of[w->n++] = width;
}

static uint32_t
widest (const HfWidths *w)
{
  uint32_t most = 0;
  for (uint32_t i = 0; i < w->n; i++)
    most = MAX (most, w->of[i]);
  return most;
}

bool
hf_read_widths (const LsJsonDoc *doc, const cJSON *list, double most, HfWidths *ret, LsDiagList *diags)
{
  const cJSON *width;
  cJSON_ArrayForEach (width, list)
  {
    double n = cJSON_IsNumber (width) ? width->valuedouble : 0;
    if (n < 1 || n > most || n != (uint32_t) n || ret->n == MOST_LAYERS)
      return hf_refuse (doc, width, diags, "expected whole numbers, one a layer");
    append_width (ret, (uint32_t) n);
  }
  return true;
}

/* Of OpenELM, ffn_multipliers: of hidden, to a multiple of ffn_dim_divisor (make_divisible() of its
 * configuration_openelm.py: the nearest, and no less than nine tenths). */
static bool
read_multipliers (const LsJsonDoc *doc, HfConfig *c, LsDiagList *diags)
{
  const cJSON *list = hf_get (doc, "ffn_multipliers"), *divisor = hf_get (doc, "ffn_dim_divisor"), *one;
  double unit = cJSON_IsNumber (divisor) && divisor->valuedouble >= 1 ? divisor->valuedouble : 256;
  if (!cJSON_IsArray (list) || c->layer_ffn.n > 0)
    return true;
  cJSON_ArrayForEach (one, list)
  {
    double wanted = cJSON_IsNumber (one) ? one->valuedouble * c->hidden : 0;
    if (!(wanted >= 1 && wanted <= 1 << 22 && unit <= 65536) || c->layer_ffn.n == MOST_LAYERS)
      return hf_refuse (doc, one, diags, "expected multiples of hidden_size, one a layer");
    uint64_t divides = (uint64_t) unit,
             width = MAX (divides, (uint64_t) (wanted + unit / 2) / divides * divides);
    append_width (&c->layer_ffn, (uint32_t) ((double) width < 0.9 * wanted ? width + divides : width));
  }
  return true;
}

/* --- blocks by keys of the file ------------------------------------------------------- */

static bool
are_flat (const cJSON *blocks)
{
  return cJSON_IsArray (blocks) && cJSON_IsObject (blocks->child) && !ls_json_at (blocks->child, "attention");
}

/* What blocks say of a number that no list has: the same, if at all. said: of those before. */
static bool
take_numbers (const LsJsonDoc *doc, const cJSON *block, const LsField *fields, const HfConfig *own,
              HfConfig *said, HfConfig *c, LsDiagList *diags)
{
  for (const LsField *f = fields; f->key; f++) {
    bool is_there = f->kind == LS_FIELD_UINT && !hf_widths_of (c, f->offset);
    uint32_t value = is_there ? G_STRUCT_MEMBER (uint32_t, own, f->offset) : 0,
             *before = is_there ? &G_STRUCT_MEMBER (uint32_t, said, f->offset) : NULL;
    if (value == 0)
      continue;
    if (*before > 0 && *before != value)
      return hf_refuse (doc, block, diags, "layers that differ in this one by one cannot be simulated");
    *before = G_STRUCT_MEMBER (uint32_t, c, f->offset) = value;
  }
  return true;
}

static bool
read_flat_block (const LsJsonDoc *doc, const cJSON *block, const LsField *fields, HfConfig *said, HfConfig *c,
                 GPtrArray *notes, LsDiagList *diags)
{
  HfConfig own = { 0 };
  bool ok = ls_fields_read (fields, doc, block, &own, notes, diags)
      && take_numbers (doc, block, fields, &own, said, c, diags);
  for (guint i = 0; ok && i < G_N_ELEMENTS (lists); i++)
    append_width (&G_STRUCT_MEMBER (HfWidths, c, lists[i].list),
                  G_STRUCT_MEMBER (uint32_t, &own, lists[i].usual));
  g_free (own.activation);
  g_free (own.position);
  return ok;
}

bool
hf_read_flat_blocks (const LsJsonDoc *doc, const LsField *fields, HfConfig *c, GPtrArray *notes,
                     LsDiagList *diags)
{
  const cJSON *blocks = hf_get (doc, "block_configs"), *block;
  g_autoptr (GPtrArray) others = g_ptr_array_new_with_free_func (g_free);
  HfConfig said = { 0 };
  if (!are_flat (blocks))
    return true;
  if (cJSON_GetArraySize (blocks) > MOST_LAYERS)
    return hf_refuse (doc, blocks, diags, "expected as many block_configs as there are layers");
  cJSON_ArrayForEach (block, blocks)
  {
    if (!read_flat_block (doc, block, fields, &said, c, block == blocks->child ? notes : others, diags))
      return false;
  }
  for (guint i = 0; i < G_N_ELEMENTS (lists); i++) {
    HfWidths *w = &G_STRUCT_MEMBER (HfWidths, c, lists[i].list);
    w->n = widest (w) > 0 ? w->n : 0; /* no block says it */
  }
  return true;
}

/* --- blocks --------------------------------------------------------------------------- */

/* What stands for one half of a layer. */
typedef enum { HALF_OWN, HALF_LINEAR, HALF_NONE } Half;

static bool
is_there (const cJSON *object, const char *key)
{
  const cJSON *node = cJSON_GetObjectItemCaseSensitive (object, key);
  return node && !cJSON_IsNull (node) && !cJSON_IsFalse (node);
}

static Half
half_of (const cJSON *object)
{
  return is_there (object, "no_op")              ? HALF_NONE
      : is_there (object, "replace_with_linear") ? HALF_LINEAR
                                                 : HALF_OWN;
}

static double
number_of (const cJSON *object, const char *key)
{
  const cJSON *node = cJSON_GetObjectItemCaseSensitive (object, key);
  return cJSON_IsNumber (node) ? node->valuedouble : 0;
}

/* 0: not said, or not of these heads. */
static uint32_t
kv_heads_of (const cJSON *attention, uint32_t heads)
{
  double group = number_of (attention, "n_heads_in_group"),
         own = number_of (attention, "num_key_value_heads");
  if (own >= 1 && own <= heads)
    return heads % (uint32_t) own == 0 ? (uint32_t) own : 0;
  return group >= 1 && group <= heads && heads % (uint32_t) group == 0 ? heads / (uint32_t) group : 0;
}

/* Two thirds of a multiple of hidden, up to a multiple of 256 (block_config.py and modeling_decilm.py of
 * Llama-3_3-Nemotron-Super-49B-v1; ml-explore/mlx-lm, mlx_lm/models/nemotron-nas.py); 0: not said. */
static uint32_t
ffn_of (const cJSON *ffn, uint32_t hidden)
{
  double own = number_of (ffn, "intermediate_size"), width = 2 * number_of (ffn, "ffn_mult") * hidden / 3;
  if (own >= 1 && own <= 1 << 22)
    return (uint32_t) own;
  return width >= 1 && width <= 1 << 22 ? ((uint32_t) width + 255) / 256 * 256 : 0;
}

static const char *
wrong_with (const cJSON *block, Half mixing, Half mlp, uint32_t kv_heads, uint32_t width)
{
  const cJSON *attention = ls_json_at (block, "attention"), *ffn = ls_json_at (block, "ffn"),
              *gated = ls_json_at (ffn, "gated");
  bool has_attention = mixing == HALF_OWN;
  if (!cJSON_IsObject (attention) || !cJSON_IsObject (ffn))
    return "expected attention and ffn of a block";
  if (is_there (block, "parallel_blocks"))
    return "blocks side by side cannot be simulated";
  if (is_there (attention, "mamba") || is_there (attention, "llama4") || is_there (ffn, "moe"))
    return "blocks with mixers, experts or attention of their own kind cannot be simulated";
  if (is_there (attention, "sparsify") || is_there (ffn, "sparsify"))
    return "weights that are left out one by one cannot be simulated";
  if (has_attention && (is_there (attention, "window_length") || is_there (attention, "num_sink_tokens")))
    return "blocks with windows of their own cannot be simulated";
  if (mlp == HALF_LINEAR)
    return "a linear layer in the place of an MLP cannot be simulated";
  if (mlp == HALF_OWN && cJSON_IsFalse (gated))
    return "MLPs without a gate in some blocks cannot be simulated";
  if (has_attention && kv_heads == 0)
    return "expected n_heads_in_group that divides num_attention_heads";
  return mlp == HALF_OWN && width == 0 ? "expected ffn_mult or intermediate_size" : NULL;
}

/* By what stands for attention and for the MLP; 0: a block that does nothing. */
static char
letter_of (Half mixing, Half mlp)
{
  static const char letters[3][2] = { { 'A', 'a' }, { 'M', 'm' }, { 'd', '\0' } };
  return letters[mixing][mlp == HALF_NONE];
}

static bool
read_block (const LsJsonDoc *doc, const cJSON *block, HfConfig *c, GString *pattern, LsDiagList *diags)
{
  const cJSON *attention = ls_json_at (block, "attention"), *ffn = ls_json_at (block, "ffn");
  Half mixing = half_of (attention), mlp = half_of (ffn);
  uint32_t kv_heads = mixing == HALF_OWN ? kv_heads_of (attention, c->heads) : 0;
  uint32_t width = mlp == HALF_OWN ? ffn_of (ffn, c->hidden) : 0;
  const char *wrong = wrong_with (block, mixing, mlp, kv_heads, width);
  if (wrong)
    return hf_refuse (doc, block, diags, wrong);
  char letter = letter_of (mixing, mlp);
  if (!letter)
    return true;
  g_string_append_c (pattern, letter);
  append_width (&c->layer_kv_heads, kv_heads);
  append_width (&c->layer_ffn, width);
  return true;
}

static bool
read_blocks (const LsJsonDoc *doc, HfConfig *c, GPtrArray *notes, LsDiagList *diags)
{
  const cJSON *blocks = hf_get (doc, "block_configs"), *block;
  g_autoptr (GString) pattern = g_string_new (NULL);
  uint32_t n = cJSON_IsArray (blocks) ? (uint32_t) cJSON_GetArraySize (blocks) : 0;
  if (n == 0 || are_flat (blocks))
    return true;
  if (n != c->layers || n > MOST_LAYERS)
    return hf_refuse (doc, blocks, diags, "expected as many block_configs as there are layers");
  cJSON_ArrayForEach (block, blocks)
  {
    if (!read_block (doc, block, c, pattern, diags))
      return false;
  }
  if (pattern->len == 0)
    return hf_refuse (doc, blocks, diags, "expected a block that does something");
  if (pattern->len < n)
    ls_note (notes, "%u layers that do nothing are left out", n - (uint32_t) pattern->len);
  c->layers = (uint32_t) pattern->len;
  c->pattern = g_strdup (pattern->str);
  return true;
}

/* --- layers that a file saved by transformers 5 has apart ----------------------------- */

/* The width of heads, or the heads of keys and values, of full layers; 0: it says another thing. */
static bool
take_apart (const cJSON *layer, HfConfig *c)
{
  const cJSON *one;
  cJSON_ArrayForEach (one, layer)
  {
    uint32_t *place = strcmp (one->string, "head_dim") == 0 ? &c->full_head_dim
        : strcmp (one->string, "num_key_value_heads") == 0  ? &c->full_kv_heads
                                                            : NULL;
    bool is_number = cJSON_IsNumber (one) && one->valuedouble >= 1 && one->valuedouble <= 65536;
    if (!place || !is_number || (*place > 0 && *place != (uint32_t) one->valuedouble))
      return false;
    *place = (uint32_t) one->valuedouble;
  }
  return true;
}

/* per_layer_config, by the number of a layer: all layers that see the whole sequence, and no others, may have
 * other heads, all the same (Gemma 4). */
static bool
read_layers_apart (const LsJsonDoc *doc, HfConfig *c, LsDiagList *diags)
{
  const cJSON *apart = hf_get (doc, "per_layer_config"), *types = hf_get (doc, "layer_types"), *layer, *type;
  g_autofree bool *is_left = g_new0 (bool, (gsize) c->layers + 1); /* that see all, and are not said yet */
  uint32_t i = 0, n_full = 0, n = 0;
  cJSON_ArrayForEach (type, types)
  {
    if (i == c->layers)
      break;
    is_left[i] = g_strcmp0 (cJSON_GetStringValue (type), "full_attention") == 0;
    n_full += is_left[i++];
  }
  cJSON_ArrayForEach (layer, apart)
  {
    guint64 at = 0;
    bool is_number = g_ascii_string_to_unsigned (layer->string, 10, 0, UINT32_MAX, &at, NULL);
    if (!is_number || at >= c->layers || !is_left[at] || !take_apart (layer, c))
      return hf_refuse (doc, layer, diags,
                        "a layer unlike others; only heads of all layers with full_attention can be");
    is_left[at] = false;
    n++;
  }
  return n == 0 || (n == n_full && n < c->layers)
      || hf_refuse (doc, apart, diags, "expected all layers with full_attention, and others without");
}

/* --- beside the halves of layers ------------------------------------------------------ */

/* Of Gemma 3n, activation_sparsity_pattern: a share of what becomes 0 for each layer, of the first alone. */
static bool
read_sparse_layers (const LsJsonDoc *doc, HfConfig *c, LsDiagList *diags)
{
  const cJSON *shares = hf_get (doc, "activation_sparsity_pattern"), *one;
  uint32_t i = 0, n_sparse = 0;
  if (cJSON_IsNumber (shares))
    n_sparse = shares->valuedouble > 0 ? c->layers : 0;
  else if (!cJSON_IsArray (shares)) /* as the type has it, in models of more layers */
    n_sparse = c->sparse_layers < c->layers ? c->sparse_layers : 0;
  cJSON_ArrayForEach (one, shares)
  {
    bool is_sparse = cJSON_IsNumber (one) && one->valuedouble > 0;
    if (is_sparse && n_sparse < i)
      return hf_refuse (doc, one, diags, "sparse MLPs in other layers than the first cannot be simulated");
    n_sparse += is_sparse;
    i++;
  }
  if (cJSON_IsArray (shares) && i != c->layers)
    return hf_refuse (doc, shares, diags, "expected as many shares as there are layers");
  c->sparse_layers = n_sparse;
  return true;
}

/* huggingface/transformers, modeling_gemma4.py, Gemma4TextMLP. */
static void
double_widths (HfConfig *c)
{
  for (uint32_t i = 0; i < c->layers && c->doubles_ffn && c->kv_shared > 0 && c->kv_shared < c->layers; i++)
    append_width (&c->layer_ffn, i + c->kv_shared < c->layers ? c->ffn : 2 * c->ffn);
}

bool
hf_read_beside (const LsJsonDoc *doc, HfConfig *c, LsDiagList *diags)
{
  if (c->doubles_ffn && (c->ffn > 1 << 21 || c->layers > MOST_LAYERS || c->layer_ffn.n > 0))
    return hf_refuse (doc, hf_get (doc, "use_double_wide_mlp"), diags,
                      "expected one intermediate_size where some MLPs are twice as wide");
  double_widths (c);
  return read_sparse_layers (doc, c, diags);
}

/* --- both ----------------------------------------------------------------------------- */

bool
hf_read_blocks (const LsJsonDoc *doc, HfConfig *c, GPtrArray *notes, LsDiagList *diags)
{
  if (!read_multipliers (doc, c, diags) || !read_blocks (doc, c, notes, diags)
      || !read_layers_apart (doc, c, diags))
    return false;
  for (guint i = 0; i < G_N_ELEMENTS (lists); i++) {
    const HfWidths *w = &G_STRUCT_MEMBER (HfWidths, c, lists[i].list);
    if (w->n > 0 && w->n != c->layers)
      return hf_refuse (doc, ls_json_doc_root (doc), diags,
                        "expected as many numbers in lists of widths as there are layers");
    if (w->n > 0)
      G_STRUCT_MEMBER (uint32_t, c, lists[i].usual) = widest (w);
  }
  if (c->pattern && c->ffn == 0) /* no block has an MLP */
    c->ffn = c->hidden;
  return true;
}

/* None where all layers that have it are as wide; of a window all count. */
static uint32_t
copy_widths (const HfWidths *w, bool is_window, uint32_t **ret_of)
{
  uint32_t usual = widest (w);
  bool differ = false;
  for (uint32_t i = 0; i < w->n; i++)
    differ = differ || ((w->of[i] > 0 || is_window) && w->of[i] != usual);
  *ret_of = differ ? g_memdup2 (w->of, w->n * sizeof (uint32_t)) : NULL;
  return differ ? w->n : 0;
}

void
hf_add_blocks (const HfConfig *c, LsModel *m)
{
  for (guint i = 0; i < G_N_ELEMENTS (lists); i++)
    G_STRUCT_MEMBER (uint32_t, m, lists[i].n) = copy_widths (
        &G_STRUCT_MEMBER (HfWidths, c, lists[i].list), lists[i].usual == offsetof (HfConfig, sliding_window),
        &G_STRUCT_MEMBER (uint32_t *, m, lists[i].model));
  if (!c->pattern)
    return;
  g_free (m->layers.pattern);
  m->layers.pattern = g_strdup (c->pattern);
  if (!strpbrk (c->pattern, "Mm"))
    return;
  m->mixer.kind = LS_MIXER_PRODUCT;
  m->mixer.heads = 1;
  m->mixer.head_dim = m->hidden;
}
