/* show/run/write_seen_software.h — what a profile shows of the software that ran it, as keys of a strategy:
 * for people, for programs, and as a file lockstep.software/1, based on what the job has. What it does not
 * show is named as left. */
#ifndef LS_SHOW_RUN_WRITE_SEEN_SOFTWARE_H
#define LS_SHOW_RUN_WRITE_SEEN_SOFTWARE_H

#include "ask/seen_report.h"
#include "show/run/write_layer_kernels.h"

void ls_seen_report_append (const LsSeenReport *report, GString *out);
void ls_seen_report_write (const LsSeenReport *report, LsJsonOut *w); /* a member "software" */
/* The file, of this name. NULL, LS_ERROR_CONFLICT: the profile shows no key at all. */
char *ls_seen_report_file (const LsSeenReport *report, const char *name, GError **error);

#endif
