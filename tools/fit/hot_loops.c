#include "hot_loops.h"

#include <math.h>
#include <string.h>

#include "base/order.h"
#include "compute/measured.h"
#include "samples.h"

enum { GPU, DTYPE, PRODUCTS, MS, N_COLUMNS };

/* "MxNxK"; false: it is none. */
static bool
read_product (const char *text, LsDtype dtype, LsKernel *ret_kernel)
{
  g_auto (GStrv) sizes = g_strsplit (text, "x", -1);
  uint64_t size[3];
  bool ok = g_strv_length (sizes) == G_N_ELEMENTS (size);
  for (guint i = 0; ok && i < G_N_ELEMENTS (size); i++)
    ok = g_ascii_string_to_unsigned (sizes[i], 10, 1, 1000000, &size[i], NULL);
  if (ok)
    *ret_kernel = ls_kernel_gemm ("gemm", dtype, size[0], size[1], size[2], 1, 2, false);
  return ok;
}

/* Seconds; NaN: the text is wrong. */
static double
predicted_s (const char *products, LsDtype dtype, const LsCalibration *c, const LsGpu *gpu)
{
  g_auto (GStrv) all = g_strsplit (products, "+", -1);
  double s = all[0] ? 0 : NAN;
  for (char **at = all; *at && !isnan (s); at++) {
    LsKernel kernel;
    s = read_product (*at, dtype, &kernel)
        ? s
            + ls_time_to_s (
                ls_kernel_cost_by (ls_calibration_fit (c, &kernel), LS_FIT_HOT, gpu, &kernel).alone)
        : NAN;
  }
  return s;
}

double
ls_hot_loops_ratio (const char *path, const char *gpu_name, LsDtype dtype, const LsCalibration *calibration,
                    const LsGpu *gpu, LsDiagList *diags)
{
  g_autoptr (LsCsv) csv = ls_csv_load (path, diags);
  g_autoptr (GArray) ratios = g_array_new (FALSE, FALSE, sizeof (double));
  static const char *const names[] = { "gpu", "dtype", "products", "ms" };
  int column[N_COLUMNS];
  if (!ls_samples_find_columns (csv, diags, names, column, N_COLUMNS))
    return NAN;
  for (guint r = 0; r < ls_csv_n_rows (csv); r++) {
    if (strcmp (ls_csv_cell (csv, r, (guint) column[GPU]), gpu_name) != 0
        || strcmp (ls_csv_cell (csv, r, (guint) column[DTYPE]), ls_dtype_name (dtype)) != 0)
      continue;
    double s = predicted_s (ls_csv_cell (csv, r, (guint) column[PRODUCTS]), dtype, calibration, gpu);
    double ratio = s / (1e-3 * g_ascii_strtod (ls_csv_cell (csv, r, (guint) column[MS]), NULL));
    if (!isfinite (ratio)) {
      ls_csv_error (csv, r, (guint) column[PRODUCTS], diags, "expected MxNxK, joined by +, and milliseconds");
      return NAN;
    }
    g_array_append_val (ratios, ratio);
  }
  return ratios->len > 0 ? ls_median ((double *) (void *) ratios->data, ratios->len) : NAN;
}
