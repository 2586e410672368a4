/* show/run/write_spans.h — the spans of a timeline as comma-separated text (RFC 4180), for
 * data frames, spreadsheets and awk: `run --csv`.
 *
 *     rank,stream,name,tag,micro_batch,chunk,stage,layer,start_ps,matched_ps,end_ps,cause,span,cause_span
 *     0,tp,all-reduce,F,0,0,0,1,5000000000,5002000000,6000000000,dep,3,2
 *
 * A row per span, by rank and in the order in which they ended up in the timeline.
 * Times are whole picoseconds from the start of the window. Spans are not cut at its
 * edges: one that began in the step before has a negative start.
 *
 *   stream      that of the op, or "host" where the host itself is busy or waits
 *   layer       within the chunk; empty: the op belongs to none
 *   matched_ps  communication: when all partners were there; empty for other ops, and
 *               where they never were
 *   end_ps      empty: still running when the simulation stopped
 *   cause       none, stream, dep, host: what the op waited for last (exec/timeline.h)
 *   span        number of the row within its rank
 *   cause_span  the row of the same rank that it waited for; empty: none in the window */
#ifndef LS_SHOW_RUN_WRITE_SPANS_H
#define LS_SHOW_RUN_WRITE_SPANS_H

#include "exec/timeline.h"

/* With more rows than this only ranks that were simulated have any. */
#define LS_SPANS_MAX_ROWS 20000000

/* Writes path as a whole or not at all. A rank that another stood for has the rows of that one,
 * which are its own to the picosecond; but where one rank of each role was recorded, only those
 * have rows. LS_ERROR_USAGE, LS_ERROR_IO: see ls_write_file(). */
gboolean ls_spans_write (const LsTimeline *t, const char *path, GError **error);
/* The same as a text, newly allocated (g_free). */
char *ls_spans_to_csv (const LsTimeline *t);

#endif
