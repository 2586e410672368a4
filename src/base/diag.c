#include "base/diag.h"

#include <string.h>

#include "base/near.h"
#include "base/printable.h"

#define MAX_LINE 96   /* code points of a source line; longer ones are cut around the caret */
#define MAX_TEXT 1000 /* of a message, pointer or hint; longer ones are cut at the end      */

typedef struct {
  LsErrorCode code;
  char *file;
  int line, col;
  int caret; /* column of source_line */
  char *pointer;
  char *source_line; /* MAX_LINE code points of it at most */
  char *hint;
  char *message;
} Diag;

struct LsDiagList {
  GPtrArray *diags; /* Diag, owned: the first max_kept; NULL where that is 0 */
  guint n;          /* with those that are not kept    */
  guint max_kept;
};

static void
diag_free (gpointer data)
{
  Diag *d = data;
  g_free (d->file);
  g_free (d->pointer);
  g_free (d->source_line);
  g_free (d->hint);
  g_free (d->message);
  g_free (d);
}

static LsDiagList *
new_keeping (guint max_kept)
{
  LsDiagList *list = g_new0 (LsDiagList, 1);
  if (max_kept > 0)
    list->diags = g_ptr_array_new_with_free_func (diag_free);
  list->max_kept = max_kept;
  return list;
}

LsDiagList *
ls_diag_list_new (void)
{
  return new_keeping (LS_DIAG_MAX_SHOWN);
}

LsDiagList *
ls_diag_list_new_counting (void)
{
  return new_keeping (0);
}

void
ls_diag_list_free (LsDiagList *list)
{
  if (!list)
    return;
  g_clear_pointer (&list->diags, g_ptr_array_unref);
  g_free (list);
}

/* Cuts a line longer than MAX_LINE to a window in which column *col is at a
 * third, and moves *col along. */
static char *
window (const char *text, int *col)
{
  glong n = g_utf8_strlen (text, -1);
  if (n <= MAX_LINE)
    return g_strdup (text);
  glong from = CLAMP (*col - MAX_LINE / 3, 0, n - MAX_LINE);
  g_autofree char *part = g_utf8_substring (text, from, from + MAX_LINE);
  if (from > 0)
    *col -= (int) from - 3;
  return g_strconcat (from > 0 ? "..." : "", part, from + MAX_LINE < n ? "..." : "", NULL);
}

static char *
shown_text (const char *text)
{
  char *shown = ls_printable (text);
  if (shown && g_utf8_strlen (shown, -1) > MAX_TEXT)
    strcpy (g_utf8_offset_to_pointer (shown, MAX_TEXT - 3), "...");
  return shown;
}

/* What another file names that lies elsewhere may be anybody's secret. */
static void
keep_far (LsDiagList *list, LsErrorCode code, const char *file)
{
  Diag *d = g_new0 (Diag, 1);
  d->code = code;
  d->file = ls_printable (file);
  d->message = g_strdup ("is not what it should be; a file elsewhere names it, so nothing of it is shown");
  d->hint = g_strdup ("lockstep check FILE shows what is wrong with a file that you name");
  g_ptr_array_add (list->diags, d);
}

void
ls_diag_add (LsDiagList *list, LsErrorCode code, const char *file, int line, int col, const char *pointer,
             const char *source_line, const char *hint, const char *format, ...)
{
  list->n++;
  if (list->n > list->max_kept)
    return;
  if (file && !ls_is_near (file)) {
    keep_far (list, code, file);
    return;
  }
  va_list args;
  va_start (args, format);
  g_autofree char *message = g_strdup_vprintf (format, args);
  va_end (args);

  Diag *d = g_new (Diag, 1);
  *d = (Diag) {
    .code = code,
    .file = ls_printable (file),
    .line = line,
    .col = col,
    .caret = col,
    .pointer = shown_text (pointer),
    .hint = shown_text (hint),
    .message = shown_text (message),
  };
  g_autofree char *source = ls_printable (source_line);
  d->source_line = source ? window (source, &d->caret) : NULL;
  g_ptr_array_add (list->diags, d);
}

guint
ls_diag_list_n (const LsDiagList *list)
{
  return list->n;
}

guint
ls_diag_list_n_kept (const LsDiagList *list)
{
  return list->diags->len;
}

