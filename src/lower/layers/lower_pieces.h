/* lower/layers/lower_pieces.h — a forward and a backward side by side, so that the exchange of tokens of one
 * runs together with kernels of the other (private).
 *
 * Problem. Between its exchanges a pass has nothing to compute. Another pass, of another micro-batch, has.
 *
 * Method. A pass is cut where tokens are exchanged. With C what a layer computes before its experts (and
 * behind those of the layer before), D the dispatch, M the experts, K the combine, in backwards written
 * small, and w, W the weight gradients of M and C where these are delayed, a forward and a backward over two
 * layers with experts run as
 *
 *     compute      c |     C |  m  w |  M |  c  W |  C |  m  w |  M |  c |  C |  W
 *     exchange         k |      D |    d |    K |    k |    D |    d |   K |
 *
 * Each piece is a segment; pieces of two instances alternate in the program of a rank: a piece of the
 * forward, then one of the backward, and so on; what one of the two has more comes behind, the backward
 * first. What a piece needs of earlier pieces of its pass are events, so it waits for nothing of the other
 * pass but what stands before it on its stream. What goes to other stages is there before the last W.
 *
 * Delayed weight gradients are computed behind the exchange that their operators' input gradients begin:
 * beside it also in a backward that runs alone.
 *
 * Deviations. Megatron-LM pairs layers one by one, also those without experts; here a pair is from one
 * exchange to the next. It sums what experts made on the stream of the exchange, here it is computed behind
 * it.
 *
 * Reference. DeepSeek-AI, DeepSeek-V3 Technical Report, 2024, section 3.2.1, figure 4; Megatron-LM,
 * core/models/common/model_chunk_schedule_plan.py (2025), whose order this is. */
#ifndef LS_LOWER_LAYERS_LOWER_PIECES_H
#define LS_LOWER_LAYERS_LOWER_PIECES_H

#include "lower/data/lower_dp.h"

/* Events that pieces of a rank's passes may record; 0 where passes are not cut. */
uint16_t n_piece_events (const Lower *l);

/* The pieces of a pass as segments, in its order. Owned by l. */
typedef struct {
  uint32_t segment;
  PieceKind kind;
} Piece;

const GArray *segment_pieces (Lower *l, DpPass *p);

#endif
