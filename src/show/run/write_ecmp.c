#include "show/run/write_run.h"

static void
add_draw (const char *what, const LsEcmpDraw *draw, const LsEcmpTable *t, bool has_seed, GString *out)
{
  g_autofree char *step = ls_format_time (ls_time_from_s (draw->step_s)),
                  *seed = has_seed ? g_strdup_printf ("%u", draw->seed) : g_strdup ("-");
  g_string_append_printf (out, "  %-8s %12s %+9.2f %%  %9.2f %6s", what, step,
                          100 * (draw->step_s / t->ideal.step_s - 1), draw->crowding, seed);
  g_string_append_printf (out, "%s%s\n", draw->busiest ? "  " : "", draw->busiest ? draw->busiest : "");
}

void
ls_ecmp_to_text (const LsEcmpTable *t, bool is_color, GString *out)
{
  const char *bold = is_color ? "\033[1m" : "", *dim = is_color ? "\033[2m" : "",
             *end = is_color ? "\033[0m" : "";
  if (!t)
    return;
  g_string_append_printf (
      out,
      "\n%sHashed routing%s  %s%u seeds; crowding: bytes of the busiest link between switches over the "
      "mean%s\n",
      bold, end, dim, t->n, end);
  if (t->ideal.crowding == 0) {
    g_string_append (out, "  nothing passes between switches, so that nothing is chosen\n");
    return;
  }
  g_string_append_printf (out, "  %-8s %12s %11s  %9s %6s  %s\n", "", "step", "slower", "crowding", "seed",
                          "busiest");
  add_draw ("ideal", &t->ideal, t, false, out);
  static const struct {
    const char *what;
    double share;
  } quantiles[] = { { "least", 0 }, { "median", 0.5 }, { "95 %", 0.95 }, { "most", 1 } };
  for (guint i = 0; i < G_N_ELEMENTS (quantiles); i++)
    add_draw (quantiles[i].what, ls_ecmp_quantile (t, quantiles[i].share), t, true, out);
}

static void
add_members (LsJsonOut *w, const LsEcmpDraw *draw)
{
  ls_json_out_double (w, "step_time_s", draw->step_s);
  ls_json_out_double (w, "crowding", draw->crowding);
  ls_json_out_string (w, "busiest", draw->busiest);
}

void
ls_ecmp_to_json (const LsEcmpTable *t, LsJsonOut *w)
{
  ls_json_out_begin_object (w, "ecmp");
  ls_json_out_begin_object (w, "ideal");
  add_members (w, &t->ideal);
  ls_json_out_end_object (w);
  ls_json_out_double (w, "median_s", ls_ecmp_quantile (t, 0.5)->step_s);
  ls_json_out_double (w, "p95_s", ls_ecmp_quantile (t, 0.95)->step_s);
  ls_json_out_begin_array (w, "seeds");
  for (guint i = 0; i < t->n; i++) {
    ls_json_out_begin_object (w, NULL);
    ls_json_out_uint (w, "seed", t->draws[i].seed);
    add_members (w, &t->draws[i]);
    ls_json_out_end_object (w);
  }
  ls_json_out_end_array (w);
  ls_json_out_end_object (w);
}
