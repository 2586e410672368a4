/* api/sweep_capture.h — `lockstep sweep --capture` (private): layouts of a program, each captured. */
#ifndef LS_API_SWEEP_CAPTURE_H
#define LS_API_SWEEP_CAPTURE_H

#include "api/answer.h"
#include "api/request.h"

/* Options of a job name the axes: --tp 1,2 goes with {tp} in the command. */
gboolean ls_sweep_capture (const LsRequest *r, LsAnswer *a, GError **error);

#endif
