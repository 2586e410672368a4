#include "calibrate/calibrate_run.h"
#include "data/datadir.h"
#include "data/machines/machines.h"

/* Each entry that the file has, with its source. */
static void
take_sources (LsCalibrateRun *run, const LsJsonDoc *doc)
{
  const cJSON *kernels = cJSON_GetObjectItemCaseSensitive (ls_json_doc_root (doc), "kernels");
  for (guint slot = 0; slot < LS_N_ENTRIES; slot++) {
    const cJSON *entry = cJSON_GetObjectItemCaseSensitive (kernels, ls_entry_key (slot));
    const cJSON *source = cJSON_GetObjectItemCaseSensitive (entry, "source");
    run->base_has[slot] = entry != NULL;
    if (cJSON_IsString (source))
      run->slot_source[slot] = g_strdup (source->valuestring);
  }
}

bool
ls_calibrate_take_base (LsCalibrateRun *run, LsDiagList *diags)
{
  if (!run->gpu.calibration)
    return true;
  g_autoptr (LsJsonDoc) doc = ls_data_load (LS_DATA_CALIBRATIONS, run->gpu.calibration, diags);
  if (!doc || !ls_calibration_read (doc, &run->base, diags))
    return false;
  LsCalibration own; /* strings and rows of its own: it changes */
  if (!ls_calibration_read (doc, &own, diags))
    return false;
  ls_calibration_clear (&run->calibration);
  run->calibration = own;
  run->has_base = true;
  run->base_sha256 = ls_json_doc_sha256 (doc);
  run->report.base = g_strdup (run->base.name);
  take_sources (run, doc);
  return true;
}
