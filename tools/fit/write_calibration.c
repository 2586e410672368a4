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
append_time (GString *json, const char *key, LsTime t)
{
  if (t > 0)
    g_string_append_printf (json, ", \"%s\": \"%.2fus\"", key, ls_time_to_s (t) * 1e6);
}

static void
append_kind (GString *json, const char *key, const LsKindFit *fit, const char *source, bool is_last)
{
  g_string_append_printf (json, "    \"%s\": {\n      \"fitted\": %s", key,
                          fit->is_fitted ? "true" : "false");
  append_number (json, "compute_efficiency", fit->compute_efficiency, 4);
  append_number (json, "depth_half", fit->depth_half, 4);
  append_number (json, "width_half", fit->width_half, 4);
  append_number (json, "wide_slow", fit->wide_slow, 4);
  append_number (json, "tail", fit->tail, 4);
  append_number (json, "tile_half", fit->tile_half, 4);
  append_number (json, "wave_rounding", fit->wave_rounding, 4);
  append_time (json, "split_launch", fit->split_launch);
  append_number (json, "throttle", fit->throttle, 4);
  append_time (json, "burst", fit->burst);
  append_number (json, "overlap", fit->overlap, 4);
  append_number (json, "memory_efficiency", fit->memory_efficiency, 4);
  append_number (json, "bytes_half", fit->bytes_half, 4);
  append_number (json, "cache_bytes", fit->cache_bytes, 4);
  append_number (json, "cache_speed", fit->cache_speed, 4);
  g_string_append_printf (json, ",\n      \"launch\": \"%.2fus\"", ls_time_to_s (fit->launch) * 1e6);
  append_time (json, "timed_host", fit->timed_host);
  append_number (json, "timed_efficiency", fit->timed_efficiency, 4);
  append_number (json, "min_work", fit->min_work, 4);
  append_number (json, "max_work", fit->max_work, 4);
  if (!isnan (fit->mape))
    append_number (json, "mape", fit->mape, 3);
  g_string_append_printf (json, ",\n      \"source\": \"%s\"\n    }%s\n", source, is_last ? "" : ",");
}

static guint
last_slot (const LsRecipe *r)
{
  guint last = 0;
  for (guint i = 0; i < LS_N_SLOTS; i++)
    if (r->slot_source[i])
      last = i;
  return last;
}

char *
ls_fit_calibration_json (LsRecipe *r)
{
  LsCalibration *c = &r->calibration;
  GString *json = g_string_new ("{\n");

  g_string_append_printf (json, "  \"schema\": \"lockstep.calibration/1\",\n  \"name\": \"%s\",\n", c->name);
  g_string_append_printf (json, "  \"source\": \"%s\",\n", c->source);
  g_string_append_printf (json, "  \"sustained\": %.3g,\n  \"kernels\": {\n", c->sustained);
  for (guint i = 0; i < LS_N_SLOTS; i++)
    if (r->slot_source[i])
      append_kind (json, ls_slot_key (i), ls_slot_fit (c, i), r->slot_source[i], i == last_slot (r));
  g_string_append (json, "  }\n}\n");
  return g_string_free (json, FALSE);
}

gboolean
ls_fit_write_calibration (LsRecipe *recipe, const char *folder, GError **error)
{
  g_autofree char *file = g_strconcat (recipe->name, ".json", NULL);
  g_autofree char *path = g_build_filename (folder, file, NULL);
  g_autofree char *json = ls_fit_calibration_json (recipe);
  return g_file_set_contents (path, json, -1, error);
}
