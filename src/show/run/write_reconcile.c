#include "show/run/write_run.h"

#include <math.h>

#include <lockstep/error.h>

#include "data/text/json_out.h"
#include "show/text_table.h"

static const char *const tiers[] = { "compute", "communication", "copy" };

/* ---- for people ---- */

/* Whole microseconds and nanoseconds: what a profile resolves. */
static void
add_us (LsTextTable *t, LsTime ps)
{
  ls_text_table_add (t, "%.3f", ls_time_to_s (ps) * 1e6);
}

static void
add_ratio (LsTextTable *t, LsTime predicted, LsTime measured)
{
  if (measured > 0 && predicted > 0)
    ls_text_table_add (t, "%.3f", (double) predicted / (double) measured);
  else
    ls_text_table_add (t, "-");
}

static void
add_mean (LsTextTable *t, LsTime sum, uint32_t n)
{
  if (n > 0)
    ls_text_table_add (t, "%.3f", ls_time_to_s (sum) * 1e6 / n);
  else
    ls_text_table_add (t, "-");
}

static void
add_head (LsTextTable *t, const char *const *head)
{
  for (; *head; head++)
    ls_text_table_add (t, "%s", *head);
}

static void
add_line (LsTextTable *t, const char *name, LsTime measured, LsTime predicted)
{
  ls_text_table_add (t, "%s", name);
  add_us (t, measured);
  add_us (t, predicted);
  add_ratio (t, predicted, measured);
}

/* The parts that add up to the step; those that are empty on both sides are left out, but for
 * the three of them. */
static void
append_time (GString *out, const LsStepTime *m, const LsStepTime *p)
{
  static const char *const head[] = { "where the step went", "measured us", "predicted us", "ratio", NULL };
  LsTextTable t;
  LsTime matched[2] = { 0 }, unmatched[2] = { 0 };
  ls_text_table_init (&t, "lrrr");
  add_head (&t, head);
  for (int tier = 0; tier < LS_N_TIERS; tier++) {
    matched[0] += m->matched[tier];
    matched[1] += p->matched[tier];
    unmatched[0] += m->unmatched[tier];
    unmatched[1] += p->unmatched[tier];
  }
  add_line (&t, "matched", matched[0], matched[1]);
  for (int tier = 0; tier < LS_N_TIERS; tier++) {
    g_autofree char *name
        = g_strdup_printf ("  %s%s", tiers[tier], tier == LS_TIER_COMPUTE ? "" : ", exposed");
    if (m->matched[tier] + p->matched[tier] > 0)
      add_line (&t, name, m->matched[tier], p->matched[tier]);
  }
  add_line (&t, "unmatched", unmatched[0], unmatched[1]);
  for (int tier = 0; tier < LS_N_TIERS; tier++) {
    g_autofree char *name
        = g_strdup_printf ("  %s%s", tiers[tier], tier == LS_TIER_COMPUTE ? "" : ", exposed");
    if (m->unmatched[tier] + p->unmatched[tier] > 0)
      add_line (&t, name, m->unmatched[tier], p->unmatched[tier]);
  }
  add_line (&t, "idle", m->idle_host + m->idle_device, p->idle_host + p->idle_device);
  add_line (&t, "  waiting for the host", m->idle_host, p->idle_host);
  add_line (&t, "  gaps of the device", m->idle_device, p->idle_device);
  add_line (&t, "step", m->step, p->step);
  ls_text_table_print (&t, 0, out);
}

static void
append_rows (GString *out, const GArray *rows, bool with_bytes)
{
  static const char *const head[] = { "n meas.", "n pred.", "matched", "measured us", "predicted us",
                                      "mean us", "mean us", "ratio",   "of matched",  NULL };
  LsTextTable t;
  if (rows->len == 0)
    return;
  ls_text_table_init (&t, with_bytes ? "lrrrrrrrrrr" : "lrrrrrrrrr");
  ls_text_table_add (&t, "%s", with_bytes ? "collective" : "class");
  if (with_bytes)
    ls_text_table_add (&t, "size");
  add_head (&t, head);
  for (guint i = 0; i < rows->len; i++) {
    const LsReconcileRow *r = &g_array_index (rows, LsReconcileRow, i);
    ls_text_table_add (&t, "%s", ls_op_class_name ((LsOpClass) r->class));
    if (with_bytes)
      ls_text_table_take (&t, r->bytes > 0 ? ls_format_bytes (r->bytes) : g_strdup ("?"));
    ls_text_table_add (&t, "%u\v%u\v%u", r->n_measured, r->n_predicted, r->n_matched);
    add_us (&t, r->measured);
    add_us (&t, r->predicted);
    add_mean (&t, r->measured, r->n_measured);
    add_mean (&t, r->predicted, r->n_predicted);
    add_ratio (&t, r->predicted, r->measured);
    add_ratio (&t, r->matched_predicted, r->matched_measured);
  }
  g_string_append_c (out, '\n');
  ls_text_table_print (&t, 0, out);
}

