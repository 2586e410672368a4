#include "show/fits/write_fits.h"

#include <math.h>

#define MAX_LISTED 40 /* lines of a table that somebody reads */

static const char *const source_names[] = {
  [LS_COST_ROOFLINE] = "roofline",         [LS_COST_FITTED] = "fitted",     [LS_COST_MEASURED] = "measured",
  [LS_COST_INTERPOLATED] = "interpolated", [LS_COST_RECORDED] = "recorded",
};
static const char *const bound_names[] = {
  [LS_BOUND_COMPUTE] = "compute",
  [LS_BOUND_MEMORY] = "memory",
  [LS_BOUND_LAUNCH] = "launch",
};

#include "show/kernel_keys.h"

/* ---- text ---- */

/* In decimal units, as rates and --bytes 1GB are. */
static void
append_bytes (GString *s, double bytes)
{
  static const char *const units[] = { "B", "kB", "MB", "GB", "TB", "PB" };
  guint i = 0;
  for (; bytes >= 1000 && i + 1 < G_N_ELEMENTS (units); i++)
    bytes /= 1000;
  g_string_append_printf (s, "%.4g %s", bytes, units[i]);
}

static char *
shape_text (const LsKernel *k)
{
  GString *s = g_string_new (NULL);
  if (k->batch > 1)
    g_string_append_printf (s, "%" G_GUINT64_FORMAT " of ", k->batch);
  if (k->m > 0)
    g_string_append_printf (s, "%" G_GUINT64_FORMAT " x %" G_GUINT64_FORMAT, k->m, k->n);
  else
    append_bytes (s, k->bytes);
  if (k->k > 0)
    g_string_append_printf (s, " x %" G_GUINT64_FORMAT, k->k);
  return g_string_free (s, FALSE);
}

static void
append_one (GString *out, const char *gpu, const LsKernelRow *row)
{
  const LsKernel *k = &row->kernel;
  g_autofree char *shape = shape_text (k);
  g_string_append_printf (out, "%s %s, %s, on %s", ls_kernel_kind_name (k->kind), shape,
                          ls_dtype_name (k->dtype), gpu);
  g_string_append_printf (out, k->access != LS_ACCESS_NONE ? ", access %s\n" : "\n",
                          ls_access_name (k->access));
  g_string_append_printf (out, "  time     %12.2f us  %s%s\n", row->time_s * 1e6, source_names[row->source],
                          row->extrapolated ? ", outside what it was fitted to" : "");
  g_string_append_printf (out, "  bound    %12s     compute %.2f us, memory %.2f us, launch %.2f us\n",
                          bound_names[row->cost.bound], row->cost.compute_s * 1e6, row->cost.memory_s * 1e6,
                          row->cost.launch_s * 1e6);
  if (k->flops > 0)
    g_string_append_printf (out, "  rate     %12.1f TFLOP/s\n", k->flops / row->time_s / 1e12);
  if (k->bytes > 0)
    g_string_append_printf (out, "  traffic  %12.1f GB/s\n", k->bytes / row->time_s / 1e9);
}

static void
append_line (GString *out, const LsKernelRow *row)
{
  g_autofree char *shape = shape_text (&row->kernel);
  g_string_append_printf (out, "%-14s %-5s %-30s %12.2f", ls_kernel_kind_name (row->kernel.kind),
                          ls_dtype_name (row->kernel.dtype), shape, row->time_s * 1e6);
  if (isnan (row->measured_s))
    g_string_append_printf (out, " %12s %8s", "-", "-");
  else
    g_string_append_printf (out, " %12.2f %+8.1f", row->measured_s * 1e6, ls_kernel_row_error_pct (row));
  g_string_append_printf (out, "  %s, %s%s%s\n", source_names[row->source], bound_names[row->cost.bound],
                          row->extrapolated ? ", extrapolated" : "", row->held_out ? ", held out" : "");
}

static void
append_errors (GString *out, const char *name, const LsKernelErrors *e)
{
  g_string_append_printf (out, "%-10s %8u", name, e->n);
  if (e->n > 0)
    g_string_append_printf (out, " %9.2f %+9.2f\n", e->mape_pct, e->median_pct);
  else
    g_string_append_printf (out, " %9s %9s\n", "-", "-");
}

static void
append_lines (GString *out, const LsKernelRows *rows)
{
  g_string_append_printf (out, "%-14s %-5s %-30s %12s %12s %8s\n", "kernel", "dtype", "shape", "predicted us",
                          "measured us", "error %");
  for (guint i = 0; i < rows->rows->len; i++)
    append_line (out, &g_array_index (rows->rows, LsKernelRow, i));
}

char *
ls_kernel_rows_to_text (const LsKernelRows *rows)
{
  GString *out = g_string_new (NULL);
  guint n = rows->rows->len;
  if (n == 1 && !rows->has_measured)
    append_one (out, rows->gpu, &g_array_index (rows->rows, LsKernelRow, 0));
  else if (!rows->has_measured || n <= MAX_LISTED)
    append_lines (out, rows);
  if (rows->has_measured) {
    g_string_append_printf (out, "%s%-10s %8s %9s %9s\n", out->len > 0 ? "\n" : "", "kernels", "n", "mape %",
                            "median %");
    append_errors (out, "all", &rows->all);
    append_errors (out, "held out", &rows->held_out);
  }
  return g_string_free (out, FALSE);
}
