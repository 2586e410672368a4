/* data/jobs/read_recipes.c — lists of kernels read, by their names or several joined by "+"; kinds of kernels
 * as files and flags name them. */
#include <string.h>

#include "base/handover.h"
#include "data/datadir.h"
#include "data/jobs/job_files.h"

/* --- kinds of kernels as files and flags name them ----------------------------------------------- */

const LsEnumName ls_attention_kernel_names[] = {
  { "auto", LS_ATTENTION_KERNEL_AUTO },
  { "fa1", LS_ATTENTION_KERNEL_FA1 },
  { "triton", LS_ATTENTION_KERNEL_TRITON },
  { "fa2", LS_ATTENTION_KERNEL_FA2 },
  { "fa3", LS_ATTENTION_KERNEL_FA3 },
  { "pallas", LS_ATTENTION_KERNEL_PALLAS },
  { "aotriton", LS_ATTENTION_KERNEL_AOTRITON },
  { "cudnn", LS_ATTENTION_KERNEL_CUDNN },
  { NULL },
};

/* strategies/kernels/NAME.json: the kernels that a release of some software launches for each operator
 * (model/recipe.h). */

/* Whether its own kernels stand in a list. */
typedef enum { NO_CORE, ONE_CORE, MAY_BE_CORE } Core;

/* Operators: their names, the sizes that there are, and whether they have a core. */
#define OPERATORS(ROW)                                                                                       \
  ROW (EMBEDDING, "embedding", "sbhV", NO_CORE)                                                              \
  ROW (NORM, "norm", "sbh", MAY_BE_CORE)                                                                     \
  ROW (INPUT_NORM, "input-norm", "sbh", MAY_BE_CORE)                                                         \
  ROW (MLP_NORM, "mlp-norm", "sbh", MAY_BE_CORE)                                                             \
  ROW (FINAL_NORM, "final-norm", "sbh", MAY_BE_CORE)                                                         \
  ROW (QKV, "qkv", "sbhqkad", ONE_CORE)                                                                      \
  ROW (ROPE, "rope", "sbhqkad", MAY_BE_CORE)                                                                 \
  ROW (LATENT_ROPE, "latent-rope", "sbhqadrnvl", NO_CORE)                                                    \
  ROW (ATTENTION, "attention", "sbhqkad", ONE_CORE)                                                          \
  ROW (SCORES, "scores", "sbhqkad", ONE_CORE)                                                                \
  ROW (SOFTMAX, "softmax", "sbhqkad", NO_CORE)                                                               \
  ROW (CONTEXT, "context", "sbhqkad", ONE_CORE)                                                              \
  ROW (PROJ, "proj", "sbhqkad", ONE_CORE)                                                                    \
  ROW (RESIDUAL, "residual", "sbh", NO_CORE)                                                                 \
  ROW (ATTENTION_ADD, "attention-add", "sbh", NO_CORE)                                                       \
  ROW (MLP_ADD, "mlp-add", "sbh", NO_CORE)                                                                   \
  ROW (FC1, "fc1", "sbhf", ONE_CORE)                                                                         \
  ROW (ACTIVATION, "activation", "sbf", NO_CORE)                                                             \
  ROW (FC2, "fc2", "sbhf", ONE_CORE)                                                                         \
  ROW (EXPERT_FC1, "expert-fc1", "sbhfO", ONE_CORE)                                                          \
  ROW (EXPERT_ACTIVATION, "expert-activation", "sbfO", NO_CORE)                                              \
  ROW (EXPERT_FC2, "expert-fc2", "sbhfO", ONE_CORE)                                                          \
  ROW (EXPERT_PAD, "expert-pad", "sbhfO", NO_CORE)                                                           \
  ROW (EXPERT_STASH, "expert-stash", "sbhfO", NO_CORE)                                                       \
  ROW (ROUTER, "router", "sbhEC", ONE_CORE)                                                                  \
  ROW (PERMUTE, "permute", "sbhECOP", NO_CORE)                                                               \
  ROW (UNPERMUTE, "unpermute", "sbhECOP", NO_CORE)                                                           \
  ROW (MIXER_CONV, "mixer-conv", "sbqkadNgcm", NO_CORE)                                                      \
  ROW (MIXER_CHUNKS, "mixer-chunks", "sbqkadNgcm", NO_CORE)                                                  \
  ROW (MIXER_GATE, "mixer-gate", "sbqkadNgcm", NO_CORE)                                                      \
  ROW (LORA_A, "lora-a", "sbh", ONE_CORE)                                                                    \
  ROW (LORA_B, "lora-b", "sbh", ONE_CORE)                                                                    \
  ROW (LOGITS, "logits", "sbhV", ONE_CORE)                                                                   \
  ROW (LOSS, "loss", "sbhV", NO_CORE)                                                                        \
  ROW (VOCAB_LOSS, "vocab-loss", "sbhV", NO_CORE)                                                            \
  ROW (METRIC, "metric", "sbV", NO_CORE)                                                                     \
  ROW (TP, "tp", "", NO_CORE)                                                                                \
  ROW (FSDP, "fsdp", "", NO_CORE)                                                                            \
  ROW (CLIP, "clip", "ST", NO_CORE)                                                                          \
  ROW (OPTIMIZER, "optimizer", "ST", NO_CORE)

