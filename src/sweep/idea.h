/* sweep/idea.h — what makes two configurations one idea: the same layout, with knobs turned.
 *
 * One idea: GPUs, global batch, tp, pp, cp, ep (so dp too), who shards what (dp_kind, zero), how much is
 * recomputed, and the family of the schedule: interleaved-1f1b is 1f1b with more chunks, all of zb-h1, zb-h2,
 * zb-auto ... are zero bubble in a line, zbv, v-half, v-min in a V. Chunks, micro-batch, overlap, sequence
 * parallelism and all else are turned within an idea. */
#ifndef LS_SWEEP_IDEA_H
#define LS_SWEEP_IDEA_H

#include <glib.h>

#include "strategy/strategy.h"

/* Of a resolved strategy, newly allocated: equal for one idea. */
char *ls_idea_text (const LsStrategy *s);

/* How b differs from a within their idea: "vpp 5, no tp-overlap"; newly allocated. Both resolved. */
char *ls_idea_difference (const LsStrategy *a, const LsStrategy *b);

#endif
