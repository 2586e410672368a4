/* show/run/write_reconcile.h — a profiled step beside the predicted one, for people and programs. */
#ifndef LS_SHOW_RUN_WRITE_RECONCILE_H
#define LS_SHOW_RUN_WRITE_RECONCILE_H

#include "ask/reconcile_job.h"
#include "show/run/write_seen_software.h"

/* Newly allocated, ending in a newline. */
char *ls_reconcile_to_text (const LsReconcileReport *report);
char *ls_reconcile_to_json (const LsReconcileReport *report);

#endif
