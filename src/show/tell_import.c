#include "show/tell_import.h"

#include <math.h>
#include <string.h>

#include "data/jobs/job_files.h"
#include "data/jobs/imported.h"

/* --- JSON ----------------------------------------------------------------------------------------- */

/* Keys of the strategy that another program has as it has them by itself: char *, static. */
static GPtrArray *
given_way (const LsImport *import)
{
  GPtrArray *keys = g_ptr_array_new ();
  for (const LsField *f = ls_strategy_fields; f->key; f++)
    if (ls_import_gives_way (import, f))
      g_ptr_array_add (keys, (gpointer) f->key);
  return keys;
}

#include "show/import_keys.h"

char *
ls_import_to_json (const LsImport *import)
{
  g_autoptr (GPtrArray) by_rule = given_way (import);
  LsJsonOut w;
  ls_json_out_open_as (&w, "import");
  ls_keys_import (&w, import, by_rule);
  return ls_json_out_close (&w);
}

/* --- text ----------------------------------------------------------------------------------------- */

#define MAX_ROWS 12

/* The lines of a JSON object without what makes it JSON: `  "tp": 8,` as `  tp 8`. */
static void
append_object (GString *out, const char *title, const LsImport *import,
               void (*write) (const LsImport *import, LsJsonOut *w))
{
  GString *json = g_string_new (NULL);
  LsJsonOut w;
  ls_json_out_init (&w, json, 2);
  ls_json_out_begin_object (&w, NULL);
  write (import, &w);
  ls_json_out_end_object (&w);
  g_auto (GStrv) lines = g_strsplit (json->str, "\n", -1);
  g_string_append_printf (out, "%s\n", title);
  for (guint i = 1; lines[i] && lines[i + 1]; i++) {
    g_auto (GStrv) parts = g_strsplit (lines[i], "\": ", 2);
    gsize n = parts[0] && parts[1] ? strlen (parts[1]) : 0;
    if (n > 0)
      g_string_append_printf (out, "  %-22s %.*s\n", parts[0] + 3, (int) (parts[1][n - 1] == ',' ? n - 1 : n),
                              parts[1]);
  }
  g_string_free (json, TRUE);
}

static void
append_words (GString *out, const char *title, const GPtrArray *list)
{
  gsize width = 100;
  if (list->len > 0)
    g_string_append_printf (out, "\n%s", title);
  for (guint i = 0; i < list->len; i++) {
    const char *word = list->pdata[i];
    gsize n = strlen (word) + 1;
    width += n;
    g_string_append_printf (out, "%s%s", width > 100 ? "\n  " : " ", word);
    width = width > 100 ? n + 1 : width;
  }
  if (list->len > 0)
    g_string_append_c (out, '\n');
}

#include "show/import_text.h"
