/* show/run/write_reconcile.h — a profiled step beside the predicted one, for people and programs. */
#ifndef LS_SHOW_RUN_WRITE_RECONCILE_H
#define LS_SHOW_RUN_WRITE_RECONCILE_H

#include "ask/reconcile_job.h"
#include "ask/reconcile_layer.h"
#include "ask/seen_report.h"
#include "data/text/json_out.h"

/* Newly allocated, ending in a newline. */
char *ls_reconcile_to_text (const LsReconcileReport *report);
char *ls_reconcile_to_json (const LsReconcileReport *report);

/* What the profile shows of the software that ran it, as keys of a strategy; what it does not show is named
 * as left. */
void ls_seen_report_append (const LsSeenReport *report, GString *out);
void ls_seen_report_write (const LsSeenReport *report, LsJsonOut *w); /* a member "software" */
/* As a file lockstep.software/1, of this name, based on what the job has. NULL, LS_ERROR_CONFLICT: the
 * profile shows no key at all. */
char *ls_seen_report_file (const LsSeenReport *report, const char *name, GError **error);

/* The kernels that a profiled layer launches beside those of a job and of the lists that there are. */
void ls_layer_report_append (const LsLayerReport *report, GString *out);
void ls_layer_report_write (const LsLayerReport *report, LsJsonOut *w); /* a member "layer" */

#endif
