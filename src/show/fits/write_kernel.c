/* show/fits/write_kernel.c — times of kernels, for people and programs. */
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
static char *
bytes_text (double bytes)
{
  static const char *const units[] = { "B", "kB", "MB", "GB", "TB", "PB" };
  guint i = 0;
  for (; bytes >= 1000 && i + 1 < G_N_ELEMENTS (units); i++)
    bytes /= 1000;
  return g_strdup_printf ("%.4g %s", bytes, units[i]);
}

#include "show/kernel_text.h"
