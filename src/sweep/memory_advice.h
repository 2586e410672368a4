/* sweep/memory_advice.h — what would make a job fit that does not.
 *
 * Problem. Which change costs least? Rules of thumb leave out what it does to overlap and to
 * the pipeline, so each candidate is simulated, one step, and must fit on the same clock and
 * with the same allocator as the job.
 *
 * Candidates, one at a time: selective and full recomputation, ZeRO 1, 2 and 3, sequence
 * parallelism, half the micro-batch (same global batch), twice the tensor or pipeline
 * parallelism (half the data parallelism), flash attention. What is not legal drops out. If
 * none is enough, activations, optimizer or parameters in the host's memory, and pairs of the
 * others: those that fit by their order of allocations alone (a lower bound, exec/memory.h),
 * in the order of the candidates, at most MAX_PAIRS of them.
 *
 * Deviation: the host's memory is taken to be large enough. */
#ifndef LS_SWEEP_MEMORY_ADVICE_H
#define LS_SWEEP_MEMORY_ADVICE_H

#include "io/write_memory.h"
#include "sweep/job.h"

/* r: the job as it ran, which did not fit. LS_ERROR_UNSUPPORTED for a trace, and for a job in
 * the order of a file: both have fixed what could be changed. */
LsMemoryAdvice *ls_memory_advise (const LsJobSpec *spec, const LsJobResult *r, GError **error);

#endif
