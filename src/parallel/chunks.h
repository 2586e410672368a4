/* parallel/chunks.h — which layers live in which chunk (DESIGN.md section 6).
 *
 * L layers over n = pp * vpp chunks, in model order:
 *
 *     n divides L       L/n layers in every chunk
 *     n divides L + 2   embedding and head count as a layer each: (L + 2)/n in
 *                       every chunk, one fewer in the first and in the last
 *     --layers-per-chunk a,b,...   as given: n counts that sum to L
 *
 * anything else is refused with this rule. Only the first and the last chunk, which
 * hold the embedding and the head, may be without layers.
 *
 *     L = 126, n = 16:   7 8 8 8 8 8 8 8 8 8 8 8 8 8 8 7
 */
#ifndef LS_PARALLEL_CHUNKS_H
#define LS_PARALLEL_CHUNKS_H

#include "parallel/strategy.h"

/* ret_layers: [pp * vpp], in model order (global stage); NULL to check only. FALSE,
 * with a diagnostic of LS_ERROR_CONFLICT each, if refused; more than LS_MAX_CHUNKS
 * chunks always are. */
gboolean ls_chunk_layers (const LsStrategy *s, const LsModel *m, uint32_t *ret_layers, LsDiagList *diags);

#endif
