/* show/page/page_parts.h — what a page draws and no result holds: a timeline, memory over it; as JSON,
 * newly allocated. */
#ifndef LS_SHOW_PAGE_PAGE_PARTS_H
#define LS_SHOW_PAGE_PAGE_PARTS_H

#include "exec/memory/memory.h"
#include "exec/replay/timeline.h"

/* --- a timeline ------------------------------------------------------------------------------- */

/* Of at most 64 ranks, all or one of each role (run/timeline_boxes.h), the passes are there; of as many as
 * stay below LS_PAGE_MAX_OPS ops together, the ops too. Times are whole nanoseconds from the start of the
 * window, each start less that of the item before. Columns of a rank, an item for each op in the order of its
 * spans:
 *
 *     start   less that of the op before        length  -1: not over when the run stopped
 *     wait    communication: until all partners were there, -1: never; kernel: what sharing added to it
 *     stream, name, tag   indices of the lists  mb, chunk, layer   layer -1: none
 *     cause   index of the op it waited for, as so many before it; 0: none      why   LsCause
 *
 * Messages between ranks whose ops are there: from, from_op, to, to_op, indices of ranks of the list, and of
 * their ops. */
#define LS_PAGE_MAX_OPS 200000

char *ls_page_timeline (const LsTimeline *t);

/* --- memory over it --------------------------------------------------------------------------------- */

/* Of a rank: samples (LsMemorySample), thinned to the fullest of each of 1,000 columns of the window. */
typedef struct {
  uint32_t rank;
  const GArray *samples;
} LsPageMemory;

char *ls_page_memory (const LsPageMemory *ranks, guint n, LsTime window, uint64_t capacity_bytes);

#endif
