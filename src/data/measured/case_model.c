#include "data/measured/case_model.h"

#include <stddef.h>

#include "data/datadir.h"
#include "data/jobs/job_files.h"
#include "data/text/csv.h"
#include "data/text/field.h"
#include "data/text/override.h"

/* What the runs of a published table had that its columns do not say (LsTableFacts of their software),
 * put over a row of it. */

static const char *
cell_of (const LsCsv *csv, guint row, const char *column)
{
  int at = ls_csv_column (csv, column);
  return at < 0 ? "" : ls_csv_cell (csv, row, (guint) at);
}

static bool
matches_any (const char *patterns, const char *text)
{
  g_auto (GStrv) all = g_strsplit (patterns, "|", -1);
  bool is_found = false;
  for (char **pattern = all; *pattern; pattern++)
    is_found |= g_pattern_match_simple (*pattern, text);
  return is_found;
}

bool
ls_table_facts_hold (const LsTableFacts *facts, const LsCsv *csv, guint row)
{
  if (!matches_any (facts->of, cell_of (csv, row, "source")))
    return false;
  for (char **condition = facts->when; condition && *condition; condition++) {
    g_auto (GStrv) pair = g_strsplit (*condition, "=", 2);
    if (!ls_software_condition_holds (pair[1], cell_of (csv, row, pair[0])))
      return false;
  }
  return true;
}

/* Values were checked when the facts were read. */
static void
set_all (const LsField *fields, char **settings, void *target)
{
  for (char **setting = settings; setting && *setting; setting++) {
    g_auto (GStrv) pair = g_strsplit (*setting, "=", 2);
    ls_field_value_set (ls_field_find (fields, pair[0]), target, pair[1]);
  }
}

static void
table_facts_set_model (const LsTableFacts *facts, LsModel *model)
{
  set_all (ls_model_fields, facts->model, model);
}

void
ls_table_facts_set_strategy (const LsTableFacts *facts, LsStrategy *strategy, GHashTable *said)
{
  set_all (ls_strategy_fields, facts->strategy, strategy);
  for (char **setting = facts->strategy; setting && *setting; setting++) {
    g_autofree char *key = g_strndup (*setting, strcspn (*setting, "="));
    g_hash_table_add (said, (gpointer) ls_field_find (ls_strategy_fields, key)->key);
  }
}

/* --- the model of a row of measured runs: named in the column `model`, or told by its dimensions --- */

/* Columns named and spelt as the keys of a model. */
static const char *const dimension_keys[]
    = { "layers", "hidden", "heads", "kv_heads", "vocab", "seq", "mlp", "ffn" };

/* The one of them that a job may have otherwise than its model. */
#define SEQ "seq"

/* Another name of the column expert_ffn. */
static const LsField moe_ffn
    = { "moe_ffn", LS_FIELD_UINT, offsetof (LsModel, expert_ffn), .min = 1, .max = 1 << 22 };

/* --- columns --- */

static void
model_free (gpointer model)
{
  ls_model_clear (model);
  g_free (model);
}

static bool
is_dimension (const char *key)
{
  for (guint i = 0; i < G_N_ELEMENTS (dimension_keys); i++)
    if (g_str_equal (dimension_keys[i], key))
      return true;
  return false;
}

static void
find_dimension (CaseModels *models, const LsCsv *csv, const char *key, LsDiagList *diags)
{
  GArray *columns = models->dimensions;
  guint n = columns->len;
  const LsField *field = ls_field_find (ls_model_fields, key);
  bool may_lack = models->column >= 0 || !field->required;
  ls_csv_fields_find (csv, field, !may_lack, 0, columns, diags);
  if (columns->len > n)
    g_array_index (columns, LsCsvField, n).may_be_empty = may_lack;
}

