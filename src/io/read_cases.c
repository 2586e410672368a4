#include "io/read_cases.h"

#include <stddef.h>

#include "io/csv_fields.h"
#include "io/read_file.h"
#include "io/read_model.h"
#include "io/read_strategy.h"

#define TEXT(key_, is_required) \
  { #key_, LS_FIELD_STRING, offsetof (LsCase, key_), .required = (is_required) }

static const LsField case_fields[] = {
  TEXT (id, true),
  TEXT (split, false),
  TEXT (cluster, true),
  TEXT (source, false),
  TEXT (caveat, false),
  { "iteration_s", LS_FIELD_DOUBLE, offsetof (LsCase, measured_s), .required = true, .min = LS_MEASURED_MIN_S,
    .max = LS_MEASURED_MAX_S },
  { "allocated_gib", LS_FIELD_DOUBLE, offsetof (LsCase, allocated_gib), .above = true, .max = LS_MEASURED_MAX_GIB },
  { NULL },
};

/* Columns named and spelt as the keys of a model. */
static const char *const model_keys[] = { "layers", "hidden", "heads", "kv_heads", "ffn", "vocab", "seq", "mlp" };

/* Columns named and spelt as the knobs of a strategy. */
static const char *const strategy_keys[] = {
  "gpus", "attention", "dtype", "grad_dtype", "global_batch", "micro_batch", "tp", "pp", "vpp",
  "dp", "cp", "ep", "zero", "sp", "recompute", "schedule", "dp_kind", "dp_overlap", "tp_overlap", "p2p",
};

static void
case_free (gpointer data)
{
  LsCase *c = data;
  g_free (c->id);
  g_free (c->split);
  g_free (c->cluster);
  g_free (c->source);
  g_free (c->caveat);
  ls_model_clear (&c->model);
  ls_strategy_clear (&c->strategy);
  g_free (c);
}

static LsCase *
case_new (void)
{
  LsCase *c = g_new0 (LsCase, 1);
  ls_strategy_init (&c->strategy);
  c->split = g_strdup ("");
  c->source = g_strdup ("");
  c->caveat = g_strdup ("");
  return c;
}

/* The columns of the file that we know, as LsCsvField values. */
static GArray *
find_columns (const LsCsv *csv, LsDiagList *diags)
{
  GArray *columns = g_array_new (FALSE, FALSE, sizeof (LsCsvField));
  for (const LsField *field = case_fields; field->key; field++)
    ls_csv_fields_find (csv, field, field->required, 0, columns, diags);
  for (guint i = 0; i < G_N_ELEMENTS (model_keys); i++)
    ls_csv_fields_find (csv, ls_field_find (ls_model_fields, model_keys[i]), TRUE, offsetof (LsCase, model), columns,
                        diags);
  for (guint i = 0; i < G_N_ELEMENTS (strategy_keys); i++)
    ls_csv_fields_find (csv, ls_field_find (ls_strategy_fields, strategy_keys[i]), TRUE, offsetof (LsCase, strategy),
                        columns, diags);
  return columns;
}

/* What one cell alone cannot show. */
static void
finish_case (const LsCsv *csv, guint row, LsCase *c, LsDiagList *diags)
{
  c->model.name = g_strdup (c->id);
  c->model.source = g_strdup (c->source);
  c->model.attention = (LsAttention) c->strategy.attention;
  if (c->strategy.dp == 1 && c->strategy.cp > 1 && c->strategy.dp_kind == LS_DP_NONE)
    c->strategy.dp_kind = LS_DP_AUTO; /* a row with dp 1 says none; gradients are summed over cp all the same */
  if (c->model.n_heads == 0 || c->model.hidden == 0)
    return;
  c->model.head_dim = c->model.hidden / c->model.n_heads;
  if (c->model.hidden % c->model.n_heads != 0)
    ls_csv_error (csv, row, (guint) ls_csv_column (csv, "heads"), diags,
                  "expected a divisor of hidden %u; got %u", c->model.hidden, c->model.n_heads);
  if (c->model.n_kv_heads > 0 && c->model.n_heads % c->model.n_kv_heads != 0)
    ls_csv_error (csv, row, (guint) ls_csv_column (csv, "kv_heads"), diags, "expected a divisor of heads %u; got %u",
                  c->model.n_heads, c->model.n_kv_heads);
}

static LsCase *
read_case (const LsCsv *csv, guint row, const GArray *columns, LsDiagList *diags)
{
  LsCase *c = case_new ();
  ls_csv_fields_read (csv, row, columns, c, diags);
  finish_case (csv, row, c, diags);
  return c;
}

static void
check_distinct_ids (const LsCsv *csv, const GPtrArray *cases, LsDiagList *diags)
{
  guint id_column = (guint) ls_csv_column (csv, "id");
  g_autoptr (GHashTable) seen = g_hash_table_new (g_str_hash, g_str_equal);
  for (guint i = 0; i < cases->len; i++) {
    const LsCase *c = g_ptr_array_index (cases, i);
    if (c->id && !g_hash_table_add (seen, c->id))
      ls_csv_error (csv, i, id_column, diags, "duplicate id \"%s\"", c->id);
  }
}

static GPtrArray *
cases_of_table (const LsCsv *csv, LsDiagList *diags)
{
  guint n_before = ls_diag_list_n (diags);
  g_autoptr (GArray) columns = find_columns (csv, diags);
  if (ls_csv_n_rows (csv) == 0)
    ls_csv_header_error (csv, diags, "expected a row for each measured run below the header; got none");
  if (ls_diag_list_n (diags) > n_before)
    return NULL;

  g_autoptr (GPtrArray) cases = g_ptr_array_new_with_free_func (case_free);
  for (guint row = 0; row < ls_csv_n_rows (csv); row++)
    g_ptr_array_add (cases, read_case (csv, row, columns, diags));
  check_distinct_ids (csv, cases, diags);
  return ls_diag_list_n (diags) == n_before ? g_steal_pointer (&cases) : NULL;
}

GPtrArray *
ls_read_cases (const char *path, char **ret_sha256, LsDiagList *diags)
{
  size_t n = 0;
  g_autofree char *text = ls_read_file (path, LS_MAX_INPUT_BYTES, &n, diags);
  g_autoptr (LsCsv) csv = text ? ls_csv_parse (path, text, (gssize) n, diags) : NULL;
  GPtrArray *cases = csv ? cases_of_table (csv, diags) : NULL;
  if (cases && ret_sha256)
    *ret_sha256 = g_compute_checksum_for_data (G_CHECKSUM_SHA256, (const guchar *) text, n);
  return cases;
}

GPtrArray *
ls_parse_cases (const char *name, const char *text, LsDiagList *diags)
{
  g_autoptr (LsCsv) csv = ls_csv_parse (name, text, -1, diags);
  return csv ? cases_of_table (csv, diags) : NULL;
}
