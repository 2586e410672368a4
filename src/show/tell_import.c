#include "show/tell_import.h"

#include <math.h>
#include <string.h>

#include "data/jobs/job_files.h"
#include "data/jobs/imported.h"
#include "show/text_table.h"

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
add_words (GString *out, const char *title, const GPtrArray *list)
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

static void
add_measured_lines (GString *out, const LsImportMeasured *m)
{
  const double gib = 1 << 30, most = MAX (m->allocated_bytes, m->reserved_bytes);
  if (m->step_s > 0 || m->flops_per_gpu > 0 || most > 0)
    g_string_append (out, "\nmeasured\n");
  if (m->step_s > 0)
    g_string_append_printf (out, "  %-22s %.6g s, the median of the last %u of %u lines\n", "iteration",
                            m->step_s, m->n_steady, m->n_lines);
  if (m->flops_per_gpu > 0)
    g_string_append_printf (out, "  %-22s %.4g TFLOP/s of one\n", "as it counts", m->flops_per_gpu / 1e12);
  if (m->tokens_per_s_per_gpu > 0)
    g_string_append_printf (out, "  %-22s %.5g tokens/s of one\n", "as it counts", m->tokens_per_s_per_gpu);
  if (m->allocated_bytes > 0 && m->reserved_bytes > 0)
    g_string_append_printf (out, "  %-22s %.2f GiB, reserved %.2f GiB\n", "fullest rank",
                            m->allocated_bytes / gib, m->reserved_bytes / gib);
  else if (most > 0)
    g_string_append_printf (out, "  %-22s %s%.2f GiB\n", "fullest rank",
                            m->reserved_bytes > 0 ? "reserved " : "", most / gib);
}

char *
ls_import_to_text (const LsImport *import)
{
  g_autoptr (GPtrArray) by_rule = given_way (import);
  GString *out = g_string_new (NULL);
  g_string_append_printf (out, "%s: a job of %s\n\n", import->path, import->program);
  add_object (out, "model", import, ls_import_write_model);
  g_string_append_c (out, '\n');
  add_object (out, "strategy", import, ls_import_write_strategy);
  add_measured_lines (out, &import->measured);
  add_lines (out, "inferred", import->inferred);
  add_words (out, "said by rules of the program, not by the file: --software replaces them", by_rule);
  add_lines (out, "not known, may matter", import->unknown);
  add_lines (out, "contradictory", import->conflicts);
  add_words (out, "ignored, as they matter neither to time nor to memory", import->ignored);
  return g_string_free (out, FALSE);
}

/* --- profiles that become a trace ------------------------------------------------------------------- */

#define MAX_ROWS 12

static void
append_time (GString *to, const char *label, LsTime time, LsTime of)
{
  g_autofree char *text = ls_format_time (time);
  g_string_append_printf (to, "  %-10s %10s", label, text);
  if (of > 0)
    g_string_append_printf (to, "  %5.1f %%", 100.0 * ls_time_to_s (time) / ls_time_to_s (of));
}

static void
append_ranks (GString *to, const LsProfileImport *p)
{
  g_string_append_printf (to, "  %-10s %10u  ", "ranks", p->n_ranks);
  if (p->has_mesh)
    g_string_append_printf (to, "by mesh: tp %u, dp %u, pp %u; --dp N replays it with more or fewer\n",
                            p->mesh.tp, p->mesh.dp, p->mesh.pp);
  else
    g_string_append (to, "one by one\n");
}

static void
append_traffic (GString *to, const LsProfileImport *p)
{
  LsTextTable table;
  guint n = MIN (p->traffic->len, MAX_ROWS);
  if (n == 0)
    return;
  g_string_append (to, "\nCommunication  of the first profile, by the time that it took there\n");
  ls_text_table_init (&table, "lrrrrl");
  ls_text_table_add (&table, "kind\vcalls\vbytes\vranks\vtook\vreplayed");
  for (guint i = 0; i < n; i++) {
    const LsProfileTraffic *t = &g_array_index (p->traffic, LsProfileTraffic, i);
    ls_text_table_add (&table, "%s\v%u", ls_op_class_name ((LsOpClass) t->class), t->n);
    ls_text_table_take (&table, t->bytes ? ls_format_bytes (t->bytes) : g_strdup ("-"));
    ls_text_table_take (&table, t->size ? g_strdup_printf ("%u", t->size) : g_strdup ("-"));
    ls_text_table_take (&table, ls_format_time (t->time));
    ls_text_table_add (&table, "%s", t->is_ours ? "by our network" : "as measured");
  }
  ls_text_table_print (&table, 2, to);
  if (p->traffic->len > n)
    g_string_append_printf (to, "  and %u more\n", p->traffic->len - n);
}

static void
append_replay (GString *to, const LsProfileImport *p, LsTime replayed, const char *cluster)
{
  if (replayed == 0)
    return;
  double off = 100 * (ls_time_to_s (replayed) / ls_time_to_s (p->step) - 1);
  off = fabs (off) < 0.05 ? 0 : off; /* no -0.0 */
  append_time (to, "replayed", replayed, 0);
  g_string_append_printf (to, "  %+5.1f %%  on %s\n", off, cluster);
}

char *
ls_profile_import_to_text (const LsProfileImport *import, LsTime replayed, const char *cluster)
{
  GString *to = g_string_new (NULL);
  g_string_append_printf (to, "%s%s%s, %u profile%s\n\n", import->what, import->gpu ? " on " : "",
                          import->gpu ? import->gpu : "", import->n_profiles,
                          import->n_profiles > 1 ? "s" : "");
  append_time (to, "step", import->step, 0);
  g_string_append (to, "  as measured\n");
  append_replay (to, import, replayed, cluster);
  append_time (to, "kernels", import->kernels, import->step);
  g_string_append_printf (to, "  %u kernels, %u copies\n", import->n_kernels, import->n_copies);
  append_time (to, "host late", import->host_late, import->step);
  g_string_append_printf (to, "  the GPU waits for a launch; %u times the host waits for the GPU\n",
                          import->n_syncs);
  append_ranks (to, import);
  append_traffic (to, import);
  return g_string_free (to, FALSE);
}
