/* ask/profile/seen_report.h — what a profile shows of the software that ran it, as keys of a
 * strategy. What it does not show is named as left. */
#ifndef LS_ASK_PROFILE_SEEN_REPORT_H
#define LS_ASK_PROFILE_SEEN_REPORT_H

#include "analysis/seen_software.h"
#include "ask/profile/reconcile_layer.h"

/* A key of a strategy. */
typedef struct {
  const char *key; /* static */
  char *value;     /* as its flag takes it; NULL: left  */
  char *why;       /* from what it follows, or why not  */
} LsSeenKey;

typedef struct {
  GArray *keys;                     /* LsSeenKey */
  char *based_on;                   /* software of the job; NULL: none  */
  char *program;                    /* as one would say it              */
  const char *profile, *step, *gpu; /* borrowed; gpu may be NULL */
} LsSeenReport;

/* calibration: of the job, whose attentions there are; layer->lists may be empty. */
LsSeenReport *ls_seen_report_new (const LsSeenSoftware *seen, const LsLayerReport *layer,
                                  const LsCalibration *calibration);
void ls_seen_report_free (LsSeenReport *report); /* NULL allowed */

#endif
