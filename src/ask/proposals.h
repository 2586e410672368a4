/* ask/proposals.h — the single changes to a job that are worth trying.
 *
 * Problem. Which one thing should a user change to make a job faster, or to make it fit? There is one table
 * of ideas, each with what it costs beside time and memory. lockstep whatif simulates all that it proposes
 * (ask/whatif.h); what does not fit is advised from the same table (ask/memory_advice.h).
 *
 * Worked example. To a job with tp 4, dp 8 and 1f1b on 2 stages "pipeline schedule" proposes {schedule
 * zb-h1}, {schedule interleaved-1f1b, vpp 2} and others; "layout" proposes {tp 8, dp 4}, {tp 2, dp 16} and
 * others.
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

/* --- what proposals of each kind share ------------------------------------------------------------- */

typedef struct {
  const LsJobSpec *spec;
  const LsJobResult *r;
  const LsStrategy *s; /* resolved */
  const char *idea, *cost;
  bool needs_more;
  GPtrArray *changes; /* LsChange */
} Proposals;

/* A change without settings yet, which the proposals own. */
LsChange *propose (Proposals *p);
/* A change of one knob. */
void propose_one (Proposals *p, const char *key, const char *value);
/* All values of a field with names but the job's own and those below first, which are "as by default". */
void propose_names (Proposals *p, const char *key, int own, int first);

/* Kernels and number formats. */
void propose_attention (Proposals *p);
void propose_attention_kernels (Proposals *p); /* those that the accelerator was measured with */
void propose_kernels (Proposals *p);           /* lists that the program can run in the place of its own */
void propose_dtypes (Proposals *p);
void propose_grad_dtypes (Proposals *p);
void propose_fp8 (Proposals *p);
void propose_grad_fusion (Proposals *p);

#endif
