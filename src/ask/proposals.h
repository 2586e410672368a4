/* ask/proposals.h — the single changes to a job that are worth trying.
 *
 * Problem. Which one thing should a user change to make a job faster, or to make it fit? There is one table
 * of ideas, each with what it costs beside time and memory. lockstep whatif simulates all that it proposes
 * (ask/whatif.h); what does not fit is advised from the same table (ask/memory_advice.h).
 *
 * Worked example. To a job with tp 4, dp 8 and 1f1b on 2 stages "pipeline schedule" proposes
 * {schedule zb-h1}, {schedule interleaved-1f1b, vpp 2} and others; "layout" proposes
 * {tp 8, dp 4}, {tp 2, dp 16} and others.
 *
 * Deviation. What is proposed may be illegal for the job: resolving it says so. */
#ifndef LS_ASK_PROPOSALS_H
#define LS_ASK_PROPOSALS_H

#include "job/change.h"

/* Proposed for the job of `spec`, which r is, prepared or run, always in the same sequence. A GPtrArray of
 * LsChange that frees them; none for a trace, which has fixed everything. Of a job whose pipeline runs in the
 * order of a file, none that would need another order. */
GPtrArray *ls_changes_propose (const LsJobSpec *spec, const LsJobResult *r);

/* Which kinds of change are not proposed for this job, and why: a static sentence; NULL: all are. */
const char *ls_changes_left_out (const LsJobSpec *spec);

#endif
