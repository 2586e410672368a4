/* io/write_seen_software.h — what a profile shows of the software that ran it, as keys of a strategy: for people, for programs,
 * and as a file lockstep.software/1, based on what the job has. What it does not show is named as left. */
#ifndef LS_IO_WRITE_SEEN_SOFTWARE_H
#define LS_IO_WRITE_SEEN_SOFTWARE_H

#include "analysis/seen_software.h"
#include "io/write_layer_kernels.h"

/* A key of a strategy. */
typedef struct {
  const char *key; /* static */
  char *value;     /* as its flag takes it; NULL: left  */
  char *why;       /* from what it follows, or why not  */
} LsSeenKey;

typedef struct {
  GArray *keys;     /* LsSeenKey */
  char *based_on;   /* software of the job; NULL: none  */
  char *program;    /* as one would say it              */
  const char *profile, *step, *gpu; /* borrowed; gpu may be NULL */
} LsSeenReport;

/* calibration: of the job, whose attentions there are; layer->lists may be empty. */
LsSeenReport *ls_seen_report_new (const LsSeenSoftware *seen, const LsLayerReport *layer, const LsCalibration *calibration);
void ls_seen_report_free (LsSeenReport *report); /* NULL allowed */

void ls_seen_report_append (const LsSeenReport *report, GString *out);
void ls_seen_report_write (const LsSeenReport *report, LsJsonOut *w); /* a member "software" */
/* The file, of this name. NULL, LS_ERROR_CONFLICT: the profile shows no key at all. */
char *ls_seen_report_file (const LsSeenReport *report, const char *name, GError **error);

#endif
