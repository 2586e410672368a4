/* ask/rank_parts.h — which layers of a model a rank holds, and how many parameters of each. */
#ifndef LS_ASK_RANK_PARTS_H
#define LS_ASK_RANK_PARTS_H

#include "job/job.h"

/* In the place of a layer. */
enum { LS_PART_EMBEDDING = UINT32_MAX - 1, LS_PART_HEAD = UINT32_MAX };

typedef struct {
  uint32_t layer;    /* of the model, or LS_PART_... */
  uint64_t n_params; /* on one rank, before data parallelism cuts them */
} LsRankPart;

/* [stages + 1] the first layer of each global stage, and the number of layers; newly allocated. NULL: not
 * known, as the job is a trace that does not say its model, or not how its layers lie. */
uint32_t *ls_first_layers (const LsJobResult *r, uint32_t *ret_n_stages);

/* LsRankPart of what a role holds, by stage; empty where first_layers (of the above) is NULL. Experts are
 * counted as if evenly spread. */
GArray *ls_rank_parts (const LsJobResult *r, uint32_t role, const uint32_t *first_layers, uint32_t n_stages);

#endif
