/* parallel/chunks.h — which layers live in which chunk (DESIGN.md section 6):
 * evenly if L divides by pp * vpp; if L + 2 does, embedding and head count as a
 * layer each and the first and last chunk carry one fewer; --layers-per-chunk
 * overrides; anything else is refused with this rule. */
#ifndef LS_PARALLEL_CHUNKS_H
#define LS_PARALLEL_CHUNKS_H

#include "parallel/strategy.h"

/* ret_layers: [pp * vpp], in model order (global stage). FALSE, with a diagnostic,
 * if refused. */
gboolean ls_chunk_layers (const LsStrategy *s, const LsModel *m, uint32_t *ret_layers, LsDiagList *diags);

#endif