#define NAME(operator_, name_, sizes_, core_) { name_, LS_RECIPE_##operator_ },
const LsEnumName ls_recipe_operator_names[] = { OPERATORS (NAME) { NULL } };
G_STATIC_ASSERT (G_N_ELEMENTS (ls_recipe_operator_names) == LS_N_RECIPE_OPERATORS + 1);

static const LsEnumName models[] = {
  { "all", LS_FOR_ALL },
  { "rmsnorm", LS_FOR_RMSNORM },
  { "layernorm", LS_FOR_LAYERNORM },
  { "swiglu", LS_FOR_SWIGLU },
  { "gelu", LS_FOR_GELU },
  { "relu2", LS_FOR_RELU2 },
  { "gqa", LS_FOR_GQA },
  { "mha", LS_FOR_MHA },
  { "mha-rope", LS_FOR_MHA_ROPE },
  { "unnormed-rope", LS_FOR_UNNORMED_ROPE },
  { "scaled-rope", LS_FOR_SCALED_ROPE },
  { "limited-geglu", LS_FOR_LIMITED_GEGLU },
  { "linear-bias", LS_FOR_LINEAR_BIAS },
  { "sigmoid-router", LS_FOR_SIGMOID_ROUTER },
  { "mamba2", LS_FOR_MAMBA2 },
  { NULL },
};
G_STATIC_ASSERT (G_N_ELEMENTS (models) == LS_N_FOR + 1);

static const LsEnumName places[] = { { "always", LS_WHERE_ALWAYS },
                                     { "groups", LS_WHERE_GROUPS },
                                     { "sequences", LS_WHERE_SEQUENCES },
                                     { "sent-once", LS_WHERE_SENT_ONCE },
                                     { "sent-each", LS_WHERE_SENT_EACH },
                                     { "unpadded", LS_WHERE_UNPADDED },
                                     { "normed", LS_WHERE_NORMED },
                                     { "normed-views", LS_WHERE_NORMED_VIEWS },
                                     { "plain-keys", LS_WHERE_PLAIN_KEYS },
                                     { "sharded", LS_WHERE_SHARDED },
                                     { NULL } };
G_STATIC_ASSERT (G_N_ELEMENTS (places) == LS_N_WHERE + 1);

static const LsEnumName dtypes[]
    = { { "bf16", LS_DTYPE_BF16 }, { "fp16", LS_DTYPE_FP16 }, { "fp32", LS_DTYPE_FP32 }, { NULL } };

#define KERNEL(key_, kind_, member_) key_, kind_, offsetof (LsRecipeKernel, member_)

