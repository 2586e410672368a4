#include "show/answers.h"

#include <math.h>
#include <string.h>

#include <lockstep/units.h>

#include "job/assumptions.h"
#include "show/run/write_run.h"
#include "show/share_keys.h"
#include "show/text_table.h"

#define MOST_JOBS_SHOWN  4    /* of a link */
#define MOST_NODES_SHOWN 32   /* characters of a list */
#define LEAST_GAIN       5e-4 /* what is shown as equal is */

static char *
time_text (double s)
{
  return ls_format_time (ls_time_from_s (s));
}

/* A list as it is, or how many where it is long. Newly allocated. */
static char *
nodes_text (const char *nodes, uint32_t n)
{
  return strlen (nodes) > MOST_NODES_SHOWN ? g_strdup_printf ("%u nodes", n) : g_strdup (nodes);
}

/* --- text: jobs ------------------------------------------------------------------------------- */

static void
add_job (LsTextTable *t, const LsSharingJob *j)
{
  ls_text_table_add (t, "%s\v%s\v%u", j->name, j->what, j->n_gpus);
  ls_text_table_take (t, nodes_text (j->nodes, j->n_nodes));
  ls_text_table_take (t, ls_format_time (j->start));
  ls_text_table_take (t, time_text (j->alone_s));
  ls_text_table_take (t, time_text (j->shared_s));
  ls_text_table_add (t, "%.3f", j->slowdown);
  g_autofree char *shortest = time_text (j->shortest_s), *longest = time_text (j->longest_s);
  if (j->longest_s > j->shortest_s)
    ls_text_table_add (t, "%u: %s to %s", j->n_steps, shortest, longest);
  else
    ls_text_table_add (t, "%u%s", j->n_steps, j->n_steps > 1 ? ", all alike" : "");
}

static void
append_jobs (GString *out, const LsSharing *s)
{
  LsTextTable t;
  ls_text_table_init (&t, "llrlrrrrl");
  ls_text_table_add (&t, "job\vof\v%s\vnodes\vstart\valone\vshared\vtimes\vsteps measured", s->chips);
  for (guint i = 0; i < s->n_jobs; i++)
    add_job (&t, &s->jobs[i]);
  ls_text_table_print (&t, 2, out);
  g_autofree char *window = time_text (s->window_s);
  if (s->is_periodic)
    g_string_append_printf (out, "  all repeats every %s, to the picosecond: steps are means over that\n",
                            window);
  else
    g_string_append_printf (out, "  no period was found: steps are means over %s\n", window);
}

/* --- text: links ------------------------------------------------------------------------------ */

/* "a 1.2 GB, 45 % of the time; b ...": who uses it. */
static char *
users_text (const LsSharing *s, const LsSharingLink *l)
{
  GString *out = g_string_new (NULL);
  guint n = 0;
  for (guint i = 0; i < s->n_jobs; i++) {
    if (l->uses[i].bytes <= 0 || n++ >= MOST_JOBS_SHOWN)
      continue;
    g_autofree char *bytes = ls_format_bytes ((uint64_t) llround (l->uses[i].bytes));
    g_string_append_printf (out, "%s%s %s %.0f %% > %.0f %%", out->len > 0 ? ", " : "", s->jobs[i].name,
                            bytes, 100 * l->uses[i].use_alone, 100 * l->uses[i].use_shared);
  }
  if (n > MOST_JOBS_SHOWN)
    g_string_append_printf (out, ", %u more", n - MOST_JOBS_SHOWN);
  if (l->use_traffic > 0)
    g_string_append_printf (out, ", traffic %.0f %%", 100 * l->use_traffic);
  return g_string_free (out, FALSE);
}

static void
append_links (GString *out, const LsSharing *s, guint top)
{
  if (s->links->len == 0) {
    g_string_append_printf (out, "\nNo link carries bytes of two jobs%s.\n",
                            s->n_traffic > 0 ? ", or of a job and of traffic" : "");
    return;
  }
  g_string_append (out, "\nContested links");
  if (top > 0 && s->links->len > top)
    g_string_append_printf (out, ": the first %u of %u kinds", top, s->links->len);
  g_string_append (out, "; sum: of the uses alone\n");
  LsTextTable t;
  ls_text_table_init (&t, "lrrrl");
  ls_text_table_add (&t, "link\vlinks\vrate\vsum\vbytes of a step, use alone > shared");
  for (guint i = 0; i < s->links->len && (top == 0 || i < top); i++) {
    const LsSharingLink *l = &g_array_index (s->links, LsSharingLink, i);
    ls_text_table_add (&t, "%s\v%u", l->name, l->n);
    ls_text_table_take (&t, ls_format_rate (l->bytes_per_s));
    ls_text_table_add (&t, "%.0f %%", 100 * l->use_alone);
    ls_text_table_take (&t, users_text (s, l));
  }
  ls_text_table_print (&t, 2, out);
  if (g_array_index (s->links, LsSharingLink, 0).use_alone > 1)
    g_string_append (out, "  more than 100 %: the link is too narrow for these jobs, whenever they start\n");
}

