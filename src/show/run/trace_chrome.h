/* show/run/trace_chrome.h — a timeline as a Chrome trace: JSON that ui.perfetto.dev and
 * chrome://tracing open.
 *
 * A process is a rank, a thread is a stream; above these is one of passes, each of a micro-batch and a chunk,
 * and a track for each micro-batch from the first of its passes to the last. Kernels have their shape, FLOPs,
 * bytes and rates; collectives their bytes, group, algorithm, protocol and bus bandwidth (nccl-tests).
 * Times are microseconds from the start of the window, with six decimals, so that no picosecond is lost.
 * Slices are cut at the edges of the window; the time in which communication waited for its partners is a
 * slice inside it. Arrows lead from a send to its receive. The critical path is a process of its own, below
 * the ranks.
 *
 * Counters of a rank: communication ops and their bytes in flight; FLOP/s of its kernels and bytes that it
 * sends each second, means over thousandths of the window; how busy its calls keep the link that limits them
 * (analysis/critical_path.h), links that are alike together; memory by category. In each thousandth the most
 * is kept.
 *
 * Colours are names of Catapult's colour scheme, which chrome://tracing heeds.
 *
 * Format: "Trace Event Format", Google, 2016 (M, X, b, e, s, f and C events). */
#ifndef LS_SHOW_RUN_TRACE_CHROME_H
#define LS_SHOW_RUN_TRACE_CHROME_H

#include "analysis/critical_path.h"
#include "cluster/cluster.h"
#include "network/nccl/nccl.h"

/* So many ranks, and ops and passes of all of these together; 0: all. 50,000 ops are 17 MB. */
typedef struct {
  guint max_ranks, max_ops;
} LsTraceSize;

/* Borrowed. */
typedef struct {
  const LsTimeline *timeline;
  const char *title;              /* shown as metadata                                       */
  const LsCriticalPath *critical; /* NULL: not shown                                         */
  const LsCluster *cluster;       /* with nccl: how collectives are run; NULL: as asked for  */
  const LsNccl *nccl;
  GArray *(*memory) (gconstpointer user, uint32_t rank); /* LsMemorySample, or NULL; NULL: no counter */
  gconstpointer user;
  LsTraceSize size;
} LsChromeTrace;

/* Of more than max_ranks ranks, one of each role stands for all of it. Of more than max_ops ops, those of the
 * first ranks are there, of the last of these those that begin first; ls_trace_chrome_left_out() says how
 * many are not. Writes path as a whole or not at all, packed where it ends in ".gz". Errors: LS_ERROR_IO. */
gboolean ls_trace_chrome_write (const LsChromeTrace *trace, const char *path, GError **error);
guint64 ls_trace_chrome_left_out (const LsTimeline *t, const LsTraceSize *size);

#endif