static const LsField kernel_fields[] = {
  { KERNEL ("core", LS_FIELD_BOOL, is_core) },
  { KERNEL ("name", LS_FIELD_STRING, name) },
  { KERNEL ("access", LS_FIELD_ENUM, access), .names = ls_access_names },
  { KERNEL ("elements", LS_FIELD_STRING, elements_text) },
  { KERNEL ("read", LS_FIELD_DOUBLE, read), .max = 1e3 },
  { KERNEL ("write", LS_FIELD_DOUBLE, write), .max = 1e3 },
  { KERNEL ("bytes", LS_FIELD_STRING, bytes_text) },
  { KERNEL ("launches", LS_FIELD_STRING, launches_text) },
  { KERNEL ("product", LS_FIELD_BOOL, is_product) },
  { KERNEL ("where", LS_FIELD_ENUM, where), .names = places },
  { KERNEL ("dtype", LS_FIELD_ENUM, dtype), .names = dtypes },
  { .table = "kernels.forward" },
};

static const LsRecipeKernel kernel_blank = { .dtype = LS_DTYPE_BF16 };

#define KERNELS(key_, member_)                                                                               \
  {                                                                                                          \
    key_, LS_FIELD_ARRAY, offsetof (LsRecipe, member_), .fields = kernel_fields, .blank = &kernel_blank,     \
                                                        .element_size = sizeof (LsRecipeKernel)              \
  }

static const LsField operator_fields[] = {
  { "operator", LS_FIELD_ENUM, offsetof (LsRecipe, operator_), .required = true,
    .names = ls_recipe_operator_names },
  { "for", LS_FIELD_ENUM, offsetof (LsRecipe, models), .names = models },
  { "widths", LS_FIELD_UINT_LIST, offsetof (LsRecipe, widths), .n_offset = offsetof (LsRecipe, n_widths),
    .min = 1 },
  { "one_by_one", LS_FIELD_BOOL, offsetof (LsRecipe, one_by_one) },
  { "gathers_each", LS_FIELD_BOOL, offsetof (LsRecipe, gathers_each) },
  { "reduces_each", LS_FIELD_BOOL, offsetof (LsRecipe, reduces_each) },
  { "reduces_gathered", LS_FIELD_BOOL, offsetof (LsRecipe, reduces_gathered) },
  { "gathers_output", LS_FIELD_BOOL, offsetof (LsRecipe, gathers_output) },
  { "one_hot", LS_FIELD_BOOL, offsetof (LsRecipe, is_one_hot) },
  { "logits_again", LS_FIELD_BOOL, offsetof (LsRecipe, logits_again) },
  { "loops", LS_FIELD_BOOL, offsetof (LsRecipe, loops) },
  { "host_reads", LS_FIELD_UINT, offsetof (LsRecipe, host_reads), .max = 8 },
  { "bias_grad_listed", LS_FIELD_BOOL, offsetof (LsRecipe, bias_grad_is_listed) },
  KERNELS ("forward", forward),
  KERNELS ("backward", backward),
  { "saved", LS_FIELD_STRING, offsetof (LsRecipe, saved_text) },
  { "source", LS_FIELD_STRING, offsetof (LsRecipe, source), .required = true },
  { .table = "kernels.operators" },
};

const LsField ls_recipes_fields[] = {
  LS_FIELDS_HEADER (LsRecipes),
  { "based_on", LS_FIELD_STRING, offsetof (LsRecipes, based_on) },
  { "variant_of", LS_FIELD_STRING, offsetof (LsRecipes, variant_of) },
  { "fused_experts", LS_FIELD_BOOL, offsetof (LsRecipes, fuses_experts) },
  { "operators", LS_FIELD_ARRAY, offsetof (LsRecipes, operators), .required = true, .fields = operator_fields,
    .element_size = sizeof (LsRecipe) },
  { .table = "kernels" },
};

/* --- what a list may say beyond the types of its keys -------------------------------------------- */

#define RULE(operator_, name_, sizes_, core_) [LS_RECIPE_##operator_] = { sizes_, core_ },
static const struct {
  const char *sizes;
  Core core;
} rules[LS_N_RECIPE_OPERATORS] = { OPERATORS (RULE) };

