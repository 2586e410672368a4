/* analysis/idle.h — why a rank computed nothing (src/manual/reading-a-result.md). Kernels of all streams
 * count, as a GPU runs one at a time (exec/replay/kernel_run.c). And the whole breakdown of a rank, of
 * report.h.
 *
 * Problem. Between two kernels lies a gap. It belongs to whatever ended it, and
 * before that to whatever that had waited for: a chain of causes, walked back
 * from the later kernel until the start of the gap.
 *
 *     compute  [ kernel ]. . . . . . . . . . . . . . . .[ kernel ]
 *                       |      |         |         |    |
 *                       from   X.start   X.matched X.end to
 *                         (3)      (2)       (1)    (0)
 *
 *     (0) the kernel waited to be issued: host (only if its cause is the host,
 *         which communication X had held up until X.end; else this is empty)
 *     (1) the data of X were moving, latency included: exposed_<axis>; pp for
 *         p2p and for collectives that span stages
 *     (2) X was resident and waited for its partners: bubble for p2p and for
 *         collectives that span stages, skew otherwise
 *     (3) X itself had to wait: go on with the cause of X, which is an earlier op
 *         of its stream or communicator, a dependency or the host
 *
 * A wait for a copy from or to the memory of the host, or NVMe, is exposed_copy. What no
 * chain explains is `other`: an idle GPU of which the run recorded no cause.
 *
 * Cost. O(spans): apart from the one that closes it, a chain holds only spans that
 * started inside the gap. */
#ifndef LS_ANALYSIS_IDLE_H
#define LS_ANALYSIS_IDLE_H

#include "analysis/report.h"

/* One piece [from, to) of an idle interval, in ps, not empty. */
typedef struct {
  LsPart part;
  LsTime from, to;
  uint32_t before; /* span of the kernel that ended the interval; LS_SPAN_NONE: the window's end did */
  const LsOp *op;  /* what the piece was spent on; NULL: nothing known */
} LsIdlePiece;

typedef void (*LsIdleFunc) (const LsIdlePiece *piece, void *data);

/* A kernel, and when it has the GPU to itself: from the end of those before it. */
typedef struct {
  uint32_t span;
  LsTime from, to; /* not cut by the window; empty if others have all of it */
  const LsOp *op;
} LsKernelTime;

/* The kernels of a rank, of all streams, that end behind the begin of the window, in order of their start; to
 * be unref'ed. A GPU runs one at a time; in a timeline from elsewhere the first of two that overlap
 * counts. */
GArray *ls_kernel_times_new (const LsTimeline *t, uint32_t rank);

/* kernels: of ls_kernel_times_new(). Calls `each` with pieces that do not overlap and together are the time
 * within the window in which no kernel runs: gaps in order of time, the pieces of one gap from its end to its
 * start. */
void ls_idle_each (const LsTimeline *t, uint32_t rank, const GArray *kernels, LsIdleFunc each, void *data);

/* Whether a span is a kernel; its end within the window if
 * it never finished. */
bool ls_span_is_compute (const LsTimeline *t, uint32_t rank, const LsSpan *span);
LsTime ls_span_end (const LsTimeline *t, const LsSpan *span);

#endif
