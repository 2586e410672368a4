/* strategy/packing.h — which documents are in which micro-batch of a step.
 *
 * Problem. Micro-batches with long documents take longer. The copies of a step wait for each other as its
 * gradients meet, stages of a pipeline for each micro-batch: how far the work of a step is from even decides
 * how long they wait.
 *
 * Model. Documents are drawn one behind the other (model/documents.h) and laid end to end; the first begins
 * the first of the global_batch sequences of the step, and what a sequence has no room for goes on in the
 * next one, as a document of its own. Then the sequences are shuffled (Fisher and Yates; Knuth, The Art of
 * Computer Programming 2, algorithm P) and dealt: b to the first micro-batch of each of d copies, b to the
 * second, and so on. Which documents a step has does not depend on how it is spread over ranks.
 *
 *     sorted   sequences with the most pairs come first, and every other round goes to the copies in the
 *              opposite order: what comes at the same time is alike, and the sums are nearly even
 *     mean     each micro-batch has the mean of the step: as many FLOPs, and nobody waits
 *
 * Pipes both ways have micro-batches of their own, behind one another. Each step is the same draw.
 *
 * Worked example. Sequences of 100, 80, 60, 40 pairs, two copies with two micro-batches: sorted gives the
 * first copy 100 and 40, the second 80 and 60.
 *
 * Deviations. Programs that pack documents whole (first fit) leave the ends of sequences empty, one or two in
 * a hundred tokens; those of a data set repeat. WLB-LLM (Wang et al. 2025, arXiv 2503.17924) puts off the
 * longest documents and packs for even work; no such order is modelled but `sorted`. */
#ifndef LS_STRATEGY_PACKING_H
#define LS_STRATEGY_PACKING_H

#include "model/documents.h"
#include "strategy/strategy.h"

typedef struct {
  LsDocuments mean;    /* of the step                                              */
  guint n_drawn;       /* different micro-batches; 0: each is the mean             */
  LsDocuments *drawn;  /* [n_drawn]                                                */
  uint32_t *number;    /* [dp * micro-batches of a copy] in drawn, by copy; NULL with the mean */
  double n_documents;  /* of the step                                              */
  uint32_t n_longer;   /* that are longer than a sequence, as drawn                */
  double busiest_copy; /* its pairs over the mean copy's: above 1 if they differ   */
  double *values;      /* owned: those of all of them                              */
} LsPacking;

/* s: resolved. *ret_packing NULL: it has no lengths. LS_ERROR_LIMIT: too many documents. */
gboolean ls_packing_new (const LsStrategy *s, const LsModel *m, LsPacking **ret_packing, GError **error);
void ls_packing_free (LsPacking *packing); /* NULL allowed */
G_DEFINE_AUTOPTR_CLEANUP_FUNC (LsPacking, ls_packing_free)

#endif
