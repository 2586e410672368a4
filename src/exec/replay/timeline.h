/* exec/replay/timeline.h — what a run leaves behind: spans of every op on every rank,
 * with the reason why each started when it did.
 *
 * Spans of a rank are in order of start time per stream. `cause` says what the op
 * waited for last: the end of another span of the same rank (its predecessor in
 * the stream or communicator, or a dependency), or the host, which had itself
 * last been held up by the span `cause` (LS_SPAN_NONE: by nothing in the
 * window). */
#ifndef LS_EXEC_REPLAY_TIMELINE_H
#define LS_EXEC_REPLAY_TIMELINE_H

#include <glib.h>

#include <lockstep/units.h>

#include "base/arena.h"
#include "exec/replay/classes.h"
#include "plan/plan.h"

#define LS_SPAN_NONE UINT32_MAX

typedef enum {
  LS_CAUSE_NONE,   /* started as soon as its stream was free          */
  LS_CAUSE_STREAM, /* waited behind an earlier op of its stream or communicator */
  LS_CAUSE_DEP,    /* waited for a dependency                          */
  LS_CAUSE_HOST,   /* waited to be issued                              */
} LsCause;

typedef struct {
  LsTime start; /* kernel: first cycle; communication: launched = resident    */
  LsTime end;   /* LS_TIME_NEVER while unfinished when the run was stopped    */
  union {
    LsTime matched; /* communication: all partners there, data (latency) begin to move;
                       LS_TIME_NEVER: never matched                               */
    LsTime alone;   /* kernel, copy of recorded length: the time that it takes alone */
  };
  LsTime issued;      /* by the host                                                */
  uint32_t instance;  /* of the program, of step `step`                           */
  uint32_t cause;     /* span index of this rank, or LS_SPAN_NONE                 */
  uint16_t op;        /* index in the segment                                     */
  uint8_t cause_kind; /* LsCause */
  uint8_t step;       /* low byte of the step number                              */
} LsSpan;

typedef struct {
  uint32_t n, cap;
  LsSpan *spans;
  /* The head of the compute stream when the run was stopped: what it waited for.
   * Same meaning as in a span. */
  uint32_t tail_cause;
  uint8_t tail_cause_kind;
} LsRankSpans;

typedef struct {
  const LsPlan *plan; /* borrowed */
  uint32_t n_ranks;
  uint32_t n_rows;         /* ranks that stand for others or themselves: what follows is of these */
  uint32_t *rank_of_row;   /* [n_rows] in order; NULL: row i is rank i, of all ranks      */
  LsRankSpans *ranks;      /* [n_rows]; only what overlaps the window is kept            */
  uint32_t *multiplicity;  /* [n_rows] ranks that each stands for; 0: another stands for it */
  uint32_t n_classes;      /* of ranks: what was simulated                               */
  LsRankClasses *classes;  /* of ranks; NULL: each is its own                            */
  uint32_t *rank_of_class; /* [n_classes] who stands for it; NULL: each for itself       */
  LsTime window_start;     /* end of step k - 1 on the last rank                     */
  LsTime window_end;       /* end of step k on the last rank                         */
  LsTime first_step;       /* duration of step 1; 0: it was cut short (steady.c)      */
  uint32_t n_steps;        /* simulated                                              */
  bool is_periodic;        /* the last two steps were equal to the picosecond        */
  bool is_sampled;         /* too many spans: one rank of each role stands for all of it */
  uint32_t n_resources;
  double *resource_bytes; /* [n_resources] payload of the ops of the last step; NULL: see bytes_at. Read it by
                             ls_timeline_bytes()                                  */
  struct PlaceClasses *places; /* NULL: see resource_bytes (private to exec/) */
  double *bytes_at;            /* of each class of resources in places                 */
  uint64_t digest;
  uint64_t n_events, n_solves, n_ops;
  uint64_t n_segments, n_coarse; /* that ran; of these, in one piece */
  LsArena *arena;                /* of all of it */
} LsTimeline;

void ls_timeline_free (LsTimeline *timeline); /* NULL allowed */
G_DEFINE_AUTOPTR_CLEANUP_FUNC (LsTimeline, ls_timeline_free)

/* Payload of the ops of the last step on a resource. */
double ls_timeline_bytes (const LsTimeline *t, uint32_t resource);
/* [places], borrowed: equal of places (cluster/places.h) whose resources carry what those of the same numbers
 * at the other do; below the number of places. NULL: it is not known without a look at each. */
const uint32_t *ls_timeline_places (const LsTimeline *t);

/* Whose spans tell what happened on a rank. */
static inline uint32_t
ls_timeline_representative (const LsTimeline *t, uint32_t rank)
{
  return t->rank_of_class ? t->rank_of_class[ls_rank_class (t->classes, rank)] : rank;
}

static inline uint32_t
ls_timeline_rank (const LsTimeline *t, uint32_t row)
{
  return t->rank_of_row ? t->rank_of_row[row] : row;
}

/* What was kept of a rank, and for how many it stands: nothing and none where another stands for it. */
const LsRankSpans *ls_timeline_spans (const LsTimeline *t, uint32_t rank);
uint32_t ls_timeline_multiplicity (const LsTimeline *t, uint32_t rank);

/* The op of a span. */
const LsOp *ls_span_op (const LsTimeline *t, uint32_t rank, const LsSpan *span);
const LsInstance *ls_span_instance (const LsTimeline *t, uint32_t rank, const LsSpan *span);
/* What to call it: the op's own name, or what it does ("all-reduce", "p2p", "host").
 * Borrowed from the plan, or static. */
const char *ls_span_name (const LsTimeline *t, uint32_t rank, const LsSpan *span);

/* By LsCause: "none", "stream", "dep", "host". */
extern const char *const ls_cause_names[];

#endif