void
case_models_init (CaseModels *models, const LsCsv *csv, LsDiagList *diags)
{
  *models = (CaseModels) {
    .column = ls_csv_column (csv, "model"),
    .dimensions = g_array_new (FALSE, FALSE, sizeof (LsCsvField)),
    .architecture = g_array_new (FALSE, FALSE, sizeof (LsCsvField)),
    .named = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, model_free),
  };
  for (guint i = 0; i < G_N_ELEMENTS (dimension_keys); i++)
    find_dimension (models, csv, dimension_keys[i], diags);
  ls_csv_fields_find_optional (csv, &moe_ffn, 0, models->architecture);
  for (const LsField *f = ls_model_fields; f->key; f++)
    if (!f->file_only && !ls_field_find (ls_strategy_fields, f->key) && !is_dimension (f->key))
      ls_csv_fields_find_optional (csv, f, 0, models->architecture);
}

void
case_models_clear (CaseModels *models)
{
  g_array_unref (models->dimensions);
  g_array_unref (models->architecture);
  g_hash_table_unref (models->named);
}

/* --- a named model --- */

/* The name may have changes behind it. */
static bool
is_there (const char *name, char **reterr_message)
{
  const char *changes = ls_override_find (name);
  g_autofree char *own = changes ? g_strndup (name, (gsize) (changes - 1 - name)) : g_strdup (name);
  g_autofree char *path = ls_data_find (LS_DATA_MODELS, own, reterr_message);
  return path != NULL;
}

/* NULL: the row names none, or a wrong one. */
static const LsModel *
named_model (const LsCsv *csv, guint row, const CaseModels *models, LsDiagList *diags)
{
  const char *cell = models->column < 0 ? "" : ls_csv_cell (csv, row, (guint) models->column);
  g_autofree char *name = ls_data_beside (ls_csv_name (csv), cell);
  LsModel *model = g_hash_table_lookup (models->named, name);
  if (model || *name == '\0')
    return model;
  g_autofree char *message = NULL;
  if (!is_there (name, &message)) {
    ls_csv_error (csv, row, (guint) models->column, diags, "%s", message);
    return NULL;
  }
  model = g_new0 (LsModel, 1);
  if (!ls_model_load (name, model, NULL, diags)) {
    g_free (model);
    return NULL;
  }
  g_hash_table_insert (models->named, g_strdup (name), model);
  return model;
}

/* Says which cells of the columns are another model's. */
static void
check_agrees (const LsCsv *csv, guint row, const GArray *columns, const LsModel *said, const LsModel *named,
              LsDiagList *diags)
{
  for (guint i = 0; i < columns->len; i++) {
    const LsCsvField *c = &g_array_index (columns, LsCsvField, i);
    if (*ls_csv_cell (csv, row, c->column) == '\0' || g_str_equal (c->field->key, SEQ))
      continue;
    g_autofree char *is = ls_field_text (c->field, said, NULL), *has = ls_field_text (c->field, named, NULL);
    if (g_strcmp0 (is, has) != 0)
      ls_csv_error (csv, row, c->column, diags, "expected %s or nothing, as model \"%s\" has it; got %s",
                    has ? has : "nothing", named->name, is);
  }
}

static void
take_named (const LsCsv *csv, guint row, const CaseModels *models, const LsModel *named, LsModel *m,
            LsStrategy *s, LsDiagList *diags)
{
  ls_csv_fields_read (csv, row, models->architecture, m, diags);
  check_agrees (csv, row, models->dimensions, m, named, diags);
  check_agrees (csv, row, models->architecture, m, named, diags);
  s->seq = m->seq;
  ls_model_clear (m);
  ls_model_copy (m, named);
}

/* --- dimensions --- */

