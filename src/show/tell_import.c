#include "show/tell_import.h"

#include <math.h>
#include <string.h>

#include "data/jobs/job_files.h"
#include "data/jobs/imported.h"

/* --- JSON ----------------------------------------------------------------------------------------- */

#include "show/import_keys.h"

/* --- text ----------------------------------------------------------------------------------------- */

#define MAX_ROWS 12

static void
append_document (GString *out, const char *title, const LsJsonDoc *doc)
{
  LsJsonOut w;
  ls_json_out_init (&w, out, 0);
  g_string_append_printf (out, "%s\n", title);
  for (const cJSON *one = ls_import_first (doc); one; one = one->next) {
    g_string_append_printf (out, "  %-22s ", one->string);
    ls_json_out_node (&w, NULL, one);
    g_string_append_c (out, '\n');
  }
}

/* What is remarked so, in lines of at most 100 columns. */
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
