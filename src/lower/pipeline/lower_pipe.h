/* lower/pipeline/lower_pipe.h — the program of a pipeline rank under construction: what the
 * recipes share.
 *
 *     lower_action.c     an action, and what stands around it
 *     lower_pair.c       a forward and a backward side by side
 *     lower_pipe.c       any order, with p2p where lower_p2p.c puts it
 *     lower_megatron.c   1F1B and interleaved 1F1B, as Megatron-LM communicates
 *     lower_pipe_deepspeed.c  1F1B, as DeepSpeed does
 *     lower_pipedream.c  1F1B without a flush */
#ifndef LS_LOWER_PIPELINE_LOWER_PIPE_H
#define LS_LOWER_PIPELINE_LOWER_PIPE_H

#include "lower/data/lower_dp.h"

/* Numbers, in a rank's order, of a chunk's first and last actions: forwards, input gradients (I), and what
 * completes weight gradients (B, W). */
typedef struct {
  guint first_forward, last_forward, first_input, last_input, first_weights, last_weights;
} Turns;

typedef struct {
  Lower *l;
  uint32_t rank; /* of the pipeline */
  LsSchedShape shape;
  GArray *actions;  /* LsAction: those between two flushes               */
  guint first;      /* number of the first of them in the rank's order    */
  uint32_t mb;      /* micro-batches that were flushed before              */
  Turns *turns;     /* [n_chunks]: of the step, or between two flushes (grad_sync flush) */
  DpTurn *dp_turns; /* [n_chunks] */
  uint32_t n_warmup;
  bool has_backward; /* of which the first is issued after the norm was checked */
  uint32_t n_lead;   /* instances that only the first step runs */
  GArray *instances;
} Pipe;

/* What an action sends to, or receives from, another rank; what one group carries. */
enum { SEND_F = 1, RECV_F = 2, SEND_B = 4, RECV_B = 8 };

/* Behind the last flush; NULL past the end. */
const LsAction *pipe_action (const Pipe *p, guint i);
void pipe_add (Pipe *p, uint32_t segment, uint32_t mb, uint32_t chunk);
void pipe_add_action (Pipe *p, const LsAction *a);
/* A gather of a chunk's parameters, for the micro-batch that needs them first. */
void pipe_add_gather (Pipe *p, uint32_t segment, uint32_t chunk);
/* What stands around an action whose segments are added between the two. */
DpPass pipe_open_action (Pipe *p, const LsAction *a);
void pipe_close_action (Pipe *p, const LsAction *a);
/* One group of what is set in `what`, so many bytes each, behind the compute stream so far. */
uint16_t pipe_build_group (Build *b, LsStream stream, uint32_t what, uint64_t bytes, const char *name);
/* The same of tensors of so many bytes over tp, and the host waits for the device; parts of what came are
 * gathered. */
void pipe_build_synced_group (Build *b, uint32_t what, uint64_t bytes, const char *name);

/* lower_pair.c: both passes; what is sent of them stands between the two calls. */
typedef struct {
  const LsAction *forward, *backward;
  const GArray *rest; /* Piece: of the backward     */
  guint first;        /* of these, the first to come */
} Pair;

Pair pipe_open_pair (Pipe *p, const LsAction *first, const LsAction *second);
void pipe_close_pair (Pipe *p, Pair *pair);
/* Nothing is sent between the two. */
void pipe_add_pair (Pipe *p, const LsAction *first, const LsAction *second);

/* lower_megatron.c */
void pipe_megatron (Pipe *p);

/* lower_pipe_deepspeed.c */
void pipe_deepspeed (Pipe *p);

/* lower_pipedream.c: the whole program */
void pipe_pipedream (Pipe *p);

#endif
