#include "data/text/csv.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/list.h"
#include "base/printable.h"
#include "data/text/field.h"
#include "data/text/read_file.h"
#include "data/text/text_place.h"

typedef struct {
  char *text;
  size_t offset; /* in the file */
} Cell;

struct LsCsv {
  char *name;
  char *text; /* of the file, for diagnostics */
  guint n_columns;
  GArray *cells; /* Cell, row by row, the header row first */
};

static const Cell *
cell_at (const LsCsv *csv, guint line, guint column)
{
  return &g_array_index (csv->cells, Cell, line * csv->n_columns + column);
}

/* Beyond what is ever shown, a place is not worth a walk through the file. */
static void
add_diag (const LsCsv *csv, LsDiagList *diags, size_t offset, const char *pointer, const char *hint,
          const char *message)
{
  if (*csv->text && ls_diag_list_n (diags) < LS_DIAG_MAX_SHOWN)
    ls_text_diag (LS_ERROR_INPUT, csv->name, csv->text, offset, diags, pointer, hint, message);
  else
    ls_diag_add (diags, LS_ERROR_INPUT, csv->name, 1, 1, pointer, NULL, hint, "%s", message);
}

void
ls_csv_error (const LsCsv *csv, guint row, guint column, LsDiagList *diags, const char *format, ...)
{
  va_list args;
  va_start (args, format);
  g_autofree char *message = g_strdup_vprintf (format, args);
  va_end (args);

  const Cell *cell = cell_at (csv, row + 1, column);
  g_autofree char *pointer = ls_diag_list_n (diags) < LS_DIAG_MAX_SHOWN
      ? g_strdup_printf ("/%s/%s", ls_csv_cell (csv, row, 0), ls_csv_column_name (csv, column))
      : NULL;
  add_diag (csv, diags, cell->offset, pointer, NULL, message);
}

void
ls_csv_header_error (const LsCsv *csv, LsDiagList *diags, const char *format, ...)
{
  va_list args;
  va_start (args, format);
  g_autofree char *message = g_strdup_vprintf (format, args);
  va_end (args);
  add_diag (csv, diags, cell_at (csv, 0, 0)->offset, NULL, NULL, message);
}

/* The text between quotes; *at stands on the opening one. FALSE if the
 * closing one is missing. */
static gboolean
read_quoted (const char **at, GString *text)
{
  for (++*at; **at; ++*at) {
    if (**at == '"' && *++*at != '"')
      return TRUE;
    g_string_append_c (text, **at);
  }
  return FALSE;
}

static gboolean
ends_line (const char *at)
{
  return *at == '\0' || *at == '\n' || (*at == '\r' && at[1] == '\n');
}

static void
skip_line (const char **at)
{
  while (!ends_line (*at))
    ++*at;
  *at += **at == '\r';
  *at += **at == '\n';
}

/* Reads one cell and leaves *at on what ended it. */
static gboolean
read_cell (LsCsv *csv, const char **at, LsDiagList *diags)
{
  Cell cell = { .offset = (size_t) (*at - csv->text) };
  g_autoptr (GString) text = g_string_new (NULL);
  gboolean is_closed = **at != '"' || read_quoted (at, text);
  for (; !ends_line (*at) && **at != ','; ++*at)
    g_string_append_c (text, **at);
  ls_make_printable (text->str);
  cell.text = g_strdup (text->str);
  g_array_append_val (csv->cells, cell);
  if (!is_closed)
    add_diag (csv, diags, cell.offset, NULL, NULL, "expected a closing quote; got the end of the file");
  return is_closed;
}

/* Reads the cells of one row and the end of its line. FALSE if it is broken. */
static gboolean
read_row (LsCsv *csv, const char **at, LsDiagList *diags)
{
  guint before = csv->cells->len;
  size_t start = (size_t) (*at - csv->text);
  gboolean ok = read_cell (csv, at, diags);
  while (ok && **at == ',') {
    ++*at;
    ok = read_cell (csv, at, diags);
  }
  skip_line (at);

  guint n = csv->cells->len - before;
  if (csv->n_columns == 0)
    csv->n_columns = n;
  if (ok && n != csv->n_columns) {
    g_autofree char *message
        = g_strdup_printf ("expected %u cells as in the header; got %u", csv->n_columns, n);
    add_diag (csv, diags, start, NULL, NULL, message);
    ok = FALSE;
  }
  if (!ok)
    g_array_set_size (csv->cells, before);
  return ok;
}

