/* model/documents.h — documents in a sequence: how long they are, and what attention inside each computes.
 *
 * Problem. Documents are laid end to end and cut every s tokens (packed sequences). A query meets the keys
 * of its own document alone: a block-diagonal mask, cu_seqlens of variable-length kernels. All else is by the
 * token and does not change, nor does memory, but for the offsets of the documents.
 *
 * Equations. A sequence with documents of l tokens, and a window that leaves p (l) of the pairs of one
 * (ls_model_attention_pairs()), keeps of the pairs of a whole sequence
 *
 *     pairs    = sum l^2 / s^2
 *     windowed = sum l^2 p (l) / (s^2 p (s))     in layers with a window
 *
 * A rank of context parallelism that has queries [a, b) of the sequence meets, of a document that begins at
 * t, with a and b no less than t and no more than where it ends, ((b - t)^2 - (a - t)^2) / 2 pairs; of those
 * that it meets in a whole sequence this is of_rank. Where each document is cut over the ranks, all have
 * their part of `pairs`.
 *
 * A kernel has the same queries and heads, and as many keys as make up its pairs: n becomes
 * n sum l^2 / s^2, which is the mean length of the document of a token, and FLOPs shrink by what is left. So
 * how fast it is follows from the curve of the kernel by its keys, as measured with one length
 * (compute/cost.h).
 *
 * Worked example. s = 8, documents of 5 and 3: pairs = 34 / 64 = 0.53; n = 4.25, counted as 4. With two ranks
 * and parts 0, 3 and 1, 2 of four: the former meets (4 - 0) / 2 + (9 - 1) / 2 = 6 of 16 pairs, the latter
 * (16 - 4) / 2 + (25 - 16) / 2 + 1 / 2 = 11 of 16.
 *
 * Deviations. Kernels with documents of many lengths in one launch were not measured; the longest document
 * decides no tail. Nothing is lost to documents that end within a tile, nor to tokens that fill each up to
 * 2 cp where a ring cuts it, as Transformer Engine wants them. */
#ifndef LS_MODEL_DOCUMENTS_H
#define LS_MODEL_DOCUMENTS_H

#include "model/kernel.h"
#include "model/model.h"

/* What is left of the pairs of whole sequences, in a micro-batch or in the mean. */
typedef struct {
  double pairs, windowed;
  const double *of_rank; /* [cp] of pairs, by whose queries; NULL: all alike. Borrowed */
} LsDocuments;

/* Of attention over whole sequences, in a layer of this kind, makes that inside documents. */
void ls_documents_apply (const LsDocuments *d, uint32_t layer_kind, uint32_t cp_rank, LsKernel *kernel);
/* FLOPs of ls_model_flops() between tokens of different documents. */
double ls_documents_flops_between (const LsModel *m, const LsDocuments *d, uint32_t seq, double n_sequences,
                                   bool causal);

/* ---- how long they are ---- */

#define LS_LENGTH_MAX 0x7fffffffu

typedef struct LsLengths LsLengths;

typedef struct {
  uint32_t length;
  double count;
} LsLengthCount;

/* "fixed:N", "uniform:A:B" (all from A to B alike likely), "lognormal:MEDIAN:SIGMA[:MAX]": whole numbers from
 * 1 on. NULL: *ret_why, newly allocated, says what was expected. With one reference. */
LsLengths *ls_lengths_parse (const char *text, char **ret_why);
/* Lengths in proportion to counts, n > 0 of them; NULL: likewise. */
LsLengths *ls_lengths_new_counted (const LsLengthCount *counts, guint n, char **ret_why);
LsLengths *ls_lengths_ref (LsLengths *lengths); /* NULL allowed */
void ls_lengths_unref (LsLengths *lengths);     /* NULL allowed */
G_DEFINE_AUTOPTR_CLEANUP_FUNC (LsLengths, ls_lengths_unref)

/* Tokens of a document, by base/draw.h. */
uint32_t ls_lengths_draw (const LsLengths *lengths, uint64_t *state);

#endif
