#include "show/tell_import.h"

#include <string.h>

#include "data/launch/write_import.h"

/* --- JSON ----------------------------------------------------------------------------------------- */

static void
add_list (LsJsonOut *w, const char *key, const GPtrArray *list)
{
  ls_json_out_begin_array (w, key);
  for (guint i = 0; i < list->len; i++)
    ls_json_out_string (w, NULL, list->pdata[i]);
  ls_json_out_end_array (w);
}

void
ls_import_add_provenance (const LsImport *import, LsJsonOut *w)
{
  ls_json_out_begin_object (w, "from");
  add_list (w, "files", import->files);
  ls_json_out_string (w, "program", import->program);
  add_list (w, "inferred", import->inferred);
  add_list (w, "unknown", import->unknown);
  add_list (w, "ignored", import->ignored);
  ls_json_out_end_object (w);
}

static void
add_measured (LsJsonOut *w, const LsImportMeasured *m)
{
  ls_json_out_begin_object (w, "measured");
  if (m->step_s > 0) {
    ls_json_out_double (w, "iteration_s", m->step_s);
    ls_json_out_uint (w, "n_lines", m->n_lines);
    ls_json_out_uint (w, "n_steady", m->n_steady);
  }
  if (m->allocated_bytes > 0)
    ls_json_out_double (w, "allocated_bytes", m->allocated_bytes);
  if (m->reserved_bytes > 0)
    ls_json_out_double (w, "reserved_bytes", m->reserved_bytes);
  ls_json_out_end_object (w);
}

char *
ls_import_to_json (const LsImport *import)
{
  GString *text = g_string_new (NULL);
  LsJsonOut w;
  ls_json_out_init (&w, text, 2);
  ls_json_out_begin_object (&w, NULL);
  ls_json_out_schema (&w, "import");
  ls_json_out_string (&w, "program", import->program);
  ls_json_out_begin_object (&w, "model");
  ls_import_write_model (import, &w);
  ls_json_out_end_object (&w);
  ls_json_out_begin_object (&w, "strategy");
  ls_import_write_strategy (import, &w);
  ls_json_out_end_object (&w);
  add_measured (&w, &import->measured);
  add_list (&w, "inferred", import->inferred);
  add_list (&w, "unknown", import->unknown);
  add_list (&w, "contradictory", import->conflicts);
  add_list (&w, "ignored", import->ignored);
  ls_json_out_end_object (&w);
  g_string_append_c (text, '\n');
  return g_string_free (text, FALSE);
}

/* --- text ----------------------------------------------------------------------------------------- */

/* The lines of a JSON object without what makes it JSON: `  "tp": 8,` as `  tp 8`. */
static void
add_object (GString *out, const char *title, const LsImport *import,
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
add_lines (GString *out, const char *title, const GPtrArray *list)
{
  if (list->len > 0)
    g_string_append_printf (out, "\n%s\n", title);
  for (guint i = 0; i < list->len; i++)
    g_string_append_printf (out, "  %s\n", (const char *) list->pdata[i]);
}

static void
add_ignored (GString *out, const GPtrArray *list)
{
  gsize width = 100;
  if (list->len > 0)
    g_string_append (out, "\nignored, as they matter neither to time nor to memory");
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

char *
ls_import_to_text (const LsImport *import)
{
  GString *out = g_string_new (NULL);
  const LsImportMeasured *m = &import->measured;
  g_string_append_printf (out, "%s: a job of %s\n\n", import->path, import->program);
  add_object (out, "model", import, ls_import_write_model);
  g_string_append_c (out, '\n');
  add_object (out, "strategy", import, ls_import_write_strategy);
  if (m->step_s > 0)
    g_string_append_printf (out, "\nmeasured\n  %-22s %.6g s, the median of the last %u of %u lines\n",
                            "iteration", m->step_s, m->n_steady, m->n_lines);
  if (m->allocated_bytes > 0)
    g_string_append_printf (out, "  %-22s %.2f GiB, reserved %.2f GiB\n", "fullest rank",
                            m->allocated_bytes / (1 << 30), m->reserved_bytes / (1 << 30));
  add_lines (out, "inferred", import->inferred);
  add_lines (out, "not known, may matter", import->unknown);
  add_lines (out, "contradictory", import->conflicts);
  add_ignored (out, import->ignored);
  return g_string_free (out, FALSE);
}
