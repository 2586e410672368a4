/* api/profile_answer.h — `lockstep calibrate --pytorch-trace`: a profile laid beside a job (private). */
#ifndef LS_API_PROFILE_ANSWER_H
#define LS_API_PROFILE_ANSWER_H

#include "api/answer.h"
#include "api/request.h"

/* LS_ERROR_USAGE: options that do not go with a profile; else as of ls_reconcile_run_new(). */
gboolean ls_request_reconcile (const LsRequest *r, LsAnswer *a, GError **error);

#endif
