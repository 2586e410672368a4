/* show/run/write_report.h — the result of a run for programs: `run --json`, with the
 * names of src/manual/formats/result.md. Seconds, bytes, fractions of 1. */
#ifndef LS_SHOW_RUN_WRITE_REPORT_H
#define LS_SHOW_RUN_WRITE_REPORT_H

#include "analysis/interval.h"
#include "analysis/logged_step.h"
#include "analysis/report.h"
#include "data/jobs/imported.h"
#include "show/run/write_run.h"

/* Where a result comes from. All strings borrowed; NULL ones are left out. */
typedef struct {
  const char *version;
  const char *trace, *trace_source; /* that does not say what is trained */
  const char *model, *model_source;
  const char *cluster, *cluster_source;
  const char *strategy, *strategy_source;
  const LsImport *from;                         /* the launch file that says the job */
  const char *software;                         /* whose defaults the strategy began with */
  const char *calibration, *calibration_source; /* kernel times        */
  const char *network, *network_source;         /* NCCL figures        */
  const char *options;                          /* the resolved knobs, as one would type them   */
  const GArray *assumptions;                    /* LsAssumption (job/assumptions.h)             */
} LsReportProvenance;

/* What was asked for besides; NULL: it was not. Borrowed. */
typedef struct {
  const LsInterval *interval;
  const LsPathSummary *critical_path;
  const LsSensitivityTable *sensitivity;
  const LsFaultTable *faults;
  const LsEcmpTable *ecmp;
  const LsWhatIf *what_if;
  const LsStepSpread *step_spread;
  const LsMeasured *measured; /* of time 0: none */
  const GPtrArray *findings;  /* char *, with measured */
} LsReportExtras;

/* Newly allocated, ends in a newline. extras: what to add. A figure that is not finite becomes
 * null. */
char *ls_report_to_json (const LsReport *r, const LsReportProvenance *p, const LsReportExtras *extras);

#endif