static gboolean
has_distinct_columns (const LsCsv *csv, LsDiagList *diags)
{
  g_autoptr (GHashTable) names = g_hash_table_new (g_str_hash, g_str_equal);
  gboolean ok = TRUE;
  for (guint i = 0; i < csv->n_columns; i++) {
    const Cell *cell = cell_at (csv, 0, i);
    if (g_hash_table_add (names, cell->text))
      continue;
    g_autofree char *message = g_strdup_printf ("duplicate column \"%s\"", cell->text);
    add_diag (csv, diags, cell->offset, NULL, NULL, message);
    ok = FALSE;
  }
  return ok;
}

/* One column whose name has several semicolons or tabs: a spreadsheet's idea of commas. */
static gboolean
has_commas (const LsCsv *csv, LsDiagList *diags)
{
  const char *only = csv->n_columns == 1 ? ls_csv_column_name (csv, 0) : "";
  const char *separator = strchr (only, ';') ? ";" : strchr (only, '\t') ? "\t" : NULL;
  if (!separator || strchr (only, *separator) == strrchr (only, *separator))
    return TRUE;
  add_diag (csv, diags, cell_at (csv, 0, 0)->offset + strcspn (only, separator), NULL,
            "write the table with commas, and decimals with points",
            *separator == ';' ? "expected commas between cells; got semicolons"
                              : "expected commas between cells; got tabs");
  return FALSE;
}

LsCsv *
ls_csv_parse (const char *name, const char *text, gssize n, LsDiagList *diags)
{
  size_t size = 0;
  g_autofree char *own = text ? NULL : ls_read_file (name, LS_MAX_INPUT_BYTES, &size, diags);
  if (!text && !own)
    return NULL;
  text = text ? text : own;
  n = own ? (gssize) size : n;
  if (!g_utf8_validate (text, n, NULL)) {
    ls_file_diag (diags, LS_ERROR_INPUT, name, NULL, "expected UTF-8 text without NUL");
    return NULL;
  }
  g_autoptr (LsCsv) csv = g_new0 (LsCsv, 1);
  csv->name = g_strdup (name);
  csv->text = g_strdup (text + (g_str_has_prefix (text, "\xef\xbb\xbf") ? 3 : 0)); /* byte order mark */
  csv->cells = ls_list_new (sizeof (Cell), ls_clear_text);

  gboolean ok = TRUE;
  for (const char *at = csv->text; *at;)
    if (ends_line (at) || *at == '#')
      skip_line (&at);
    else
      ok &= read_row (csv, &at, diags);
  if (csv->n_columns == 0)
    return add_diag (csv, diags, 0, NULL, NULL, "expected a header row; got an empty file"), NULL;
  if (!ok || !has_commas (csv, diags) || !has_distinct_columns (csv, diags))
    return NULL;
  return g_steal_pointer (&csv);
}

void
ls_csv_free (LsCsv *csv)
{
  if (!csv)
    return;
  g_free (csv->name);
  g_free (csv->text);
  g_array_unref (csv->cells);
  g_free (csv);
}

const char *
ls_csv_name (const LsCsv *csv)
{
  return csv->name;
}

guint
ls_csv_n_rows (const LsCsv *csv)
{
  return csv->cells->len / csv->n_columns - 1;
}

guint
ls_csv_n_columns (const LsCsv *csv)
{
  return csv->n_columns;
}

const char *
ls_csv_column_name (const LsCsv *csv, guint column)
{
  return cell_at (csv, 0, column)->text;
}

int
ls_csv_column (const LsCsv *csv, const char *name)
{
  for (guint i = 0; i < csv->n_columns; i++)
    if (strcmp (ls_csv_column_name (csv, i), name) == 0)
      return (int) i;
  return -1;
}

const char *
ls_csv_cell (const LsCsv *csv, guint row, guint column)
{
  g_assert (row < ls_csv_n_rows (csv) && column < csv->n_columns);
  return cell_at (csv, row + 1, column)->text;
}