/* Only a table with a column `model` may leave them out. */
static void
check_complete (const LsCsv *csv, guint row, const CaseModels *models, LsDiagList *diags)
{
  g_autoptr (GString) missing = g_string_new (NULL);
  for (guint i = 0; models->column >= 0 && i < G_N_ELEMENTS (dimension_keys); i++) {
    const char *key = dimension_keys[i];
    int column = ls_csv_column (csv, key);
    if (!ls_field_find (ls_model_fields, key)->required)
      continue;
    if (column < 0)
      g_string_append_printf (missing, "%s%s", missing->len > 0 ? ", " : "", key);
    else if (*ls_csv_cell (csv, row, (guint) column) == '\0')
      ls_csv_error (csv, row, (guint) column, diags, "expected a value, as the row names no model; got none");
  }
  if (missing->len > 0)
    ls_csv_error (csv, row, (guint) models->column, diags,
                  "expected a model, or else columns with its dimensions; there are none of %s",
                  missing->str);
}

/* What the kind of MLP tells. */
static void
set_architecture (LsModel *m)
{
  gboolean is_gpt = m->mlp == LS_MLP_GELU;
  m->norm = m->mlp == LS_MLP_SWIGLU ? LS_NORM_RMSNORM : LS_NORM_LAYERNORM;
  m->position = is_gpt ? LS_POSITION_LEARNED : LS_POSITION_ROPE;
  m->linear_bias = is_gpt;
  m->tied_embeddings = is_gpt;
}

static void
check_heads (const LsCsv *csv, guint row, LsModel *m, LsDiagList *diags)
{
  if (m->n_heads == 0 || m->hidden == 0)
    return;
  bool is_given = m->head_dim > 0;
  m->head_dim = is_given ? m->head_dim : m->hidden / m->n_heads;
  if (!is_given && m->hidden % m->n_heads != 0)
    ls_csv_error (csv, row, (guint) ls_csv_column (csv, "heads"), diags,
                  "expected a divisor of hidden %u; got %u", m->hidden, m->n_heads);
  m->n_kv_heads = m->n_kv_heads ? m->n_kv_heads : m->n_heads;
  if (m->n_heads % m->n_kv_heads != 0)
    ls_csv_error (csv, row, (guint) ls_csv_column (csv, "kv_heads"), diags,
                  "expected a divisor of heads %u; got %u", m->n_heads, m->n_kv_heads);
}

static void
check_experts (const LsCsv *csv, guint row, LsModel *m, LsDiagList *diags)
{
  if (m->n_experts == 0) {
    m->ffn = m->ffn ? m->ffn : 4 * m->hidden;
    return;
  }
  m->moe_every = m->moe_every ? m->moe_every : 1;
  m->ffn = m->ffn ? m->ffn : m->expert_ffn;
  if (m->top_k == 0 || m->top_k > m->n_experts || m->expert_ffn == 0)
    ls_csv_error (csv, row, (guint) ls_csv_column (csv, "experts"), diags,
                  "expected with it columns top_k, of at most as many, and expert_ffn; got %u and %u",
                  m->top_k, m->expert_ffn);
}

static void
apply_facts (const LsCsv *csv, guint row, const GArray *facts, LsModel *m)
{
  for (guint i = 0; facts && i < facts->len; i++) {
    const LsTableFacts *f = &g_array_index (facts, LsTableFacts, i);
    if (ls_table_facts_hold (f, csv, row))
      table_facts_set_model (f, m);
  }
}

void
case_model_read (const LsCsv *csv, guint row, const CaseModels *models, const GArray *facts, LsModel *m,
                 LsStrategy *s, LsDiagList *diags)
{
  const LsModel *named = named_model (csv, row, models, diags);
  bool names_one = models->column >= 0 && *ls_csv_cell (csv, row, (guint) models->column) != '\0';
  ls_csv_fields_read (csv, row, models->dimensions, m, diags);
  if (named)
    take_named (csv, row, models, named, m, s, diags);
  if (names_one)
    return;
  check_complete (csv, row, models, diags);
  apply_facts (csv, row, facts, m); /* the MLP decides on what follows */
  set_architecture (m);
  ls_csv_fields_read (csv, row, models->architecture, m, diags);
  apply_facts (csv, row, facts, m);
  check_heads (csv, row, m, diags);
  check_experts (csv, row, m, diags);
}