/* Names of templates are long; their beginning tells them apart. */
static void
append_unmatched (GString *out, const GArray *names)
{
  LsTextTable t;
  if (names->len == 0)
    return;
  ls_text_table_init (&t, "rrll");
  g_string_append (out, "\nmeasured, and not predicted\n");
  for (guint i = 0; i < names->len; i++) {
    const LsReconcileName *n = &g_array_index (names, LsReconcileName, i);
    g_autofree char *cut
        = g_utf8_strlen (n->name, -1) > 60 ? g_utf8_substring (n->name, 0, 60) : g_strdup (n->name);
    ls_text_table_add (&t, "%u\v%.3f us\v%s\v%s", n->n, ls_time_to_s (n->time) * 1e6,
                       ls_op_class_name ((LsOpClass) n->class), cut);
  }
  ls_text_table_print (&t, 2, out);
}

char *
ls_reconcile_to_text (const LsReconcileReport *report)
{
  const LsReconciled *r = report->reconciled;
  GString *out = g_string_new (NULL);
  g_string_append_printf (out, "%s of %s%s%s%s, beside rank %u on %s\n\n", report->step, report->profile,
                          report->gpu ? " (" : "", report->gpu ? report->gpu : "", report->gpu ? ")" : "",
                          report->rank, report->cluster);
  append_time (out, &r->measured, &r->predicted);
  append_rows (out, r->classes, false);
  append_rows (out, r->collectives, true);
  append_unmatched (out, r->unmatched);
  ls_layer_report_append (report->layer, out);
  ls_seen_report_append (report->software, out);
  g_string_append (out,
                   r->words->len > 0
                       ? "\nwhat looks wrong\n"
                       : "\nnothing looks wrong: all parts of more than 1 % of the step are within 10 %\n");
  for (guint i = 0; i < r->words->len; i++)
    g_string_append_printf (out, "  %s\n", (const char *) g_ptr_array_index (r->words, i));
  return g_string_free (out, FALSE);
}

/* ---- for programs ---- */

static double
ratio (LsTime predicted, LsTime measured)
{
  return measured > 0 && predicted > 0 ? (double) predicted / (double) measured : NAN;
}

#include "show/calibrate_keys.h"

/* --- what the profile shows of its software --------------------------------------------------------- */

static const LsSeenKey *
key_at (const LsSeenReport *r, guint i)
{
  return &g_array_index (r->keys, LsSeenKey, i);
}

void
ls_seen_report_append (const LsSeenReport *r, GString *out)
{
  g_string_append (out, "\nsoftware, as the trace shows it\n");
  for (guint i = 0; i < r->keys->len; i++)
    if (key_at (r, i)->value)
      g_string_append_printf (out, "  %s %s: %s\n", key_at (r, i)->key, key_at (r, i)->value,
                              key_at (r, i)->why);
  for (guint i = 0; i < r->keys->len; i++)
    if (!key_at (r, i)->value)
      g_string_append_printf (out, "  %s left: %s\n", key_at (r, i)->key, key_at (r, i)->why);
}

static void
write_defaults (const LsSeenReport *r, const char *key, LsJsonOut *w)
{
  ls_json_out_begin_object (w, key);
  for (guint i = 0; i < r->keys->len; i++)
    if (key_at (r, i)->value)
      ls_json_out_string (w, key_at (r, i)->key, key_at (r, i)->value);
  ls_json_out_end_object (w);
}

/* ---- the file ---- */

static char *
source_of (const LsSeenReport *r)
{
  g_autofree char *profile = g_path_get_basename (r->profile);
  GString *s = g_string_new (NULL);
  g_string_append_printf (s, "lockstep calibrate --pytorch-trace: %s of %s%s%s", r->step, profile,
                          r->gpu ? " on " : "", r->gpu ? r->gpu : "");
  for (guint i = 0; i < r->keys->len; i++)
    g_string_append_printf (s, "; %s%s: %s", key_at (r, i)->key, key_at (r, i)->value ? "" : " left",
                            key_at (r, i)->why);
  return g_string_free (s, FALSE);
}

char *
ls_seen_report_file (const LsSeenReport *r, const char *name, GError **error)
{
  guint n = 0;
  for (guint i = 0; i < r->keys->len; i++)
    n += key_at (r, i)->value != NULL;
  if (n == 0) {
    g_set_error (error, LS_ERROR, LS_ERROR_CONFLICT,
                 "%s: the trace shows nothing of its software that a file could hold", r->profile);
    return NULL;
  }
  g_autofree char *source = source_of (r);
  LsJsonOut w;
  ls_json_out_open_as (&w, "software");
  ls_json_out_string (&w, "name", name);
  ls_json_out_string (&w, "source", source);
  if (r->based_on)
    ls_json_out_string (&w, "based_on", r->based_on);
  ls_json_out_string (&w, "program", r->program);
  write_defaults (r, "defaults", &w);
  return ls_json_out_close (&w);
}
