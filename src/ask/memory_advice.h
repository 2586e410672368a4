/* ask/memory_advice.h — what would make a job fit that does not.
 *
 * Problem. Which change costs least? Rules of thumb leave out what it does to overlap and to the pipeline, so
 * changes are simulated, and must fit on the same clock and with the same allocator as the job.
 *
 * Method. The changes are those of ask/proposals.h. By the order of its allocations alone
 * (exec/memory/memory.h: on the host clock a lower bound) each is known to be illegal, to save nothing, to
 * leave too much, or perhaps to make the job fit. Those that may are simulated, as by lockstep whatif, those
 * first whose step takes least by its lower bound (exec/shortcuts/plan_bound.h). If none is enough, the WIDTH
 * that leave the least too much are joined with what is proposed for the jobs that they make, and so on.
 *
 * What the job has comes first. What needs other software, accelerators or numerics, or the memory of the
 * host, is looked at after that: if the first is enough, only single changes. The ranking is by what is left
 * too much, then by tokens per second.
 *
 * Worked example. A job is 30 GiB short; --sp saves 10, --zero 1 25, --recompute full 40 and 30 % of its
 * time. One change is enough, so that is the advice. Were it 50 GiB short: --recompute full --zero 1.
 *
 * Deviations. A combination is missed if none of those that are joined leads to it, or if a part of it saves
 * nothing without the rest. The memory of the host is checked only where the cluster's file has it. */
#ifndef LS_ASK_MEMORY_ADVICE_H
#define LS_ASK_MEMORY_ADVICE_H

#include "analysis/headroom.h"
#include "analysis/memory_formulas.h"
#include "ask/whatif.h"
#include "exec/memory/memory.h"
#include "job/job.h"

#define LS_ADVICE_MAX_CHANGES 4 /* that are tried together */
#define LS_ADVICE_N_NEAREST   5 /* that are told where none is enough */

/* What would make the job fit. */
typedef struct {
  /* the job as it is, short of memory; rows: what is too much for the least memory first, then the fastest */
  LsWhatIf *tried;
  guint n_left_out; /* changes that might do and were not simulated */
} LsMemoryAdvice;

void ls_memory_advice_free (LsMemoryAdvice *advice); /* NULL allowed */
G_DEFINE_AUTOPTR_CLEANUP_FUNC (LsMemoryAdvice, ls_memory_advice_free)

/* r: the job as it ran, which did not fit. LS_ERROR_UNSUPPORTED for a trace, and for a job in
 * the order of a file: both have fixed what could be changed. */
LsMemoryAdvice *ls_memory_advise (const LsJobSpec *spec, const LsJobResult *r, GError **error);

#endif
