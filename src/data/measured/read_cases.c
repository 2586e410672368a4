#include "data/measured/read_cases.h"

#include <gio/gio.h>
#include <math.h>
#include <stddef.h>
#include <string.h>

#include "data/datadir.h"
#include "data/jobs/job_files.h"
#include "data/jobs/read_software.h"
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

/* Whether the row, which has a column `source`, is of the table, and of those rows of it that the facts hold
 * for. A row is told by what its columns say, never by its id. */
static bool
facts_hold (const LsTableFacts *facts, const LsCsv *csv, guint row)
{
  g_auto (GStrv) patterns = g_strsplit (facts->of, "|", -1);
  bool is_found = false;
  for (char **pattern = patterns; *pattern; pattern++)
    is_found |= g_pattern_match_simple (*pattern, cell_of (csv, row, "source"));
  if (!is_found)
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

/* LsTableFacts of a software that hold for the row, in order. */
static GPtrArray *
facts_of (const LsSoftwareSpec *software, const LsCsv *csv, guint row)
{
  GPtrArray *held = g_ptr_array_new ();
  for (guint i = 0; software && software->tables && i < software->tables->len; i++) {
    LsTableFacts *f = &g_array_index (software->tables, LsTableFacts, i);
    if (facts_hold (f, csv, row))
      g_ptr_array_add (held, f);
  }
  return held;
}

/* --- the model of a row of measured runs: named in the column `model`, or told by its dimensions --- */

/* Columns named and spelt as the keys of a model. */
static const char *const dimension_keys[]
    = { "layers", "hidden", "heads", "kv_heads", "vocab", "seq", "mlp", "ffn", NULL };

/* The one of them that a job may have otherwise than its model. */
#define SEQ "seq"

/* Another name of the column expert_ffn. */
static const LsField moe_ffn
    = { "moe_ffn", LS_FIELD_UINT, offsetof (LsModel, moe.expert_ffn), .min = 1, .max = 1 << 22 };

/* --- columns --- */

/* Where the columns of a table go, as LsCsvField values; what its rows name. */
typedef struct {
  GArray *columns;      /* all but those of models, into a LsCase    */
  GArray *dimensions;   /* of LsModel                                */
  GArray *architecture; /* of LsModel: what the kind of MLP tells without them */
  int model;            /* `model`; -1: the table has none           */
  GHashTable *models;   /* name -> LsModel, as rows name it          */
  GHashTable *software; /* name -> LsSoftwareSpec, likewise          */
} Table;

static void
model_free (gpointer model)
{
  ls_model_clear (model);
  g_free (model);
}

/* Diagnostics for columns that a table without `model` lacks. */
static void
find_models (Table *t, const LsCsv *csv, LsDiagList *diags)
{
  for (const char *const *key = dimension_keys; *key; key++) {
    const LsField *field = ls_field_find (ls_model_fields, *key);
    bool may_lack = t->model >= 0 || !field->required;
    ls_csv_fields_find (csv, field, may_lack ? LS_CSV_OPTIONAL : LS_CSV_REQUIRED, 0, t->dimensions, diags);
  }
  ls_csv_fields_find (csv, &moe_ffn, LS_CSV_OPTIONAL, 0, t->architecture, diags);
  for (const LsField *f = ls_model_fields; f->key; f++)
    if (!f->file_only && !ls_field_find (ls_strategy_fields, f->key)
        && !g_strv_contains (dimension_keys, f->key))
      ls_csv_fields_find (csv, f, LS_CSV_OPTIONAL, 0, t->architecture, diags);
}

/* --- a named model --- */

/* NULL: the row names none, or a wrong one. */
static const LsModel *
named_model (const LsCsv *csv, guint row, const Table *t, LsDiagList *diags)
{
  g_autofree char *name = ls_data_beside (ls_csv_name (csv), cell_of (csv, row, "model"));
  LsModel *model = g_hash_table_lookup (t->models, name);
  if (model || *name == '\0')
    return model;
  g_autofree char *message = NULL, *bare = ls_override_bare (name),
                  *path = ls_data_find (LS_DATA_MODELS, bare, &message);
  if (!path)
    return ls_csv_error (csv, row, (guint) t->model, diags, "%s", message), NULL;
  model = g_new0 (LsModel, 1);
  if (!ls_model_load (name, model, NULL, diags)) {
    g_free (model);
    return NULL;
  }
  g_hash_table_insert (t->models, g_strdup (name), model);
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

/* --- dimensions --- */

/* Only a table with a column `model` may leave them out. */
static void
check_complete (const LsCsv *csv, guint row, const Table *t, LsDiagList *diags)
{
  g_autoptr (GString) missing = g_string_new (NULL);
  for (guint i = 0; t->model >= 0 && dimension_keys[i]; i++) {
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
    ls_csv_error (csv, row, (guint) t->model, diags,
                  "expected a model, or else columns with its dimensions; there are none of %s",
                  missing->str);
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
  if (m->moe.n_experts == 0) {
    m->ffn = m->ffn ? m->ffn : 4 * m->hidden;
    return;
  }
  m->moe.every = m->moe.every ? m->moe.every : 1;
  m->ffn = m->ffn ? m->ffn : m->moe.expert_ffn;
  if (m->moe.top_k == 0 || m->moe.top_k > m->moe.n_experts || m->moe.expert_ffn == 0)
    ls_csv_error (csv, row, (guint) ls_csv_column (csv, "experts"), diags,
                  "expected with it columns top_k, of at most as many, and expert_ffn; got %u and %u",
                  m->moe.top_k, m->moe.expert_ffn);
}

static void
apply_model_facts (const GPtrArray *facts, LsModel *m)
{
  for (guint i = 0; i < facts->len; i++)
    set_all (ls_model_fields, ((const LsTableFacts *) facts->pdata[i])->model, m);
}

/* The model of a row. A named one is as its file says; a dimension that the row states otherwise is a
 * diagnostic, but for `seq`, which is the job's and goes to s->seq. Else the row's dimensions, `facts` (of
 * LsTableFacts) put over them, and what follows from the kind of MLP. m was zero. */
static void
case_model_read (const LsCsv *csv, guint row, const Table *t, const GPtrArray *facts, LsModel *m,
                 LsStrategy *s, LsDiagList *diags)
{
  const LsModel *named = named_model (csv, row, t, diags);
  bool names_one = *cell_of (csv, row, "model") != '\0';
  ls_csv_fields_read (csv, row, t->dimensions, m, diags);
  if (named) {
    ls_csv_fields_read (csv, row, t->architecture, m, diags);
    check_agrees (csv, row, t->dimensions, m, named, diags);
    check_agrees (csv, row, t->architecture, m, named, diags);
    s->seq = m->seq;
    ls_model_clear (m);
    ls_model_copy (m, named);
  }
  if (names_one)
    return;
  check_complete (csv, row, t, diags);
  apply_model_facts (facts, m); /* the MLP decides on what follows */
  m->norm = m->mlp == LS_MLP_SWIGLU ? LS_NORM_RMSNORM : LS_NORM_LAYERNORM;
  m->position = m->mlp == LS_MLP_GELU ? LS_POSITION_LEARNED : LS_POSITION_ROPE;
  m->linear_bias = m->tied_embeddings = m->mlp == LS_MLP_GELU;
  ls_csv_fields_read (csv, row, t->architecture, m, diags);
  apply_model_facts (facts, m);
  check_heads (csv, row, m, diags);
  check_experts (csv, row, m, diags);
}

/* --- a run -------------------------------------------------------------------------------------------- */

#define TEXT(key_) #key_, LS_FIELD_STRING, offsetof(LsCase, key_)

/* What only some say may be empty, or its column absent. */
static const LsField case_fields[] = {
  { TEXT (id), .required = true },
  { TEXT (split) },
  { TEXT (source) },
  { TEXT (caveat) },
  { TEXT (software) },
  { TEXT (family) },
  { "iteration_s", LS_FIELD_DOUBLE, offsetof (LsCase, measured_s), .required = true, .min = LS_MEASURED_MIN_S,
    .max = LS_MEASURED_MAX_S },
  { TEXT (cluster) },
  { TEXT (hardware) },
  { "allocated_gib", LS_FIELD_DOUBLE, offsetof (LsCase, allocated_gib), .above = true,
    .max = LS_MEASURED_MAX_GIB },
  { "first_s", LS_FIELD_DOUBLE, offsetof (LsCase, first_s), .min = LS_MEASURED_MIN_S,
    .max = LS_MEASURED_MAX_S },
  { TEXT (first_commit) },
  { "gpus_per_node", LS_FIELD_UINT, offsetof (LsCase, gpus_per_node), .min = 1, .max = UINT32_MAX },
  { NULL },
};

/* Columns named and spelt as the knobs of a strategy. What a run cannot do without; all others may be empty
 * or absent, and are then as `run` has them. One of those is a key of a model too. */
static const char *const required_keys[] = { "gpus", "global_batch", NULL };
#define ATTENTION "attention"

static void
case_free (gpointer data)
{
  LsCase *c = data;
  ls_fields_clear (case_fields, c);
  g_free (c->wrong);
  g_strfreev (c->ignored);
  ls_import_unref (c->from);
  g_clear_pointer (&c->notes, g_ptr_array_unref);
  g_clear_pointer (&c->assumptions, g_array_unref);
  g_clear_pointer (&c->knobs, g_array_unref);
  ls_model_clear (&c->model);
  ls_strategy_clear (&c->strategy);
  g_hash_table_unref (c->said);
  g_free (c);
}

LsCase *
ls_case_new (void)
{
  LsCase *c = g_new0 (LsCase, 1);
  ls_strategy_init (&c->strategy);
  char **texts[] = { &c->split, &c->cluster, &c->hardware, &c->source, &c->caveat, &c->software };
  for (guint i = 0; i < G_N_ELEMENTS (texts); i++)
    *texts[i] = g_strdup ("");
  c->said = g_hash_table_new (g_str_hash, g_str_equal);
  return c;
}

GPtrArray *
ls_cases_new (void)
{
  return g_ptr_array_new_with_free_func (case_free);
}

/* --- columns --- */

static void
find_knobs (const LsCsv *csv, GArray *columns, LsDiagList *diags)
{
  size_t offset = offsetof (LsCase, strategy);
  for (const char *const *key = required_keys; *key; key++)
    ls_csv_fields_find (csv, ls_field_find (ls_strategy_fields, *key), LS_CSV_REQUIRED, offset, columns,
                        diags);
  for (const LsField *f = ls_strategy_fields; f->key; f++) {
    bool is_models = ls_field_find (ls_model_fields, f->key) && strcmp (f->key, ATTENTION) != 0;
    if (!g_strv_contains (required_keys, f->key) && !f->file_only && !is_models
        && !ls_field_find (case_fields, f->key)) /* no other column has its name */
      ls_csv_fields_find (csv, f, LS_CSV_OPTIONAL, offset, columns, diags);
  }
}

static void
software_free (gpointer software)
{
  ls_software_clear (software);
  g_free (software);
}

static void
mark_columns (const GArray *columns, bool *ret_is_read)
{
  for (guint i = 0; i < columns->len; i++)
    ret_is_read[g_array_index (columns, LsCsvField, i).column] = true;
}

/* Notes of whoever made the table, or keys that were mistyped. Newly allocated. */
static char **
ignored_columns (const LsCsv *csv, const Table *t)
{
  guint n = ls_csv_n_columns (csv);
  g_autofree bool *is_read = g_new0 (bool, n);
  mark_columns (t->columns, is_read);
  mark_columns (t->dimensions, is_read);
  mark_columns (t->architecture, is_read);
  if (t->model >= 0)
    is_read[t->model] = true;
  g_autoptr (GStrvBuilder) names = g_strv_builder_new ();
  for (guint i = 0; i < n; i++)
    if (!is_read[i])
      g_strv_builder_add (names, ls_csv_column_name (csv, i));
  return g_strv_builder_end (names);
}

/* --- rows --- */

/* NULL: the row names none, or a wrong one. */
static const LsSoftwareSpec *
software_of (const LsCsv *csv, guint row, const Table *t, LsDiagList *diags)
{
  g_autofree char *name = ls_data_beside (ls_csv_name (csv), cell_of (csv, row, "software"));
  LsSoftwareSpec *software = g_hash_table_lookup (t->software, name);
  if (software || *name == '\0')
    return software;
  g_autofree char *message = NULL, *path = ls_data_find (LS_DATA_SOFTWARE, name, &message);
  software = g_new0 (LsSoftwareSpec, 1);
  if (path && ls_software_load (name, software, diags)) {
    g_hash_table_insert (t->software, g_strdup (name), software);
    return software;
  }
  if (!path)
    ls_csv_error (csv, row, (guint) ls_csv_column (csv, "software"), diags, "%s", message);
  g_free (software);
  return NULL;
}

/* What the software knows of the table that the row is of: where it ran, and its family, of which the last
 * that is named holds and the row may say another; of its model: case_model_read(). */
static void
apply_facts (const GPtrArray *facts, LsCase *c)
{
  const char *family = *c->software ? c->software : "other";
  for (guint i = 0; i < facts->len; i++) {
    const LsTableFacts *f = facts->pdata[i];
    set_all (ls_strategy_fields, f->strategy, &c->strategy);
    for (char **setting = f->strategy; setting && *setting; setting++) {
      g_autofree char *key = g_strndup (*setting, strcspn (*setting, "="));
      g_hash_table_add (c->said, (gpointer) ls_field_find (ls_strategy_fields, key)->key);
    }
    family = f->family ? f->family : family;
    if (f->cluster) {
      g_free (c->cluster);
      c->cluster = g_strdup (f->cluster);
    }
    c->has_facts |= f->model || f->strategy || f->cluster;
  }
  if (!c->family || *c->family == '\0') {
    g_free (c->family);
    c->family = g_strdup (family);
  }
}

static LsCase *
read_case (const LsCsv *csv, guint row, const Table *t, LsDiagList *diags)
{
  LsCase *c = ls_case_new ();
  const LsSoftwareSpec *software = software_of (csv, row, t, diags);
  g_autoptr (GPtrArray) facts = facts_of (software, csv, row);
  if (software) {
    ls_strategy_copy (&c->strategy, &software->defaults);
    c->runs_like = g_intern_string (software->runs_like);
  }
  case_model_read (csv, row, t, facts, &c->model, &c->strategy, diags);
  ls_csv_fields_read (csv, row, t->columns, c, diags);
  for (const LsField *f = ls_strategy_fields; f->key; f++)
    if (*cell_of (csv, row, f->key) != '\0')
      g_hash_table_add (c->said, (gpointer) f->key);
  apply_facts (facts, c);
  g_autofree char *cluster = c->cluster;
  c->cluster = ls_data_beside (ls_csv_name (csv), cluster);
  if (!c->model.name) { /* one without a file is called as its row is */
    c->model.name = g_strdup (c->id);
    c->model.source = g_strdup (c->source);
    c->model.attention = LS_ATTENTION_FLASH; /* as where a model's file does not say */
  }
  if (c->strategy.dp == 1 && c->strategy.cp > 1 && c->strategy.dp_kind == LS_DP_NONE)
    c->strategy.dp_kind
        = LS_DP_AUTO; /* a row with dp 1 says none; gradients are summed over cp all the same */
  if (software)
    ls_software_settle (software, &c->strategy);
  if (c->strategy.use.attention != LS_ATTENTION_AUTO)
    c->model.attention = (LsAttention) c->strategy.use.attention;
  return c;
}

/* A row with wrong cells is one that says so, by the first complaint without its place: "dtype: expected ..."
 * of "f.csv:3:9: error: /id/dtype: expected ...". */
static LsCase *
read_any_case (const LsCsv *csv, guint row, const Table *t)
{
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  LsCase *c = read_case (csv, row, t, diags);
  if (ls_diag_list_n (diags) == 0)
    return c;
  g_autoptr (GError) error = NULL;
  ls_diag_list_to_error (diags, &error);
  g_autofree char *line = ls_first_line (error->message),
                  *start = g_strdup_printf ("/%s/", ls_csv_cell (csv, row, 0));
  c->wrong = g_strdup (g_str_has_prefix (line, start) ? line + strlen (start) : line);
  c->id = c->id ? c->id : g_strdup_printf ("row %u", row + 1);
  if (c->measured_s <= 0)
    c->measured_s = NAN;
  return c;
}

static GPtrArray *
read_rows (const LsCsv *csv, const Table *t, bool by_row, LsDiagList *diags)
{
  GPtrArray *cases = ls_cases_new ();
  bool is_any_whole = false;
  for (guint row = 0; row < ls_csv_n_rows (csv); row++) {
    LsCase *c = by_row ? read_any_case (csv, row, t) : read_case (csv, row, t, diags);
    is_any_whole |= !c->wrong;
    g_ptr_array_add (cases, c);
  }
  if (by_row && !is_any_whole) { /* all that is wrong, with its place */
    g_ptr_array_unref (cases);
    return read_rows (csv, t, false, diags);
  }
  g_autoptr (GHashTable) seen = g_hash_table_new (g_str_hash, g_str_equal);
  for (guint i = 0; i < cases->len; i++) {
    const LsCase *c = g_ptr_array_index (cases, i);
    if (c->id && !g_hash_table_add (seen, c->id))
      ls_csv_error (csv, i, (guint) ls_csv_column (csv, "id"), diags, "duplicate id \"%s\"", c->id);
  }
  return cases;
}

static GPtrArray *
cases_of_table (const LsCsv *csv, bool by_row, LsDiagList *diags)
{
  guint n_before = ls_diag_list_n (diags);
  g_autoptr (GArray) columns = g_array_new (FALSE, FALSE, sizeof (LsCsvField)),
                     dimensions = g_array_new (FALSE, FALSE, sizeof (LsCsvField)),
                     architecture = g_array_new (FALSE, FALSE, sizeof (LsCsvField));
  g_autoptr (GHashTable) models = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, model_free),
                         software = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, software_free);
  Table t = { columns, dimensions, architecture, ls_csv_column (csv, "model"), models, software };
  ls_csv_fields_find_all (csv, case_fields, 0, columns, diags);
  find_models (&t, csv, diags);
  find_knobs (csv, columns, diags);
  if (ls_csv_n_rows (csv) == 0)
    ls_csv_header_error (csv, diags, "expected a row for each measured run below the header; got none");
  g_autoptr (GPtrArray) cases
      = ls_diag_list_n (diags) == n_before ? read_rows (csv, &t, by_row, diags) : NULL;
  if (cases && cases->len > 0)
    ((LsCase *) cases->pdata[0])->ignored = ignored_columns (csv, &t);
  return ls_diag_list_n (diags) == n_before ? g_steal_pointer (&cases) : NULL;
}

GPtrArray *
ls_read_cases (const char *path, const char *text, bool by_row, LsDiagList *diags)
{
  g_autoptr (LsCsv) csv = ls_csv_parse (path, text, -1, diags);
  return csv ? cases_of_table (csv, by_row, diags) : NULL;
}

/* --- tables to fill in ---------------------------------------------------------------------------------- */

GResource *templates_get_resource (void); /* of templates.gresource.xml */

/* A line of a template as it stands there; "# dtype  @" says what that knob means, and ": fp16, bf16", what
 * it may be. */
static void
append_line (GString *out, const char *line)
{
  static const char open[] = "# ";
  if (!g_str_has_suffix (line, "@")) {
    g_string_append (out, line);
    return;
  }
  g_autofree char *key = g_strndup (line + strlen (open), strcspn (line + strlen (open), " "));
  const LsField *knob = ls_field_find (ls_strategy_fields, key);
  g_string_append_printf (out, "%.*s%s", (int) strlen (line) - 1, line, ls_field_meaning (knob));
  const LsEnumName *names = knob->kind == LS_FIELD_ENUM ? knob->names : NULL;
  for (const LsEnumName *n = names; n && n->name; n++)
    if (ls_enum_is_first (names, n))
      g_string_append_printf (out, "%s%s", n == names ? ": " : ", ", n->name);
  if (knob->kind == LS_FIELD_BOOL)
    g_string_append (out, ": 0, 1");
}

char *
ls_template_text (const char *name)
{
  g_autofree char *path = g_strdup_printf ("/lockstep/measured/template_%s.txt", name);
  g_autoptr (GBytes) file
      = g_resource_lookup_data (templates_get_resource (), path, G_RESOURCE_LOOKUP_FLAGS_NONE, NULL);
  if (!file)
    return NULL;
  g_autofree char *text = g_strndup (g_bytes_get_data (file, NULL), g_bytes_get_size (file));
  g_auto (GStrv) lines = g_strsplit (text, "\n", -1);
  GString *out = g_string_new (NULL);
  for (char **line = lines; *line; line++) {
    append_line (out, *line);
    g_string_append (out, line[1] ? "\n" : "");
  }
  return g_string_free (out, FALSE);
}
