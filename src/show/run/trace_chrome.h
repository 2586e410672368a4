/* show/run/trace_chrome.h — a timeline as a Chrome trace: JSON that ui.perfetto.dev and
 * chrome://tracing open.
 *
 * A process is a rank, a thread is a stream; above these is one of passes, each of a micro-batch and a chunk.
 * Kernels have their shape, FLOPs, bytes and rates. Times are microseconds from the start of the window, with
 * six decimals, so that no picosecond is lost. Slices are cut at the edges of the window; the time in which
 * communication waited for its partners is a slice inside it. Arrows lead from a send to its receive; a
 * counter shows how many communication ops a rank has in flight. The critical path is a process of its own,
 * below the ranks.
 *
 * Format: "Trace Event Format", Google, 2016 (M, X, s, f and C events). */
#ifndef LS_SHOW_RUN_TRACE_CHROME_H
#define LS_SHOW_RUN_TRACE_CHROME_H

#include "analysis/critical_path.h"

/* Writes path as a whole or not at all, packed where it ends in ".gz". title: shown as metadata. With more
 * than max_ranks ranks one of each role stands for all of it, so that a trace of many ranks stays small
 * enough to open. critical: NULL, or the path to show. Errors: LS_ERROR_IO. */
gboolean ls_trace_chrome_write (const LsTimeline *t, const LsCriticalPath *critical, const char *title,
                                guint max_ranks, const char *path, GError **error);

#endif
