/* api/answers.h — commands whose answer takes a file of its own (private). */
#ifndef LS_API_ANSWERS_H
#define LS_API_ANSWERS_H

#include "api/answer.h"
#include "api/job_answer.h"
#include "api/request.h"

/* --- memory_snapshot.c: `lockstep memory --snapshot` ----------------------------------------------- */

#define LS_SNAPSHOT_MAX_RANKS 16

/* Writes what PyTorch's allocator does on ranks (uint32_t; empty: the fullest) into a file, and notes what is
 * not in it. Errors as of ls_memory_history_of() and ls_snapshot_write(). */
gboolean ls_job_answer_write_snapshot (const LsJobAnswer *j, const GArray *ranks, const char *path,
                                       LsAnswer *a, GError **error);

/* --- timeline_picture.c: `lockstep run --timeline` -------------------------------------------------- */

/* LS_ERROR_USAGE: rows, ranks, a part or a width that no picture can have, or that its suffix does not
 * heed. */
gboolean ls_timeline_options_check (const LsRequest *r, GError **error);
/* Draws each, and fails the answer where that fails. */
void ls_job_answer_draw_timelines (const LsJobAnswer *j, const LsRequest *r, LsAnswer *a);

/* --- profile_answer.c: `lockstep calibrate --pytorch-trace`: a profile laid beside a job ----------- */

/* LS_ERROR_USAGE: options that do not go with a profile; else as of ls_reconcile_run_new(). */
gboolean ls_request_reconcile (const LsRequest *r, LsAnswer *a, GError **error);

/* --- trace_import.c: `lockstep trace import`: profiles become a trace ------------------------------ */

/* Fills the answer. Errors as of ls_profile_import_new(), ls_write_text() and, with a cluster to replay on,
 * ls_job_spec_run(). */
gboolean ls_trace_import (const LsRequest *r, LsAnswer *a, GError **error);

#endif
