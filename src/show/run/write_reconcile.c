/* show/run/write_reconcile.c — a profiled step next to the predicted one; what it shows of its software. */
#include "show/run/write_run.h"

#include <lockstep/error.h>
#include <math.h>

#include "job/assumptions.h"

/* Of a step: "  copy", ", exposed". */
typedef struct {
  const char *name, *note;
  LsTime measured, predicted;
} Part;

static double
ratio (LsTime predicted, LsTime measured)
{
  return measured > 0 && predicted > 0 ? (double) predicted / (double) measured : NAN;
}

static void
add_part (GArray *parts, const char *name, const char *note, LsTime measured, LsTime predicted)
{
  const Part part = { name, note, measured, predicted };
  g_array_append_val (parts, part);
}

/* The sum of all tiers, and those that are not empty on both sides. */
static void
add_tiers (GArray *parts, const char *name, const LsTime measured[LS_N_TIERS],
           const LsTime predicted[LS_N_TIERS])
{
  static const char *const names[] = { "  compute", "  communication", "  copy" };
  guint sum = parts->len;
  add_part (parts, name, "", 0, 0);
  for (int tier = 0; tier < LS_N_TIERS; tier++) {
    g_array_index (parts, Part, sum).measured += measured[tier];
    g_array_index (parts, Part, sum).predicted += predicted[tier];
    if (measured[tier] + predicted[tier] > 0)
      add_part (parts, names[tier], tier == LS_TIER_COMPUTE ? "" : ", exposed", measured[tier],
                predicted[tier]);
  }
}

/* They add up to the step. */
static GArray *
parts_of_step (const LsStepTime *m, const LsStepTime *p)
{
  GArray *parts = g_array_new (FALSE, FALSE, sizeof (Part));
  add_tiers (parts, "matched", m->matched, p->matched);
  add_tiers (parts, "unmatched", m->unmatched, p->unmatched);
  add_part (parts, "idle", "", m->idle_host + m->idle_device, p->idle_host + p->idle_device);
  add_part (parts, "  waiting for the host", "", m->idle_host, p->idle_host);
  add_part (parts, "  gaps of the device", "", m->idle_device, p->idle_device);
  add_part (parts, "step", "", m->step, p->step);
  return parts;
}

static char *
beginning_of (const char *name)
{
  return g_utf8_strlen (name, -1) > 60 ? g_utf8_substring (name, 0, 60) : g_strdup (name);
}

/* --- what the profile shows of its software --------------------------------------------------------- */

static const LsSeenKey *
key_at (const LsReconcileReport *r, guint i)
{
  return &g_array_index (r->seen, LsSeenKey, i);
}

static void
write_defaults (const LsReconcileReport *r, const char *key, LsJsonOut *w)
{
  ls_json_out_begin_object (w, key);
  for (guint i = 0; i < r->seen->len; i++)
    if (key_at (r, i)->value)
      ls_json_out_string (w, key_at (r, i)->key, key_at (r, i)->value);
  ls_json_out_end_object (w);
}

/* ---- the file ---- */

static const char *const pass_names[LS_N_PASSES] = { "forward", "backward" };

/* What a pass that was measured has in the job, and in the nearest list. */
static LsPassKernels
of_job (const LsLayerReport *r, const LsPassKernels *m)
{
  return ls_pass_kernels_as (&ls_layer_report_job (r)->kernels.pass[m - r->measured.pass], m);
}

static LsPassKernels
of_nearest (const LsLayerReport *r, const LsPassKernels *m)
{
  return ls_pass_kernels_as (&ls_layer_report_nearest (r)->kernels.pass[m - r->measured.pass], m);
}

/* ---- for people ---- */

/* A part whose number differs. */
typedef struct {
  LsPass pass;
  LsLayerPart part;
  guint n_measured, n_predicted, n_nearest;
  LsTime measured, predicted;
} Difference;

static int
by_time_at_stake (gconstpointer a, gconstpointer b)
{
  const Difference *x = a, *y = b;
  LsTime at_x = ABS (x->measured - x->predicted), at_y = ABS (y->measured - y->predicted);
  if (at_x != at_y)
    return at_x > at_y ? -1 : 1;
  return x->pass != y->pass ? (int) x->pass - (int) y->pass : (int) x->part - (int) y->part;
}

static void
add_differences (const LsLayerReport *r, LsPass pass, GArray *differences)
{
  const LsPassKernels *m = &r->measured.pass[pass];
  const LsPassKernels job = of_job (r, m), near = of_nearest (r, m);
  for (int part = 0; part < LS_N_LAYER_PARTS && m->n_layers > 0; part++) {
    const Difference d
        = { pass, (LsLayerPart) part, m->n[part], job.n[part], near.n[part], m->time[part], job.time[part] };
    if (d.n_measured != d.n_predicted)
      g_array_append_val (differences, d);
  }
}

static GArray *
differences_of (const LsLayerReport *r)
{
  GArray *differences = g_array_new (FALSE, FALSE, sizeof (Difference));
  for (int pass = 0; pass < LS_N_PASSES; pass++)
    add_differences (r, (LsPass) pass, differences);
  g_array_sort (differences, by_time_at_stake);
  return differences;
}

static bool
is_nearer (const Difference *d)
{
  return ABS ((int) d->n_nearest - (int) d->n_measured) < ABS ((int) d->n_predicted - (int) d->n_measured);
}

/* Of the passes that the profile shows, without memsets. */
static guint
total (const LsLayerReport *r, const LsLayerKernels *of)
{
  guint n = 0;
  for (int pass = 0; pass < LS_N_PASSES; pass++)
    n += r->measured.pass[pass].n_layers > 0 ? ls_pass_kernels_total (&of->pass[pass]) : 0;
  return n;
}

#include "show/reconcile_text.h"

char *
ls_seen_report_file (const LsReconcileReport *r, const char *name, GError **error)
{
  guint n = 0;
  for (guint i = 0; i < r->seen->len; i++)
    n += key_at (r, i)->value != NULL;
  if (n == 0)
    return ls_fail_null (error, LS_ERROR_CONFLICT,
                         "%s: the trace shows nothing of its software that a file could hold", r->profile);
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

/* ---- for programs ---- */

#include "show/calibrate_keys.h"
