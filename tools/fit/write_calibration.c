#include "write_calibration.h"

#include <math.h>

/* Coefficients that switch an effect off are left out. */
static void
append_number (GString *json, const char *key, double value, int digits)
{
  if (value > 0)
    g_string_append_printf (json, ", \"%s\": %.*g", key, digits, value);
}

static void
append_kind (GString *json, const char *key, const LsKindFit *fit, const char *source, bool is_last)
{
  g_string_append_printf (json, "    \"%s\": {\n      \"fitted\": %s", key,
                          fit->is_fitted ? "true" : "false");
  append_number (json, "compute_efficiency", fit->compute_efficiency, 4);
  append_number (json, "depth_half", fit->depth_half, 4);
  append_number (json, "width_half", fit->width_half, 4);
  append_number (json, "tile_half", fit->tile_half, 4);
  append_number (json, "wave_rounding", fit->wave_rounding, 4);
  append_number (json, "memory_efficiency", fit->memory_efficiency, 4);
  append_number (json, "bytes_half", fit->bytes_half, 4);
  g_string_append_printf (json, ",\n      \"launch\": \"%.2fus\"", ls_time_to_s (fit->launch) * 1e6);
  append_number (json, "min_work", fit->min_work, 4);
  append_number (json, "max_work", fit->max_work, 4);
  if (!isnan (fit->mape))
    append_number (json, "mape", fit->mape, 3);
  g_string_append_printf (json, ",\n      \"source\": \"%s\"\n    }%s\n", source, is_last ? "" : ",");
}

static char *
to_json (const LsRecipe *r)
{
  const LsCalibration *c = &r->calibration;
  GString *json = g_string_new ("{\n");

  g_string_append_printf (json, "  \"schema\": \"lockstep.calibration/1\",\n  \"name\": \"%s\",\n", c->name);
  g_string_append_printf (json, "  \"source\": \"%s\",\n", c->source);
  g_string_append_printf (json, "  \"sustained\": %.3g,\n  \"kernels\": {\n", c->sustained);
  for (guint i = 0; i < LS_N_KERNEL_KINDS; i++)
    append_kind (json, ls_kernel_kind_name (i), &c->kind[i], r->kind_source[i],
                 i + 1 == LS_N_KERNEL_KINDS && !c->gemm_fp8.is_fitted);
  if (c->gemm_fp8.is_fitted)
    append_kind (json, "gemm_fp8", &c->gemm_fp8, r->gemm_fp8_source, true);
  g_string_append (json, "  }\n}\n");
  return g_string_free (json, FALSE);
}

gboolean
ls_fit_write_calibration (const LsRecipe *recipe, const char *folder, GError **error)
{
  g_autofree char *file = g_strconcat (recipe->name, ".json", NULL);
  g_autofree char *path = g_build_filename (folder, file, NULL);
  g_autofree char *json = to_json (recipe);
  return g_file_set_contents (path, json, -1, error);
}
