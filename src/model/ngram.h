/* model/ngram.h — embeddings of several tokens in a row next to that of each token.
 *
 * Problem. Beside the table of words there are n tables of w = h / n columns. A hash of a token and of one,
 * two or more before it gives a row of each; the first has r rows, each next one two more, so that hashes
 * differ. A product of each, w x h, is added to the word:
 *
 *     x = (e + sum_i P_i t_i) / (n + 1)
 *
 * A token multiplies n w h numbers and meets n rows. Numbers of h that are read and written for a token: the
 * lookups 2, the sums n + 2 in one kernel, backward 2; the gradient of a table is as large as it is. What was
 * looked up is kept for the gradients of the products: h.
 *
 * Tables are cut over tp as that of words is, and what is looked up is summed over tp; products are on each
 * rank, for its tokens with sequence parallelism.
 *
 * Worked example. LongCat-Flash-Lite (h 3072, 131,072 words, 78 times as many rows): 12 tables of 10.2 M rows
 * of 256 are 31.4 G of its 68.5 G weights, products 9.4 M.
 *
 * Deviations. Hashes take no time. All tables are looked up in one kernel, and cut by rows as one.
 *
 * References: ml-explore/mlx-lm@06232baa mlx_lm/models/longcat_flash_ngram.py, NgramEmbedding; Meituan
 * LongCat Team 2026, LongCat-Flash-Lite. */
#ifndef LS_MODEL_NGRAM_H
#define LS_MODEL_NGRAM_H

#include "model/model.h"

/* Columns and rows of all tables; 0: there are none. */
uint64_t ls_ngram_width (const LsModel *m);
uint64_t ls_ngram_rows (const LsModel *m);
uint64_t ls_ngram_table_params (const LsModel *m);
uint64_t ls_ngram_linear_params (const LsModel *m);

/* What is wrong with them; NULL: nothing. Static. */
const char *ls_model_check_ngram (const LsModel *m);

#endif
