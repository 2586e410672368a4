/* lower/data/lower_xla_loop.h — turns of XLA's loop over layers (private; for lower_dp_xla.c). */
#ifndef LS_LOWER_DATA_LOWER_XLA_LOOP_H
#define LS_LOWER_DATA_LOWER_XLA_LOOP_H

#include "lower/data/lower_dp.h"
#include "lower/layers/lower_layers.h"

/* A reduction under way, and the gradient that it reads. */
typedef struct {
  uint16_t op, buffer;
  uint64_t bytes;
} Reduction;

typedef struct {
  uint16_t *gathered;  /* [operators]: the gather of its weight in this pass, or NO_OP */
  GArray *reducing;    /* Reduction: those that compute has not waited for, of the turn before ... */
  guint n_before;      /* ... so many, then of this one                                */
  bool has_begun;      /* the first unit of the pass                                   */
  uint64_t replicated; /* parameters of the unit whose gradients are not cut          */
  uint64_t replicated_expert;
} XlaPass;

/* The turn that an operator is in; of what stands outside of the layers a number of its own. */
uint32_t xla_unit_of (const Lower *l, const Chunk *c, guint o);
bool xla_is_outside (const Chunk *c, guint o);
/* Parameters that are cut over the ranks of a copy. */
uint64_t xla_cut_numel (const LsOperator *o);
bool xla_is_gathered (const Build *b, const Chunk *c, guint o);
/* It runs products again, for which it needs its weights. */
bool xla_multiplies_again (const Lower *l, const Chunk *c, guint o);
/* Its weights are there until its backward. */
bool xla_lives_until_backward (const Lower *l, const Chunk *c, guint o);

/* The op to which what an operator leaves behind is tied; the buffer of its weights, or their gradients. */
uint16_t xla_last_op (Build *b);
uint16_t xla_buffer_id (Build *b, const Chunk *c, guint o, bool is_gradient);
void xla_weight_buffer (Build *b, uint16_t op, const Chunk *c, guint o, bool is_free);

/* As the unit begins at o: gathers of its weights, or of the next one's. */
void xla_gather_for (Build *b, XlaPass *x, const DpPass *p, guint o);
/* By loop_copies: what operator o's forward keeps, into arrays of all layers; and out of them, what its
 * backward reads of the operator before it. */
void xla_copy_to_arrays (Build *b, const Chunk *c, guint o);
void xla_copy_from_arrays (Build *b, const Chunk *c, guint o);

#endif