LsDiagView
ls_diag_list_at (const LsDiagList *list, guint i)
{
  const Diag *d = g_ptr_array_index (list->diags, i);
  return (LsDiagView) { d->file, d->pointer, d->hint, d->message, d->line, d->col };
}

/* Blanks that bring a caret below column col of text, whatever a tab is worth. */
static char *
indent_to (const char *text, int col)
{
  GString *blanks = g_string_new (NULL);
  for (int i = 1; i < col; i++) {
    g_string_append_c (blanks, *text == '\t' ? '\t' : ' ');
    if (*text)
      text = g_utf8_next_char (text);
  }
  return g_string_free (blanks, FALSE);
}

static void
format_source (GString *out, const Diag *d)
{
  g_autofree char *margin = g_strdup_printf ("%5d", d->line);
  g_string_append_printf (out, *d->source_line ? "%s | %s\n" : "%s |%s\n", margin, d->source_line);
  if (d->caret < 1)
    return;
  g_autofree char *blanks = indent_to (d->source_line, d->caret);
  g_string_append_printf (out, "%*s | %s^\n", (int) strlen (margin), "", blanks);
}

static void
format_one (GString *out, const Diag *d)
{
  if (d->file && d->line > 0)
    g_string_append_printf (out, "%s:%d:%d: ", d->file, d->line, d->col);
  else if (d->file)
    g_string_append_printf (out, "%s: ", d->file);
  g_string_append (out, "error: ");
  if (d->pointer && *d->pointer)
    g_string_append_printf (out, "%s: ", d->pointer);
  g_string_append_printf (out, "%s\n", d->message);
  if (d->source_line && d->line > 0)
    format_source (out, d);
  if (d->hint)
    g_string_append_printf (out, "note: %s\n", d->hint);
}

char *
ls_diag_list_format (const LsDiagList *list)
{
  GString *out = g_string_new (NULL);
  for (guint i = 0; i < list->diags->len; i++)
    format_one (out, g_ptr_array_index (list->diags, i));
  if (list->n > list->diags->len)
    g_string_append_printf (out, "... and %u more\n", list->n - list->diags->len);
  return g_string_free (out, FALSE);
}

gboolean
ls_diag_list_to_error (const LsDiagList *list, GError **error)
{
  if (list->n == 0)
    return TRUE;
  g_assert (list->diags->len > 0);
  const Diag *first = g_ptr_array_index (list->diags, 0);
  g_autofree char *text = ls_diag_list_format (list);
  g_set_error_literal (error, LS_ERROR, (gint) first->code, g_strchomp (text));
  return FALSE;
}

gboolean
ls_fail (GError **error, LsErrorCode code, const char *format, ...)
{
  va_list args;
  va_start (args, format);
  g_propagate_error (error, g_error_new_valist (LS_ERROR, (gint) code, format, args));
  va_end (args);
  return FALSE;
}

gboolean
ls_check (const LsWrong *rows, guint n, GError **error)
{
  for (guint i = 0; i < n; i++)
    if (rows[i].is_wrong)
      return ls_fail (error, LS_ERROR_USAGE, "%s", rows[i].why);
  return TRUE;
}

gpointer
ls_fail_null (GError **error, LsErrorCode code, const char *format, ...)
{
  va_list args;
  va_start (args, format);
  g_propagate_error (error, g_error_new_valist (LS_ERROR, (gint) code, format, args));
  va_end (args);
  return NULL;
}

gboolean
ls_diag_fail (LsDiagList *list, LsErrorCode code, const char *format, ...)
{
  va_list args;
  va_start (args, format);
  g_autofree char *message = g_strdup_vprintf (format, args);
  va_end (args);
  ls_diag_add (list, code, NULL, 0, 0, NULL, NULL, NULL, "%s", message);
  return FALSE;
}

char *
ls_first_line (const char *message)
{
  g_autofree char *line = g_strndup (message, strcspn (message, "\n"));
  const char *mark = strstr (line, "error: ");
  return g_strdup (mark && (mark == line || mark[-1] == ' ') ? mark + strlen ("error: ") : line);
}

void
ls_note (GPtrArray *notes, const char *format, ...)
{
  va_list args;
  va_start (args, format);
  g_ptr_array_add (notes, g_strdup_vprintf (format, args));
  va_end (args);
}