typedef struct {
  const LsJsonDoc *doc;
  LsDiagList *diags;
  const LsRecipe *recipe;
  bool is_wrong;
} Check;

G_GNUC_PRINTF (3, 4)
static void
complain (Check *check, const cJSON *node, const char *format, ...)
{
  va_list args;
  va_start (args, format);
  g_autofree char *text = g_strdup_vprintf (format, args);
  va_end (args);
  ls_json_doc_wrong (check->doc, node, check->diags, "%s", text);
  check->is_wrong = true;
}

static const char *
operator_name (const LsRecipe *r)
{
  return ls_recipe_operator_names[r->operator_].name;
}

/* NULL without text; on an error too. */
static LsExpression *
parse (Check *check, const cJSON *object, const char *key, const char *text)
{
  const cJSON *node = cJSON_GetObjectItemCaseSensitive (object, key);
  g_autofree char *message = NULL;
  LsExpression *e = text ? ls_expression_parse (text, &message) : NULL;
  const char *sizes = rules[check->recipe->operator_].sizes;
  char foreign = e ? ls_expression_foreign_size (e, sizes) : '\0';
  if (message)
    complain (check, node, "%s", message);
  if (foreign)
    complain (check, node, "%s has the sizes %s; got \"%c\"", operator_name (check->recipe), sizes, foreign);
  return e;
}

/* What a copy moves follows from the job. */
static void
check_copy (Check *check, const cJSON *node, const LsRecipeKernel *k)
{
  bool is_fsdp = check->recipe->operator_ == LS_RECIPE_FSDP;
  const char *const *copies = is_fsdp ? ls_fsdp_copies : ls_tp_copies;
  const char *of = is_fsdp ? "FSDP" : "tensor parallelism";
  g_autofree char *known = g_strjoinv (", ", (char **) copies);
  if (!k->name || !g_strv_contains (copies, k->name))
    complain (check, node, "expected the name of a copy of %s: %s", of, known);
  if (k->access == LS_ACCESS_NONE || k->elements_text || k->bytes_text || k->launches_text
      || k->read + k->write > 0)
    complain (check, node,
              "expected \"name\" and \"access\" alone: what a copy of %s moves follows from the job", of);
}

static void
check_core (Check *check, const cJSON *node, const LsRecipeKernel *k)
{
  bool may_touch = rules[check->recipe->operator_].core == MAY_BE_CORE,
       says_more = k->name || k->is_product || k->elements_text || k->bytes_text || k->launches_text
      || k->read + k->write > 0 || k->where != LS_WHERE_ALWAYS;
  if (says_more || (k->access != LS_ACCESS_NONE && !may_touch))
    complain (check, node, "the core is the operator's own: expected no other key together with \"core\"%s",
              may_touch ? " but \"access\"" : "");
}

static void
check_kernel (Check *check, const cJSON *node, LsRecipeKernel *k)
{
  if (k->is_core) {
    check_core (check, node, k);
    return;
  }
  if (check->recipe->operator_ == LS_RECIPE_FSDP || check->recipe->operator_ == LS_RECIPE_TP) {
    check_copy (check, node, k);
    return;
  }
  if (!k->name || !*k->name || !k->elements_text || k->access == LS_ACCESS_NONE)
    complain (check, node, "expected \"name\", \"access\" and \"elements\" of a kernel");
  if (k->bytes_text && k->read + k->write > 0)
    complain (check, node, "expected \"bytes\", or \"read\" and \"write\"; got both");
  const char *sizes = rules[check->recipe->operator_].sizes;
  if (k->where == LS_WHERE_GROUPS && (!strchr (sizes, 'k') || strchr (sizes, 'N')))
    complain (check, ls_json_at (node, "where"), "%s has no heads of K", operator_name (check->recipe));
  if ((k->where == LS_WHERE_SENT_ONCE || k->where == LS_WHERE_SENT_EACH || k->where == LS_WHERE_UNPADDED)
      && !strchr (sizes, 'O'))
    complain (check, ls_json_at (node, "where"), "%s is not of experts", operator_name (check->recipe));
  if (k->where == LS_WHERE_SEQUENCES && !strchr (sizes, 'b'))
    complain (check, ls_json_at (node, "where"), "%s has no sequences", operator_name (check->recipe));
  if (k->is_product && (k->access != LS_ACCESS_TRITON_DOT || !strchr (sizes, 'N') || k->launches_text))
    complain (check, ls_json_at (node, "product"),
              "expected it of one launch of a mixer's, with access triton-dot");
  k->elements = parse (check, node, "elements", k->elements_text);
  k->bytes = parse (check, node, "bytes", k->bytes_text);
  k->launches = parse (check, node, "launches", k->launches_text);
}

