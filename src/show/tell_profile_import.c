#include "show/tell_import.h"

#include <math.h>

#include "show/text_table.h"

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
  const char *const head[] = { "kind", "calls", "bytes", "ranks", "took", "replayed" };
  for (guint i = 0; i < G_N_ELEMENTS (head); i++)
    ls_text_table_add (&table, "%s", head[i]);
  for (guint i = 0; i < n; i++) {
    const LsProfileTraffic *t = &g_array_index (p->traffic, LsProfileTraffic, i);
    ls_text_table_add (&table, "%s", ls_op_class_name ((LsOpClass) t->class));
    ls_text_table_add (&table, "%u", t->n);
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
