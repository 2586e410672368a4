/* api/trace_import.h — `lockstep trace import`: profiles become a trace (private). */
#ifndef LS_API_TRACE_IMPORT_H
#define LS_API_TRACE_IMPORT_H

#include "api/answer.h"
#include "api/request.h"

/* Fills the answer. Errors as of ls_profile_import_new(), ls_write_text() and, with a cluster to replay on,
 * ls_job_spec_run(). */
gboolean ls_trace_import (const LsRequest *r, LsAnswer *a, GError **error);

#endif
