#include "api/answer.h"

#include <errno.h>

#include "api/request.h"
#include "base/printable.h"
#include "data/text/write_file.h"
#include "show/answers.h"

struct LsAnswer {
  gpointer data;
  LsAnswerForms forms;
  LsForm form;
  GString *notes;
  char *warning; /* NULL: none */
  GError *failure;
  const char *name; /* of the command that made it */
  char *command;    /* its line                       */
};

LsAnswer *
ls_answer_new (void)
{
  LsAnswer *a = g_new0 (LsAnswer, 1);
  a->notes = g_string_new (NULL);
  return a;
}

static void
drop_data (LsAnswer *a)
{
  if (a->forms.free)
    a->forms.free (a->data);
}

void
ls_answer_free (LsAnswer *a)
{
  if (!a)
    return;
  drop_data (a);
  g_string_free (a->notes, TRUE);
  g_free (a->warning);
  g_clear_error (&a->failure);
  g_free (a->command);
  g_free (a);
}

/* --- what a command says ------------------------------------------------------------------------- */

void
ls_answer_take (LsAnswer *a, gpointer data, const LsAnswerForms *forms)
{
  drop_data (a);
  a->data = data;
  a->forms = *forms;
}

LS_ANSWER_FORM (same_text, g_strdup (data))

void
ls_answer_take_text (LsAnswer *a, char *text)
{
  static const LsAnswerForms forms = { same_text, same_text, same_text, NULL, g_free };
  ls_answer_take (a, text, &forms);
}

void
ls_answer_set_command (LsAnswer *a, const char *name, char *command)
{
  a->name = name;
  g_free (a->command);
  a->command = ls_printable_lines (command);
  g_free (command);
}

void
ls_answer_set_form (LsAnswer *a, LsForm form)
{
  a->form = form;
}

static void
append_note (LsAnswer *a, const char *line)
{
  g_autofree char *shown = ls_printable_lines (line);
  g_string_append_printf (a->notes, "%s\n", shown);
}

void
ls_answer_note (LsAnswer *a, const char *format, ...)
{
  va_list args;
  va_start (args, format);
  g_autofree char *line = g_strdup_vprintf (format, args);
  va_end (args);
  append_note (a, line);
}

void
ls_answer_note_lines (LsAnswer *a, const char *lines)
{
  g_autofree char *shown = ls_printable_lines (lines);
  g_string_append (a->notes, shown);
  if (*lines && !g_str_has_suffix (lines, "\n"))
    g_string_append_c (a->notes, '\n');
}

void
ls_answer_note_all (LsAnswer *a, const GPtrArray *notes)
{
  for (guint i = 0; notes && i < notes->len; i++)
    append_note (a, notes->pdata[i]);
}

void
ls_answer_warn (LsAnswer *a, char *text)
{
  g_free (a->warning);
  a->warning = ls_printable_lines (text);
  g_free (text);
}

void
ls_answer_fail (LsAnswer *a, GError *error)
{
  if (a->failure)
    g_error_free (error);
  else
    a->failure = error;
  ls_error_make_printable (a->failure);
}

void
ls_answer_fail_with (LsAnswer *a, LsErrorCode code, const char *format, ...)
{
  va_list args;
  va_start (args, format);
  ls_answer_fail (a, g_error_new_valist (LS_ERROR, (gint) code, format, args));
  va_end (args);
}

void
ls_answer_write (LsAnswer *a, const LsRequest *r, const char *key, LsAnswerWrite write)
{
  g_autofree const char **paths = ls_request_texts (r, key);
  for (const char **path = paths; path && *path; path++) {
    GError *error = NULL;
    if (!write (a->data, *path, &error))
      ls_answer_fail (a, error);
  }
}

char *
ls_answer_page (const LsAnswer *a, GError **error)
{
  g_return_val_if_fail (a, NULL);
  if (!a->forms.json || a->forms.json == same_text)
    return ls_fail_null (error, LS_ERROR_USAGE, "--report shows results; there is none of these options");
  g_autoptr (LsPage) page = ls_page_new (a->name);
  ls_page_set_notes (page, a->notes->str);
  ls_page_take (page, "result", ls_answer_format (a, LS_FORM_JSON, NULL));
  if (a->forms.page)
    a->forms.page (a->data, page);
  return ls_page_format (page, ls_version (), a->command);
}

static gboolean
write_page (const LsAnswer *a, const char *path, GError **error)
{
  g_autofree char *text = ls_answer_page (a, error);
  return text && ls_write_text (path, text, error);
}

void
ls_answer_write_page (LsAnswer *a, const LsRequest *r)
{
  const char *path = ls_request_text (r, "report");
  GError *error = NULL;
  if (path && ls_request_leads (r) && !write_page (a, path, &error))
    ls_answer_fail (a, error);
}

/* --- what is read of it --------------------------------------------------------------------------- */

LsForm
ls_answer_form (const LsAnswer *a)
{
  g_return_val_if_fail (a, LS_FORM_TEXT);
  return a->form;
}

/* A text that is the same in every form stays as it is. */
static char *
to_markdown (const LsAnswer *a, const LsTextStyle *style)
{
  g_autofree char *json = a->forms.json ? a->forms.json (a->data, style) : NULL;
  return !json || a->forms.json == same_text ? g_steal_pointer (&json)
                                             : ls_markdown_of_json (json, a->command);
}

char *
ls_answer_format (const LsAnswer *a, LsForm form, const LsTextStyle *style)
{
  static const LsTextStyle plain;
  g_return_val_if_fail (a && a->forms.text, NULL);
  if (form == LS_FORM_MARKDOWN)
    return to_markdown (a, style ? style : &plain);
  LsAnswerForm *make = form == LS_FORM_JSON ? a->forms.json
      : form == LS_FORM_CSV                 ? a->forms.csv
                                            : a->forms.text;
  return make ? make (a->data, style ? style : &plain) : NULL;
}

/* What went wrong stays with the stream. */
static gboolean
print (const LsAnswer *a, LsForm form, const LsTextStyle *style, FILE *out)
{
  if (form == LS_FORM_JSON && a->forms.print_json) {
    a->forms.print_json (a->data, out);
    return TRUE;
  }
  g_autofree char *text = ls_answer_format (a, form, style);
  return text && (fputs (text, out), TRUE);
}

gboolean
ls_answer_print (const LsAnswer *a, LsForm form, const LsTextStyle *style, FILE *out, GError **error)
{
  g_return_val_if_fail (a && out, FALSE);
  errno = 0;
  if (!print (a, form, style, out))
    g_set_error (error, LS_ERROR, LS_ERROR_USAGE, "there is no %s of this",
                 form == LS_FORM_CSV            ? "CSV"
                     : form == LS_FORM_MARKDOWN ? "Markdown"
                                                : "JSON");
  else if (fflush (out) == EOF || ferror (out))
    g_set_error (error, LS_ERROR, LS_ERROR_IO, "cannot write to %s: %s",
                 out == stdout ? "stdout" : "the file", g_strerror (errno));
  else
    return TRUE;
  return FALSE;
}

char *
ls_answer_notes (const LsAnswer *a)
{
  g_return_val_if_fail (a, NULL);
  return g_strdup (a->notes->str);
}

char *
ls_answer_warning (const LsAnswer *a)
{
  g_return_val_if_fail (a, NULL);
  return g_strdup (a->warning ? a->warning : "");
}

gboolean
ls_answer_check (const LsAnswer *a, GError **error)
{
  g_return_val_if_fail (a, FALSE);
  if (a->failure && error)
    *error = g_error_copy (a->failure);
  return !a->failure;
}
