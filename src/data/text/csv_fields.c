#include "data/text/csv_fields.h"

#include "data/text/field_value.h"

/* A column of that name in other letters, or "none". */
static char *
what_is_there (const LsCsv *csv, const char *name)
{
  for (guint i = 0; i < ls_csv_n_columns (csv); i++)
    if (g_ascii_strcasecmp (ls_csv_column_name (csv, i), name) == 0)
      return g_strdup_printf ("\"%s\"", ls_csv_column_name (csv, i));
  return g_strdup ("none");
}

void
ls_csv_fields_find (const LsCsv *csv, const LsField *field, gboolean is_required, size_t offset,
                    GArray *columns, LsDiagList *diags)
{
  int at = ls_csv_column (csv, field->key);
  g_autofree char *got = at < 0 && is_required ? what_is_there (csv, field->key) : NULL;
  if (got)
    ls_csv_header_error (csv, diags, "expected a column \"%s\"; got %s", field->key, got);
  if (at < 0)
    return;
  LsCsvField column = { field, offset, (guint) at, false };
  g_array_append_val (columns, column);
}

void
ls_csv_fields_find_optional (const LsCsv *csv, const LsField *field, size_t offset, GArray *columns)
{
  int at = ls_csv_column (csv, field->key);
  LsCsvField column = { field, offset, (guint) at, true };
  if (at >= 0)
    g_array_append_val (columns, column);
}

static void
read_cell (const LsCsv *csv, guint row, const LsCsvField *c, void *target, LsDiagList *diags)
{
  const char *text = ls_csv_cell (csv, row, c->column);
  if (c->may_be_empty && *text == '\0')
    return;
  if (ls_field_value_set (c->field, (char *) target + c->offset, text))
    return;
  g_autofree char *got = g_strdup_printf ("\"%.40s\"", text);
  g_autofree char *complaint = ls_field_value_complaint (c->field, LS_FIELD_IN_TEXT, text, got);
  ls_csv_error (csv, row, c->column, diags, "%s", complaint);
}

void
ls_csv_fields_read (const LsCsv *csv, guint row, const GArray *columns, void *target, LsDiagList *diags)
{
  for (guint i = 0; i < columns->len; i++)
    read_cell (csv, row, &g_array_index (columns, LsCsvField, i), target, diags);
}