static guint
max_kernels (const LsRecipe *r, const char *key, bool has_core)
{
  bool is_sum = r->operator_ == LS_RECIPE_RESIDUAL || r->operator_ == LS_RECIPE_ATTENTION_ADD
      || r->operator_ == LS_RECIPE_MLP_ADD;
  if (is_sum && strcmp (key, "backward") == 0)
    return LS_RECIPE_MAX_RESIDUAL;
  if (r->operator_ == LS_RECIPE_LORA_A || r->operator_ == LS_RECIPE_LORA_B)
    return LS_RECIPE_MAX_LORA;
  return has_core ? LS_RECIPE_MAX_KERNELS : LS_RECIPE_MAX_CORELESS;
}

static void
check_kernels (Check *check, const cJSON *object, const char *key, GArray *kernels)
{
  const cJSON *list = cJSON_GetObjectItemCaseSensitive (object, key), *at = list ? list : object;
  bool is_looked_up = check->recipe->is_one_hot && check->recipe->operator_ == LS_RECIPE_EMBEDDING;
  Core core = is_looked_up ? ONE_CORE : rules[check->recipe->operator_].core;
  guint n_cores = 0, n = kernels ? kernels->len : 0;
  for (guint i = 0; i < n; i++) {
    LsRecipeKernel *k = &g_array_index (kernels, LsRecipeKernel, i);
    check_kernel (check, cJSON_GetArrayItem (list, (int) i), k);
    n_cores += k->is_core;
  }
  if (core == MAY_BE_CORE ? n_cores > 1 : n_cores != (core == ONE_CORE))
    complain (check, at,
              core != NO_CORE
                  ? "expected {\"core\": true} once in \"%2$s\" of %1$s, where its own kernels stand"
                  : "%s has no core: its own kernels are gone where a list stands (\"%s\")",
              operator_name (check->recipe), key);
  guint most = max_kernels (check->recipe, key, n_cores > 0 || core == ONE_CORE);
  if (n > most)
    complain (check, at, "expected at most %u kernels; got %u", most, n);
}

static bool
has_bias (const LsRecipe *r)
{
  return r->operator_ == LS_RECIPE_QKV || r->operator_ == LS_RECIPE_FC1
      || r->operator_ == LS_RECIPE_EXPERT_FC1 || r->operator_ == LS_RECIPE_EXPERT_FC2
      || r->operator_ == LS_RECIPE_RESIDUAL || r->operator_ == LS_RECIPE_ATTENTION_ADD
      || r->operator_ == LS_RECIPE_MLP_ADD;
}

/* Of products that are computed each by itself. */
static void
check_collectives (Check *check, const cJSON *object)
{
  const LsRecipe *r = check->recipe;
  if (r->gathers_each && !r->one_by_one)
    complain (check, ls_json_at (object, "gathers_each"),
              "the products of %s are joint: expected \"one_by_one\" together with it", operator_name (r));
  if (r->reduces_each && !r->one_by_one)
    complain (check, ls_json_at (object, "reduces_each"),
              "the products of %s are joint: expected \"one_by_one\" together with it", operator_name (r));
  if (r->reduces_gathered && (!r->reduces_each || r->gathers_each))
    complain (check, ls_json_at (object, "reduces_gathered"),
              "the products of %s do not share a gather: expected \"reduces_each\" together with it, and no"
              " \"gathers_each\"",
              operator_name (r));
  if (r->gathers_output && r->operator_ != LS_RECIPE_LOGITS)
    complain (check, ls_json_at (object, "gathers_output"), "%s makes no logits; expected it of logits",
              operator_name (r));
}

