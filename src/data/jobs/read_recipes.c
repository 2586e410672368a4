/* What a list of kernels may say beyond the types of its keys. */
#include "data/jobs/job_files.h"

#include <string.h>

#include "data/datadir.h"
#include "lower/lower.h"

/* By LsRecipeOperator: the sizes that there are, and whether its own kernels stand in a list. */
typedef enum { NO_CORE, ONE_CORE, MAY_BE_CORE } Core;

static const struct {
  const char *sizes;
  Core core;
} rules[LS_N_RECIPE_OPERATORS] = {
  [LS_RECIPE_EMBEDDING] = { "sbhV", NO_CORE },
  [LS_RECIPE_NORM] = { "sbh", MAY_BE_CORE },
  [LS_RECIPE_INPUT_NORM] = { "sbh", MAY_BE_CORE },
  [LS_RECIPE_MLP_NORM] = { "sbh", MAY_BE_CORE },
  [LS_RECIPE_FINAL_NORM] = { "sbh", MAY_BE_CORE },
  [LS_RECIPE_QKV] = { "sbhqkad", ONE_CORE },
  [LS_RECIPE_ROPE] = { "sbhqkad", MAY_BE_CORE },
  [LS_RECIPE_LATENT_ROPE] = { "sbhqadrnvl", NO_CORE },
  [LS_RECIPE_ATTENTION] = { "sbhqkad", ONE_CORE },
  [LS_RECIPE_PROJ] = { "sbhqkad", ONE_CORE },
  [LS_RECIPE_SCORES] = { "sbhqkad", ONE_CORE },
  [LS_RECIPE_SOFTMAX] = { "sbhqkad", NO_CORE },
  [LS_RECIPE_CONTEXT] = { "sbhqkad", ONE_CORE },
  [LS_RECIPE_RESIDUAL] = { "sbh", NO_CORE },
  [LS_RECIPE_ATTENTION_ADD] = { "sbh", NO_CORE },
  [LS_RECIPE_MLP_ADD] = { "sbh", NO_CORE },
  [LS_RECIPE_FC1] = { "sbhf", ONE_CORE },
  [LS_RECIPE_ACTIVATION] = { "sbf", NO_CORE },
  [LS_RECIPE_FC2] = { "sbhf", ONE_CORE },
  [LS_RECIPE_EXPERT_FC1] = { "sbhfO", ONE_CORE },
  [LS_RECIPE_EXPERT_ACTIVATION] = { "sbfO", NO_CORE },
  [LS_RECIPE_EXPERT_FC2] = { "sbhfO", ONE_CORE },
  [LS_RECIPE_EXPERT_PAD] = { "sbhfO", NO_CORE },
  [LS_RECIPE_EXPERT_STASH] = { "sbhfO", NO_CORE },
  [LS_RECIPE_ROUTER] = { "sbhEC", ONE_CORE },
  [LS_RECIPE_PERMUTE] = { "sbhECOP", NO_CORE },
  [LS_RECIPE_UNPERMUTE] = { "sbhECOP", NO_CORE },
  [LS_RECIPE_MIXER_CONV] = { "sbqkadNgcm", NO_CORE },
  [LS_RECIPE_MIXER_CHUNKS] = { "sbqkadNgcm", NO_CORE },
  [LS_RECIPE_MIXER_GATE] = { "sbqkadNgcm", NO_CORE },
  [LS_RECIPE_LORA_A] = { "sbh", ONE_CORE },
  [LS_RECIPE_LORA_B] = { "sbh", ONE_CORE },
  [LS_RECIPE_LOGITS] = { "sbhV", ONE_CORE },
  [LS_RECIPE_LOSS] = { "sbhV", NO_CORE },
  [LS_RECIPE_VOCAB_LOSS] = { "sbhV", NO_CORE },
  [LS_RECIPE_METRIC] = { "sbV", NO_CORE },
  [LS_RECIPE_TP] = { "", NO_CORE },
  [LS_RECIPE_FSDP] = { "", NO_CORE },
  [LS_RECIPE_CLIP] = { "ST", NO_CORE },
  [LS_RECIPE_OPTIMIZER] = { "ST", NO_CORE },
};

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
  ls_json_doc_diag (check->doc, node, LS_JSON_AT_VALUE, check->diags, NULL, "%s", text);
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

