#include "show/fits/write_fits.h"

static void
append_error (GString *out, const LsFitError *e)
{
  if (e->n > 0)
    g_string_append_printf (out, " %5u %8.2f %+8.2f", e->n, 100 * e->mape, 100 * e->bias);
  else
    g_string_append_printf (out, " %5u %8s %8s", e->n, "-", "-");
}

static void
append_line (GString *out, const char *name, const LsFitError error[2], const char *note)
{
  g_string_append_printf (out, "%-44s", name);
  append_error (out, &error[0]);
  g_string_append_c (out, ' ');
  append_error (out, &error[1]);
  g_string_append_printf (out, "%s\n", note);
}

static void
append_kept (GString *out, const LsNcclFitReport *r)
{
  for (guint i = 0; i < r->kept->len; i++) {
    const LsNcclKept *k = &g_array_index (r->kept, LsNcclKept, i);
    g_string_append_printf (out, "%-22s %14s %14s          -  kept: %s\n", k->key, k->value, k->value,
                            k->why);
  }
  if (r->changes->len == 0)
    g_string_append (out, "nothing was fitted: all figures stay\n");
}

char *
ls_nccl_report_to_text (const LsNcclFitReport *r)
{
  GString *out = g_string_new (NULL);
  g_string_append_printf (out, "NCCL on %s\n", r->cluster);
  for (guint i = 0; i < r->files->len; i++)
    g_string_append_printf (out, "  %s\n", (const char *) g_ptr_array_index (r->files, i));
  g_string_append_printf (out, "\n%-22s %14s %14s %10s\n", "figure", "before", "now", "std error");
  for (guint i = 0; i < r->changes->len; i++) {
    const LsNcclChange *c = &g_array_index (r->changes, LsNcclChange, i);
    g_string_append_printf (out, "%-22s %14s %14s", c->key, c->was, c->now);
    if (c->is_derived)
      g_string_append (out, "          -  follows\n");
    else
      g_string_append_printf (out, " %8.1f %%  fitted\n", 100 * c->error);
  }
  append_kept (out, r);
  g_string_append_printf (out, "\n%-44s %23s  %23s\n", "", "< 1 MiB", ">= 1 MiB");
  g_string_append_printf (out, "%-44s %5s %8s %8s  %5s %8s %8s\n", "curve", "n", "mape %", "bias %", "n",
                          "mape %", "bias %");
  for (guint i = 0; i < r->curves->len; i++) {
    const LsNcclFitCurve *c = &g_array_index (r->curves, LsNcclFitCurve, i);
    append_line (out, c->name, c->error, c->held_out ? "  held out" : "");
  }
  append_line (out, "all that were fitted", r->all[0], "");
  append_line (out, "all that were held out", r->all[1], "");
  return g_string_free (out, FALSE);
}