/* Of permute it says all, and takes the place of kernels. */
static void
check_one_hot (Check *check, const cJSON *object)
{
  const LsRecipe *r = check->recipe;
  const cJSON *at = ls_json_at (object, "one_hot");
  bool is_order = r->operator_ == LS_RECIPE_PERMUTE;
  if (r->is_one_hot && r->operator_ != LS_RECIPE_EMBEDDING && !is_order)
    complain (check, at, "%s looks no tokens up; expected it of embedding, or of permute", operator_name (r));
  if (r->is_one_hot && is_order
      && (r->loops || (r->forward && r->forward->len > 0) || (r->backward && r->backward->len > 0)))
    complain (check, at,
              "expected neither kernels nor \"loops\" together with it: products take their place");
}

/* Steps and copies go one way; the first kernel of clipping is the norm. */
static void
check_place (Check *check, const cJSON *object)
{
  const LsRecipe *r = check->recipe;
  bool is_step = r->operator_ >= LS_RECIPE_TP,
       has_products = r->operator_ == LS_RECIPE_QKV || r->operator_ == LS_RECIPE_FC1;
  if (is_step && r->backward && r->backward->len > 0)
    complain (check, ls_json_at (object, "backward"), "%s has no backward", operator_name (r));
  if (is_step && (!r->forward || r->forward->len == 0))
    complain (check, object, "expected \"forward\": the kernels of %s", operator_name (r));
  check_one_hot (check, object);
  if (r->logits_again && r->operator_ != LS_RECIPE_LOSS)
    complain (check, ls_json_at (object, "logits_again"), "%s needs no logits; expected it of loss",
              operator_name (r));
  if (r->bias_grad_is_listed && !has_bias (r))
    complain (check, ls_json_at (object, "bias_grad_listed"),
              "%s has no bias; expected it of qkv, fc1, a product of experts or a sum", operator_name (r));
  if (r->loops && r->operator_ != LS_RECIPE_PERMUTE)
    complain (check, ls_json_at (object, "loops"), "%s does not say how experts run; expected it of permute",
              operator_name (r));
  if (strchr (rules[r->operator_].sizes, 'N') && r->models != LS_FOR_MAMBA2)
    complain (check, object, "expected \"for\": \"mamba2\" of %s: of no other mixer kernels are listed",
              operator_name (r));
  if (r->n_widths > 0 && !ls_recipe_is_norm ((LsRecipeOperator) r->operator_))
    complain (check, ls_json_at (object, "widths"), "%s is no norm; expected it of norms", operator_name (r));
  if (r->one_by_one && !has_products)
    complain (check, ls_json_at (object, "one_by_one"), "%s is one product; expected it of qkv or fc1",
              operator_name (r));
  check_collectives (check, object);
}

static void
check_operator (Check *check, const cJSON *object, LsRecipe *r, const LsRecipes *all)
{
  check->recipe = r;
  for (const LsRecipe *other = (const LsRecipe *) (gpointer) all->operators->data; other < r; other++)
    if (other->operator_ == r->operator_ && (other->models == r->models || other->models == LS_FOR_ALL)
        && other->n_widths == 0)
      complain (check, object, "an entry before it is for all of these models already: %s",
                operator_name (r));
  check_kernels (check, object, "forward", r->forward);
  check_kernels (check, object, "backward", r->backward);
  check_place (check, object);
  r->saved = parse (check, object, "saved", r->saved_text);
}

static LsRecipes *read_over_bases (const LsJsonDoc *doc, guint n_bases, LsDiagList *diags);

