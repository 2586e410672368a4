#include "show/tell_import.h"

#include <math.h>
#include <string.h>

#include "data/jobs/job_files.h"
#include "data/jobs/imported.h"

/* --- JSON ----------------------------------------------------------------------------------------- */

#include "show/import_keys.h"

/* --- text ----------------------------------------------------------------------------------------- */

#define MAX_ROWS 12

/* The lines of a document without what makes it JSON, and without its head: `  "tp": 8,` as `  tp 8`. */
static void
append_document (GString *out, const char *title, const LsJsonDoc *doc)
{
  g_autofree char *text = ls_import_text (doc, NULL, "");
  g_auto (GStrv) lines = g_strsplit (text, "\n", -1);
  g_string_append_printf (out, "%s\n", title);
  for (guint i = 4; lines[i]; i++) {
    g_auto (GStrv) parts = g_strsplit (lines[i], "\": ", 2);
    gsize n = parts[0] && parts[1] ? strlen (parts[1]) : 0;
    if (n > 0)
      g_string_append_printf (out, "  %-22s %.*s\n", parts[0] + 3, (int) (parts[1][n - 1] == ',' ? n - 1 : n),
                              parts[1]);
  }
}

static void
append_words (GString *out, const char *title, const LsImported *import, LsRemarkKind kind)
{
  gsize width = 100;
  guint n_words = ls_import_n_remarks (import, kind);
  if (n_words > 0)
    g_string_append_printf (out, "\n%s", title);
  for (guint i = 0; i < import->remarks->len; i++) {
    const LsRemark *r = &g_array_index (import->remarks, LsRemark, i);
    const char *word = r->text ? r->text : r->key;
    gsize n = strlen (word) + 1;
    if (r->kind != kind)
      continue;
    width += n;
    g_string_append_printf (out, "%s%s", width > 100 ? "\n  " : " ", word);
    width = width > 100 ? n + 1 : width;
  }
  if (n_words > 0)
    g_string_append_c (out, '\n');
}

#include "show/import_text.h"
