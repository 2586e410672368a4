/* show/run/write_layer_kernels.c — the kernels of a profiled layer next to those of a job and of lists. */
#include "show/run/write_run.h"

static const char *const pass_names[LS_N_PASSES] = { "forward", "backward" };

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
  const LsPassKernels job = ls_pass_kernels_as (&ls_layer_report_job (r)->kernels.pass[pass], m);
  const LsPassKernels near = ls_pass_kernels_as (&ls_layer_report_nearest (r)->kernels.pass[pass], m);
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

#include "show/layer_text.h"

/* ---- for programs ---- */

static void
write_part (LsJsonOut *w, LsLayerPart part, const LsPassKernels *m, const LsPassKernels *p,
            const LsPassKernels *near)
{
  ls_json_out_begin_object (w, NULL);
  ls_json_out_string (w, "part", ls_layer_part_name (part));
  ls_json_out_uint (w, "n_measured", m->n[part]);
  ls_json_out_uint (w, "n_predicted", p->n[part]);
  ls_json_out_uint (w, "n_nearest", near->n[part]);
  ls_json_out_double (w, "measured_s", ls_time_to_s (m->time[part]));
  ls_json_out_double (w, "predicted_s", ls_time_to_s (p->time[part]));
  ls_json_out_end_object (w);
}

static void
write_pass (const LsLayerReport *r, LsPass pass, LsJsonOut *w)
{
  const LsPassKernels *m = &r->measured.pass[pass];
  const LsPassKernels p = ls_pass_kernels_as (&ls_layer_report_job (r)->kernels.pass[pass], m);
  const LsPassKernels near = ls_pass_kernels_as (&ls_layer_report_nearest (r)->kernels.pass[pass], m);
  ls_json_out_begin_object (w, pass_names[pass]);
  ls_json_out_uint (w, "n_layers", m->n_layers);
  ls_json_out_uint (w, "n_stretches", m->n_spans);
  ls_json_out_bool (w, "told_apart", m->is_split);
  ls_json_out_begin_array (w, "parts");
  for (int part = 0; part < LS_N_LAYER_PARTS && m->n_layers > 0; part++)
    if (m->n[part] + p.n[part] > 0)
      write_part (w, (LsLayerPart) part, m, &p, &near);
  ls_json_out_end_array (w);
  ls_json_out_end_object (w);
}

void
ls_layer_report_write (const LsLayerReport *r, LsJsonOut *w)
{
  if (!ls_layer_report_is_there (r)) {
    ls_json_out_null (w, "layer");
    return;
  }
  const LsLayerList *near = ls_layer_report_nearest (r);
  ls_json_out_begin_object (w, "layer");
  ls_json_out_string (w, "kernels", ls_layer_report_job (r)->name);
  ls_json_out_string (w, "nearest", near->name);
  ls_json_out_uint (w, "n_measured", total (r, &r->measured));
  ls_json_out_uint (w, "n_nearest", total (r, &near->kernels));
  ls_json_out_uint (w, "n_apart", near->off);
  for (int pass = 0; pass < LS_N_PASSES; pass++)
    write_pass (r, (LsPass) pass, w);
  ls_json_out_end_object (w);
}
