/* Experts of a config.json: of what kind, and which layers have them where a list says it. */
#include <string.h>

#include "data/jobs/hf_family.h"

/* [n]; of each layer. */
typedef struct {
  bool *is_dense;
  uint32_t n;
  const cJSON *said; /* the last list; NULL: none */
} Dense;

/* By kind: dense or sparse, or whether it has experts. */
static void
read_kinds (const LsJsonDoc *doc, Dense *d)
{
  const cJSON *kinds = hf_get (doc, "mlp_layer_types"), *one;
  uint32_t i = 0;
  kinds = cJSON_IsArray (kinds) ? kinds : hf_get (doc, "is_moe_layer");
  if (cJSON_IsArray (kinds) && kinds->child)
    d->said = kinds;
  cJSON_ArrayForEach (one, d->said)
  {
    if (i < d->n)
      d->is_dense[i++] = g_strcmp0 (cJSON_GetStringValue (one), "dense") == 0 || cJSON_IsFalse (one);
  }
}

/* By the numbers of those without experts. */
static void
read_numbers (const LsJsonDoc *doc, Dense *d)
{
  const cJSON *numbers = hf_get (doc, "mlp_only_layers"), *one;
  cJSON_ArrayForEach (one, numbers)
  {
    if (!cJSON_IsNumber (one) || one->valuedouble < 0 || one->valuedouble >= d->n)
      continue;
    d->is_dense[(uint32_t) one->valuedouble] = true;
    d->said = numbers;
  }
}

/* By the numbers of those with experts, in a list or in one string: "4,5,6". */
static bool
read_enumeration (const LsJsonDoc *doc, Dense *d, LsDiagList *diags)
{
  const cJSON *list = hf_get (doc, "moe_layers_enum");
  char *printed = cJSON_IsArray (list) ? cJSON_PrintUnformatted (list) : NULL; /* "[4,5,6]" */
  g_autofree char *text = g_strdup (printed ? printed : cJSON_GetStringValue (list));
  cJSON_free (printed);
  if (!text || *g_strstrip (g_strdelimit (text, "[]", ' ')) == '\0')
    return true;
  g_auto (GStrv) words = g_strsplit (text, ",", -1);
  for (uint32_t i = 0; i < d->n; i++)
    d->is_dense[i] = true;
  for (char **word = words; *word; word++) {
    guint64 number;
    if (!g_ascii_string_to_unsigned (g_strstrip (*word), 10, 0, d->n - 1, &number, NULL))
      return hf_refuse (doc, list, diags, "expected numbers of layers, with commas between them");
    d->is_dense[number] = false;
  }
  d->said = list;
  return true;
}

/* Of ERNIE, moe_layer_end_index: the last layer with experts, from 0; -1: the last. Of a list the first
 * number, that of what reads text. */
static bool
check_last (const LsJsonDoc *doc, const Dense *d, LsDiagList *diags)
{
  const cJSON *last = hf_get (doc, "moe_layer_end_index"), *number = last && last->child ? last->child : last;
  bool is_before = cJSON_IsNumber (number)
      && (number->valuedouble < 0 ? number->valuedouble < -1 : number->valuedouble + 1 < d->n);
  return !is_before || hf_refuse (doc, last, diags, "layers without experts after the others; expected -1");
}

/* A type may have a pattern of such layers itself. */
static bool
has_other_pattern (const HfFamily *f, const HfConfig *c)
{
  const char *own = f->model.layers.pattern;
  return f->model.mixer.kind != LS_MIXER_NONE || f->compressed || c->pattern
      || (own && own[strspn (own, "AD")]);
}

/* A pattern where they are not the first few. */
static bool
take_layers (const LsJsonDoc *doc, const HfFamily *f, const Dense *d, HfConfig *c, LsDiagList *diags)
{
  uint32_t n_first = 0, n_dense = 0;
  while (n_first < d->n && d->is_dense[n_first])
    n_first++;
  for (uint32_t i = 0; i < d->n; i++)
    n_dense += d->is_dense[i];
  c->dense_layers = n_first;
  if (n_dense == n_first && !f->model.layers.pattern)
    return true;
  if (has_other_pattern (f, c))
    return n_dense == n_first
        || hf_refuse (
               doc, d->said, diags,
               "dense layers by number next to a pattern of layers; only the first few, or all but each "
               "n-th, can be");
  c->dense_layers = 0;
  c->pattern = g_strnfill (d->n, 'A');
  for (uint32_t i = 0; i < d->n; i++)
    if (d->is_dense[i])
      c->pattern[i] = 'D';
  return true;
}

bool
hf_read_dense_layers (const LsJsonDoc *doc, const HfFamily *f, HfConfig *c, LsDiagList *diags)
{
  g_autofree bool *is_dense = g_new0 (bool, c->layers);
  Dense d = { is_dense, c->layers, NULL };
  if (c->layers == 0)
    return true;
  read_kinds (doc, &d);
  read_numbers (doc, &d);
  return read_enumeration (doc, &d, diags) && check_last (doc, &d, diags)
      && (!d.said || take_layers (doc, f, &d, c, diags));
}

void
hf_add_experts (const HfFamily *f, const HfConfig *c, LsModel *m)
{
  if (!hf_has_experts (f, c) && f->dense_is_shared && c->shared_ffn > 0)
    m->ffn = c->shared_ffn;
  if (!hf_has_experts (f, c))
    return;
  m->moe.n_experts = c->experts;
  m->moe.top_k = c->top_k;
  if (f->heads_are_experts) {
    m->moe.attention_experts = c->experts;
    m->moe.attention_top_k = c->top_k;
  }
  m->moe.zero_experts = c->zero_experts;
  if (c->zero_experts > 0) { /* they take their share of what a token is sent to, rounded */
    uint64_t all = (uint64_t) c->experts + c->zero_experts;
    m->moe.top_k = (uint32_t) MAX (1, ((uint64_t) c->top_k * c->experts + all / 2) / all);
  }
  if (c->expert_groups > 1 && c->top_groups < c->expert_groups) { /* else they leave nothing out */
    m->moe.groups = c->expert_groups;
    m->moe.top_groups = c->top_groups;
  }
  m->moe.expert_ffn = c->expert_ffn;
  m->moe.latent = c->expert_latent;
  m->moe.every
      = MAX (1, f->experts == HF_INTERLEAVED ? c->interleave : MAX (c->sparse_step, c->expert_period));
  if (f->experts == HF_INTERLEAVED || c->expert_ffn == 0)
    m->moe.expert_ffn = c->ffn > 0 ? c->ffn : m->ffn; /* four times hidden, of a type without gates */
  if (f->experts == HF_INTERLEAVED && c->dense_ffn > 0)
    m->ffn = c->dense_ffn;
  m->moe.shared_ffn = c->shared_ffn > 0 ? c->shared_ffn
      : f->ffn_is_shared                ? c->ffn
      : f->experts == HF_AFTER          ? c->n_shared * c->expert_ffn
      : f->experts == HF_INTERLEAVED    ? c->ffn
                                        : 0;
  m->moe.n_dense_layers = f->experts == HF_AFTER || f->experts == HF_STEPPED ? c->dense_layers : 0;
}