static bool
has_copies (const LsRecipe *r)
{
  return r->operator_ == LS_RECIPE_FSDP || r->operator_ == LS_RECIPE_TP;
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
  if (has_copies (check->recipe)) {
    check_copy (check, node, k);
    return;
  }
  if (!k->name || !*k->name || !k->elements_text || k->access == LS_ACCESS_NONE)
    complain (check, node, "expected \"name\", \"access\" and \"elements\" of a kernel");
  if (k->bytes_text && k->read + k->write > 0)
    complain (check, node, "expected \"bytes\", or \"read\" and \"write\"; got both");
  const char *sizes = rules[check->recipe->operator_].sizes;
  if (k->where == LS_WHERE_GROUPS && (!strchr (sizes, 'k') || strchr (sizes, 'N')))
    complain (check, cJSON_GetObjectItemCaseSensitive (node, "where"), "%s has no heads of K",
              operator_name (check->recipe));
  if ((k->where == LS_WHERE_SENT_ONCE || k->where == LS_WHERE_SENT_EACH || k->where == LS_WHERE_UNPADDED)
      && !strchr (sizes, 'O'))
    complain (check, cJSON_GetObjectItemCaseSensitive (node, "where"), "%s is not of experts",
              operator_name (check->recipe));
  if (k->where == LS_WHERE_SEQUENCES && !strchr (sizes, 'b'))
    complain (check, cJSON_GetObjectItemCaseSensitive (node, "where"), "%s has no sequences",
              operator_name (check->recipe));
  if (k->is_product && (k->access != LS_ACCESS_TRITON_DOT || !strchr (sizes, 'N') || k->launches_text))
    complain (check, cJSON_GetObjectItemCaseSensitive (node, "product"),
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

static bool
is_of_mixer (const LsRecipe *r)
{
  return strchr (rules[r->operator_].sizes, 'N') != NULL;
}

/* Of products that are computed each by itself. */
static void
check_collectives (Check *check, const cJSON *object)
{
  const LsRecipe *r = check->recipe;
  if (r->gathers_each && !r->one_by_one)
    complain (check, cJSON_GetObjectItemCaseSensitive (object, "gathers_each"),
              "the products of %s are joint: expected \"one_by_one\" together with it", operator_name (r));
  if (r->reduces_each && !r->one_by_one)
    complain (check, cJSON_GetObjectItemCaseSensitive (object, "reduces_each"),
              "the products of %s are joint: expected \"one_by_one\" together with it", operator_name (r));
  if (r->reduces_gathered && (!r->reduces_each || r->gathers_each))
    complain (check, cJSON_GetObjectItemCaseSensitive (object, "reduces_gathered"),
              "the products of %s do not share a gather: expected \"reduces_each\" together with it, and no"
              " \"gathers_each\"",
              operator_name (r));
  if (r->gathers_output && r->operator_ != LS_RECIPE_LOGITS)
    complain (check, cJSON_GetObjectItemCaseSensitive (object, "gathers_output"),
              "%s makes no logits; expected it of logits", operator_name (r));
}

/* Of permute it says all, and takes the place of kernels. */
static void
check_one_hot (Check *check, const cJSON *object)
{
  const LsRecipe *r = check->recipe;
  const cJSON *at = cJSON_GetObjectItemCaseSensitive (object, "one_hot");
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
    complain (check, cJSON_GetObjectItemCaseSensitive (object, "backward"), "%s has no backward",
              operator_name (r));
  if (is_step && (!r->forward || r->forward->len == 0))
    complain (check, object, "expected \"forward\": the kernels of %s", operator_name (r));
  check_one_hot (check, object);
  if (r->bias_grad_is_listed && !has_bias (r))
    complain (check, cJSON_GetObjectItemCaseSensitive (object, "bias_grad_listed"),
              "%s has no bias; expected it of qkv, fc1, a product of experts or a sum", operator_name (r));
  if (r->loops && r->operator_ != LS_RECIPE_PERMUTE)
    complain (check, cJSON_GetObjectItemCaseSensitive (object, "loops"),
              "%s does not say how experts run; expected it of permute", operator_name (r));
  if (is_of_mixer (r) && r->models != LS_FOR_MAMBA2)
    complain (check, object, "expected \"for\": \"mamba2\" of %s: of no other mixer kernels are listed",
              operator_name (r));
  if (r->n_widths > 0 && !ls_recipe_is_norm ((LsRecipeOperator) r->operator_))
    complain (check, cJSON_GetObjectItemCaseSensitive (object, "widths"),
              "%s is no norm; expected it of norms", operator_name (r));
  if (r->one_by_one && !has_products)
    complain (check, cJSON_GetObjectItemCaseSensitive (object, "one_by_one"),
              "%s is one product; expected it of qkv or fc1", operator_name (r));
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
  const cJSON *list = cJSON_GetObjectItemCaseSensitive (ls_json_doc_root (doc), "operators");
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