static void
append_traffic (GString *out, const LsSharing *s)
{
  if (s->n_traffic == 0)
    return;
  LsTextTable t;
  ls_text_table_init (&t, "lllrr");
  ls_text_table_add (&t, "traffic\vfrom\vto\vasks for\vgets");
  for (guint i = 0; i < s->n_traffic; i++) {
    const LsSharingTraffic *x = &s->traffic[i];
    ls_text_table_add (&t, "%s\v%s\v%s", x->name, x->from, x->to);
    ls_text_table_take (&t, isinf (x->asked) ? g_strdup ("all there is") : ls_format_rate (x->asked));
    ls_text_table_take (&t, ls_format_rate (x->moved));
  }
  g_string_append_c (out, '\n');
  ls_text_table_print (&t, 2, out);
}

/* --- text: other starts, other nodes ----------------------------------------------------------- */

static const LsSharingShift *
shift_at (const LsSharing *s, guint i)
{
  return &g_array_index (s->shifts, LsSharingShift, i);
}

static guint
worst_shift (const LsSharing *s)
{
  guint worst = 0;
  for (guint i = 1; i < s->shifts->len; i++)
    if (shift_at (s, i)->mean > shift_at (s, worst)->mean)
      worst = i;
  return worst;
}

static void
add_shift (LsTextTable *t, const LsSharing *s, const char *what, guint at)
{
  const LsSharingShift *shift = shift_at (s, at);
  GString *later = g_string_new (NULL), *each = g_string_new (NULL);
  for (guint i = 0; i < s->n_jobs; i++) {
    g_autofree char *by = ls_format_time (shift->shift[i]);
    if (shift->shift[i] > 0)
      g_string_append_printf (later, "%s%s by %s", later->len > 0 ? ", " : "", s->jobs[i].name, by);
    g_string_append_printf (each, "%s%s %.3f", i > 0 ? ", " : "", s->jobs[i].name, shift->slowdown[i]);
  }
  ls_text_table_add (t, "%s", what);
  ls_text_table_take (t, g_string_free (later, FALSE));
  ls_text_table_add (t, "%.3f", shift->mean);
  ls_text_table_take (t, g_string_free (each, FALSE));
}

static void
append_shifts (GString *out, const LsSharing *s)
{
  if (!s->shifts)
    return;
  if (s->shifts->len == 1) {
    g_string_append (out, "\nThere is no second job to begin later.\n");
    return;
  }
  g_string_append_printf (
      out, "\nOther starts: each job behind the first later by one of %u parts of its step\n", s->n_points);
  LsTextTable t;
  ls_text_table_init (&t, "llrl");
  ls_text_table_add (&t, "\vlater\vmean\vtimes");
  add_shift (&t, s, "as they are", 0);
  bool is_better = shift_at (s, 0)->mean - shift_at (s, s->best)->mean >= LEAST_GAIN;
  if (is_better)
    add_shift (&t, s, "best", s->best);
  if (shift_at (s, worst_shift (s))->mean - shift_at (s, 0)->mean >= LEAST_GAIN)
    add_shift (&t, s, "worst", worst_shift (s));
  ls_text_table_print (&t, 2, out);
  if (!is_better)
    g_string_append (out, "  none of them is better than to begin as they do\n");
}

static void
append_packed (GString *out, const LsSharing *s)
{
  if (!s->packed_s)
    return;
  g_string_append (out,
                   "\nOther nodes: the same ones dealt in turn, so that those of a job are neighbours\n");
  LsTextTable t;
  ls_text_table_init (&t, "llrr");
  ls_text_table_add (&t, "job\vnodes\vshared\vnow");
  for (guint i = 0; i < s->n_jobs; i++) {
    ls_text_table_add (&t, "%s", s->jobs[i].name);
    ls_text_table_take (&t, nodes_text (s->packed_nodes[i], s->jobs[i].n_nodes));
    ls_text_table_take (&t, time_text (s->packed_s[i]));
    ls_text_table_take (&t, time_text (s->jobs[i].shared_s));
  }
  ls_text_table_print (&t, 2, out);
}

char *
ls_sharing_to_text (const LsSharing *s, guint top)
{
  GString *out = g_string_new (NULL);
  g_string_append_printf (out, "%u job%s on %u node%s of %s\n", s->n_jobs, s->n_jobs == 1 ? "" : "s",
                          s->n_nodes, s->n_nodes == 1 ? "" : "s", s->cluster);
  for (guint i = 0; i < s->n_jobs; i++) {
    g_autofree char *assumed = ls_assumptions_text (s->jobs[i].assumptions);
    if (assumed)
      g_string_append_printf (out, "%s %s\n", s->jobs[i].name, assumed);
  }
  g_string_append_c (out, '\n');
  append_jobs (out, s);
  append_traffic (out, s);
  append_links (out, s, top);
  append_shifts (out, s);
  append_packed (out, s);
  return g_string_free (out, FALSE);
}
