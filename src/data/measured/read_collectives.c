#include "data/measured/read_collectives.h"

#include <stddef.h>

#include "data/text/csv_fields.h"

#define MAX_TIME_US 1e13 /* beyond the clock: 115 days */

static const LsField fields[] = {
  { "cluster", LS_FIELD_STRING, offsetof (LsMeasuredCollective, cluster) },
  { "trust", LS_FIELD_STRING, offsetof (LsMeasuredCollective, trust) },
  { "op", LS_FIELD_STRING, offsetof (LsMeasuredCollective, op), .required = true },
  { "gpus", LS_FIELD_UINT, offsetof (LsMeasuredCollective, n_gpus), .min = 1, .max = LS_COLLECTIVE_MAX_GPUS },
  { "nodes", LS_FIELD_UINT, offsetof (LsMeasuredCollective, n_nodes), .min = 1,
    .max = LS_COLLECTIVE_MAX_GPUS },
  { "size_bytes", LS_FIELD_UINT64, offsetof (LsMeasuredCollective, bytes),
    .max = (double) LS_COLLECTIVE_MAX_BYTES },
  { "time_us", LS_FIELD_DOUBLE, offsetof (LsMeasuredCollective, time_us), .above = true, .max = MAX_TIME_US },
  { NULL },
};

static void
measured_free (gpointer data)
{
  LsMeasuredCollective *m = data;
  g_free (m->cluster);
  g_free (m->trust);
  g_free (m->op);
  g_free (m);
}

static LsMeasuredCollective *
read_row (const LsCsv *csv, guint row, const GArray *columns, LsDiagList *diags)
{
  LsMeasuredCollective *m = g_new0 (LsMeasuredCollective, 1);
  ls_csv_fields_read (csv, row, columns, m, diags);
  if (m->n_gpus > 0 && m->n_nodes > 0 && m->n_gpus % m->n_nodes != 0)
    ls_csv_error (csv, row, (guint) ls_csv_column (csv, "nodes"), diags,
                  "expected a divisor of gpus %u; got %u", m->n_gpus, m->n_nodes);
  return m;
}

static GPtrArray *
collectives_of_table (const LsCsv *csv, LsDiagList *diags)
{
  guint n_before = ls_diag_list_n (diags);
  g_autoptr (GArray) columns = g_array_new (FALSE, FALSE, sizeof (LsCsvField));
  for (const LsField *field = fields; field->key; field++)
    ls_csv_fields_find (csv, field, !g_str_equal (field->key, "trust"), 0, columns, diags);
  if (ls_csv_n_rows (csv) == 0)
    ls_csv_header_error (csv, diags,
                         "expected a row for each measured collective below the header; got none");
  if (ls_diag_list_n (diags) > n_before)
    return NULL;

  g_autoptr (GPtrArray) rows = g_ptr_array_new_with_free_func (measured_free);
  for (guint row = 0; row < ls_csv_n_rows (csv); row++)
    g_ptr_array_add (rows, read_row (csv, row, columns, diags));
  return ls_diag_list_n (diags) == n_before ? g_steal_pointer (&rows) : NULL;
}

GPtrArray *
ls_read_collectives (const char *path, LsDiagList *diags)
{
  g_autoptr (LsCsv) csv = ls_csv_load (path, diags);
  return csv ? collectives_of_table (csv, diags) : NULL;
}

GPtrArray *
ls_parse_collectives (const char *name, const char *text, LsDiagList *diags)
{
  g_autoptr (LsCsv) csv = ls_csv_parse (name, text, -1, diags);
  return csv ? collectives_of_table (csv, diags) : NULL;
}
