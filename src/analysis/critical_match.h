/* analysis/critical_match.h — the other ends of communication (private to analysis/).
 *
 * All members of a collective match and end at the same instants, and calls of a communicator
 * follow each other: communicator, match and end tell a call. The k-th send to a neighbour meets
 * the k-th receive there, per direction and step, in the order in which they were launched,
 * which is that of the spans (exec/group.c). Only spans of the reported step are looked at:
 * what they wait for is of that step. */
#ifndef LS_ANALYSIS_CRITICAL_MATCH_H
#define LS_ANALYSIS_CRITICAL_MATCH_H

#include "exec/timeline.h"

typedef struct LsMatcher LsMatcher;

LsMatcher *ls_matcher_new (const LsTimeline *t);
void ls_matcher_free (LsMatcher *m); /* NULL allowed */
G_DEFINE_AUTOPTR_CLEANUP_FUNC (LsMatcher, ls_matcher_free)

/* Whether a span is of the step that the window reports. */
bool ls_matcher_is_reported (const LsTimeline *t, const LsSpan *span);

/* The span of a rank's call on this communicator that matched and ended as x did;
 * LS_SPAN_NONE: none. */
uint32_t ls_match_call (LsMatcher *m, uint32_t rank, uint32_t comm, const LsSpan *x);

/* The span that met transfer i of the group x (index of a span of who represents the rank),
 * and the rank that it is of; LS_SPAN_NONE: none. */
uint32_t ls_match_transfer (LsMatcher *m, uint32_t rank, uint32_t x, uint32_t i, uint32_t *ret_rank);

#endif