/* Whether a spreadsheet would take a text for a formula, which may start programs: a name of somebody else's
 * kernel. Not a number, nor our own options ("--tp 8 --sp"), which cannot be one without these characters. */
static gboolean
is_formula (const char *cell)
{
  if (!strchr ("+-=@\t", *cell) || *cell == '\0' || cell[1] == '\0')
    return FALSE;
  char *end;
  g_ascii_strtod (cell, &end);
  gboolean are_options = g_str_has_prefix (cell, "--") && g_ascii_islower (cell[2]) && !strpbrk (cell, "|!(");
  return *end != '\0' && !are_options;
}

/* A cell that begins with '#' would make its line a comment, if it is the first. */
static gboolean
needs_quotes (const char *cell)
{
  return *cell == '#' || strpbrk (cell, ",\"\r\n") || is_formula (cell);
}

void
ls_csv_append (GString *out, const char *cell)
{
  if (!cell)
    return;
  if (!needs_quotes (cell)) {
    g_string_append (out, cell);
    return;
  }
  g_autofree char *text = g_strconcat (is_formula (cell) ? "'" : "", cell, NULL);
  ls_csv_append_quoted (out, text);
}

void
ls_csv_append_quoted (GString *out, const char *cell)
{
  g_string_append_c (out, '"');
  for (const char *c = cell ? cell : ""; *c; c++)
    g_string_append_printf (out, *c == '"' ? "\"\"" : "%c", *c);
  g_string_append_c (out, '"');
}

void
ls_csv_append_number (GString *out, double value)
{
  char buffer[G_ASCII_DTOSTR_BUF_SIZE];
  g_string_append (out, isnan (value) ? "" : g_ascii_dtostr (buffer, sizeof buffer, value));
}

void
ls_csv_append_int (GString *out, int64_t value)
{
  g_string_append_printf (out, "%" PRId64, value);
}

void
ls_csv_print (FILE *out, const char *cell)
{
  if (cell && !needs_quotes (cell)) { /* nearly all, and there may be millions */
    fputs (cell, out);
    return;
  }
  g_autoptr (GString) text = g_string_new (NULL);
  ls_csv_append (text, cell);
  fputs (text->str, out);
}

/* --- rows of a CSV read by field tables (data/text/field.h): a column is named and spelt as a key --- */

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
ls_csv_fields_find (const LsCsv *csv, const LsField *field, LsCsvNeed need, size_t offset, GArray *columns,
                    LsDiagList *diags)
{
  int at = ls_csv_column (csv, field->key);
  g_autofree char *got = at < 0 && need == LS_CSV_REQUIRED ? what_is_there (csv, field->key) : NULL;
  if (got)
    ls_csv_header_error (csv, diags, "expected a column \"%s\"; got %s", field->key, got);
  if (at < 0)
    return;
  LsCsvField column = { field, offset, (guint) at, need == LS_CSV_OPTIONAL };
  g_array_append_val (columns, column);
}

void
ls_csv_fields_find_all (const LsCsv *csv, const LsField *fields, size_t offset, GArray *columns,
                        LsDiagList *diags)
{
  for (const LsField *f = fields; f->key; f++)
    if (f->kind != LS_FIELD_IGNORED)
      ls_csv_fields_find (csv, f, f->required ? LS_CSV_REQUIRED : LS_CSV_OPTIONAL, offset, columns, diags);
}

static void
read_field (const LsCsv *csv, guint row, const LsCsvField *c, void *target, LsDiagList *diags)
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

char *
ls_csv_unread (const LsCsv *csv, const GArray *columns)
{
  g_autoptr (GPtrArray) names = g_ptr_array_new ();
  for (guint i = 0; i < ls_csv_n_columns (csv); i++) {
    guint k = 0;
    while (k < columns->len && g_array_index (columns, LsCsvField, k).column != i)
      k++;
    if (k == columns->len)
      g_ptr_array_add (names, (gpointer) ls_csv_column_name (csv, i));
  }
  return names->len > 0 ? ls_joined (names, 0, ", ") : NULL;
}

void
ls_csv_fields_read (const LsCsv *csv, guint row, const GArray *columns, void *target, LsDiagList *diags)
{
  for (guint i = 0; i < columns->len; i++)
    read_field (csv, row, &g_array_index (columns, LsCsvField, i), target, diags);
}