static bool
read_base (const LsJsonDoc *doc, guint n_bases, LsRecipes *recipes, LsDiagList *diags)
{
  g_autoptr (LsJsonDoc) base = ls_data_load_base (LS_DATA_KERNELS, doc, n_bases, diags);
  recipes->base = base ? read_over_bases (base, n_bases + 1, diags) : NULL;
  return recipes->base != NULL;
}

static LsRecipes *
read_over_bases (const LsJsonDoc *doc, guint n_bases, LsDiagList *diags)
{
  g_autoptr (LsRecipes) recipes = ls_recipes_new ();
  Check check = { .doc = doc, .diags = diags };
  if (!ls_fields_read_file (ls_recipes_fields, "kernels", doc, recipes, diags))
    return NULL;
  if (recipes->based_on && !read_base (doc, n_bases, recipes, diags))
    return NULL;
  const cJSON *list = ls_json_doc_at (doc, "operators");
  for (guint i = 0; i < recipes->operators->len; i++)
    check_operator (&check, cJSON_GetArrayItem (list, (int) i),
                    &g_array_index (recipes->operators, LsRecipe, i), recipes);
  return check.is_wrong ? NULL : g_steal_pointer (&recipes);
}

LsRecipes *
ls_recipes_read (const LsJsonDoc *doc, LsDiagList *diags)
{
  return read_over_bases (doc, 0, diags);
}

/* --- lists by their names ------------------------------------------------------------------------ */

static LsRecipes *
load_one (const char *name, LsDiagList *diags)
{
  g_autoptr (LsJsonDoc) doc = ls_data_load (LS_DATA_KERNELS, name, diags);
  return doc ? ls_recipes_read (doc, diags) : NULL;
}

static bool
has_list (const LsRecipes *chain, const char *name)
{
  for (; chain; chain = chain->base)
    if (strcmp (chain->name, name) == 0)
      return true;
  return false;
}

/* What a later list is based on, where the earlier ones are not, behind these. */
static void
put_behind (LsRecipes *earlier, LsRecipes *base)
{
  LsRecipes *end = earlier;
  while (end->base)
    end = end->base;
  if (base && !has_list (earlier, base->name))
    end->base = base;
  else
    ls_recipes_unref (base);
}

GStrv
ls_recipes_parts (const char *text)
{
  if (!g_file_test (text, G_FILE_TEST_EXISTS))
    return g_strsplit (text, "+", -1);
  GStrv one = g_new0 (char *, 2); /* a file, whose name may have a "+" */
  one[0] = g_strdup (text);
  return one;
}

LsRecipes *
ls_recipes_load (const char *name, LsDiagList *diags)
{
  g_auto (GStrv) parts = ls_recipes_parts (name);
  guint n = g_strv_length (parts);
  if (n < 2)
    return load_one (name, diags);
  g_autoptr (LsRecipes) all = NULL;
  for (guint i = 0; i < n; i++) {
    LsRecipes *list = load_one (parts[i], diags);
    if (!list)
      return NULL;
    if (all) {
      put_behind (all, list->base);
      list->base = all;
    }
    all = list;
  }
  g_free (all->name);
  all->name = g_strdup (name);
  return g_steal_pointer (&all);
}

static GPtrArray *
load_all (void)
{
  GPtrArray *all = g_ptr_array_new ();
  g_autoptr (GPtrArray) entries = ls_data_list (LS_DATA_KERNELS);
  for (guint i = 0; i < entries->len; i++) {
    g_autoptr (LsDiagList) diags = ls_diag_list_new ();
    LsRecipes *list = load_one (((const LsDataEntry *) entries->pdata[i])->path, diags);
    if (list)
      g_ptr_array_add (all, list);
  }
  return all;
}

const GPtrArray *
ls_recipes_all (void)
{
  static GPtrArray *all;
  static gsize is_made;
  if (ls_once_enter (&is_made)) {
    all = load_all ();
    ls_once_leave (&is_made);
  }
  return all;
}
