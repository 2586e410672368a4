/* lower/data/lower_dp_fsdp.h — PyTorch's FSDPs while a pass is built: units, and FSDP1's limiter of gathers
 * (private; lower_dp_fsdp.c has the walk). */
#ifndef LS_LOWER_DATA_LOWER_DP_FSDP_H
#define LS_LOWER_DATA_LOWER_DP_FSDP_H

#include "lower/data/lower_dp.h"

#define NO_UNIT G_MAXUINT

typedef enum { HOLD_PASS, HOLD_MB, HOLD_STEP } Hold;

typedef struct {
  uint64_t numel[2];  /* of a tensor-parallel rank, that learn: others, experts */
  uint64_t frozen[2]; /* bytes of those that do not                            */
  guint first;        /* operator after which its backward is done */
} Unit;

/* Of a pass, from begin to end: DpPass.state. */
typedef struct {
  const DpPass *p;    /* NULL: after the last micro-batch of a pipeline                  */
  GArray *units;      /* Unit: the embedding where it is apart, layers in forward order, then the root */
  guint n;            /* before the root                                                 */
  guint root;         /* n, or NO_UNIT: embedding and head are elsewhere                 */
  guint n_embedding;  /* operators of an embedding that is a unit of its own             */
  bool is_apart;      /* the ends are: the root comes after the layers                   */
  bool has_passed;    /* the root has entered, in a backward left                        */
  guint inside;       /* layers' unit that was entered last, NO_UNIT: none               */
  uint16_t *gathered; /* [units] op that gathers it in this segment; NO_OP: none         */
  GArray *free_ops;   /* FSDP1: Free, oldest first: gathers that were freed              */
  guint copied;       /* FSDP2: unit whose gather is still kept after its copy, NO_UNIT  */
  uint16_t copy_out;  /* FSDP2: that copy                                                 */
  guint reducing;     /* FSDP2: unit whose reduce-scatter is in flight, NO_UNIT          */
  uint16_t reduce_op; /* FSDP2: that                                                      */
  bool adds;          /* FSDP2: its shards have gradients from before an earlier flush   */
  guint n_before;     /* units of the rank's chunks before this one's                    */
} Fsdp;

/* An instant at which the memory of a gather was given back. */
typedef struct {
  bool has_passed; /* of an earlier micro-batch or step */
  bool is_event;   /* of the forward of the same micro-batch: event class, else op */
  uint16_t op;
} Free;

/* How long a unit stays gathered. */
Hold fsdp_hold (const Lower *l, bool is_root);

/* FSDP1's limiter, of a pass: before a gather; after the free of a unit by an op; as the pass begins. */
void fsdp_limit (Build *b, Fsdp *f);
void fsdp_note_free (Build *b, Fsdp *f, guint unit, uint16_t op);
void fsdp_recall_frees (const Lower *l, Fsdp *f);

#endif
