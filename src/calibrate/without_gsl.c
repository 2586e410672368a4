/* calibrate/without_gsl.c — the room where GSL is left out: each fit is refused, so that there is
 * none to be asked about. */
#include "calibrate/calibrate.h"
#include "calibrate/calibrate_nccl.h"
#include "calibrate/calibrate_runs.h"

#include <lockstep/error.h>

static gpointer
refuse (GError **error)
{
  return ls_fail_null (error, LS_ERROR_UNSUPPORTED,
                       "this Lockstep was built without GSL, which fits are made by; it reads what others "
                       "fitted, and a build with -Dgsl=enabled fits");
}

LsCalibrateRun *
ls_calibrate_run_new (const LsCalibrateSpec *spec, GError **error)
{
  return refuse (error);
}

LsCalibrateNccl *
ls_calibrate_nccl_new (const LsCalibrateNcclSpec *spec, GError **error)
{
  return refuse (error);
}

LsCalibrateRuns *
ls_calibrate_runs_new (const LsCalibrateRunsSpec *spec, GError **error)
{
  return refuse (error);
}

void
ls_calibrate_run_free (LsCalibrateRun *run)
{
  g_assert (!run);
}

void
ls_calibrate_nccl_free (LsCalibrateNccl *run)
{
  g_assert (!run);
}

void
ls_calibrate_runs_free (LsCalibrateRuns *run)
{
  g_assert (!run);
}

/* ---- of a fit, which there is not ---- */

#define OF_A_FIT(type, function, ...)                                                                        \
  type function (__VA_ARGS__)                                                                                \
  {                                                                                                          \
    g_assert_not_reached ();                                                                                 \
  }

OF_A_FIT (const LsFitReport *, ls_calibrate_run_report, const LsCalibrateRun *run)
OF_A_FIT (char *, ls_calibrate_run_json, LsCalibrateRun *run, const char *name)
OF_A_FIT (char *, ls_calibrate_run_machine_json, const LsCalibrateRun *run, const char *name,
          const char *path, const char *calibration, GError **error)
OF_A_FIT (const LsNcclFitReport *, ls_calibrate_nccl_report, const LsCalibrateNccl *run)
OF_A_FIT (char *, ls_calibrate_nccl_json, const LsCalibrateNccl *run, const char *name)
OF_A_FIT (const LsFittedReport *, ls_calibrate_runs_report, const LsCalibrateRuns *run)
OF_A_FIT (char *, ls_calibrate_runs_json, const LsCalibrateRuns *run, const char *name, GError **error)
