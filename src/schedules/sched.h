/* schedules/sched.h — pipeline schedules: the order of (chunk, micro-batch, F | I |
 * W | B) on each pipeline rank, and nothing else. One .c file a schedule, one line
 * in the registry of sched.c.
 *
 * F is a forward, B a full backward, I and W its halves: input gradient and weight
 * gradient. When things happen is the evaluator's (schedules/sched_eval.h). */
#ifndef LS_SCHEDULES_SCHED_H
#define LS_SCHEDULES_SCHED_H

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

#include <lockstep/units.h>

typedef enum { LS_ACTION_F, LS_ACTION_B, LS_ACTION_I, LS_ACTION_W } LsActionType;

static inline char
ls_action_letter (LsActionType type)
{
  return "FBIW"[type];
}

typedef struct {
  uint32_t mb;       /* of its pipe */
  uint16_t chunk;    /* of the rank */
  uint8_t type;      /* LsActionType */
  uint8_t is_paired; /* executed together with the next action: one is F, the other B */
} LsAction;

/* Which stage a rank's chunk c holds, with p ranks r:
 *
 *   loop   c p + r
 *   wave   c p + r for even c, c p + p - 1 - r for odd c (V where there are two)
 *   pipes  each chunk is a stage of a pipe of its own, of p stages; pipes 2i run
 *          down the ranks and start at rank i p / (pipes / 2), pipes 2i + 1 run up
 *          and start at the rank before that (two pipes: from both ends) */
typedef enum { LS_PLACE_LOOP, LS_PLACE_WAVE, LS_PLACE_PIPES } LsPlacement;

typedef enum { LS_ROUNDS_MEGATRON, LS_ROUNDS_PYTORCH } LsRounds;

/* Times of one chunk. A pair of a forward of chunk x and a backward of chunk y
 * takes f(x) + b(y) less what overlapping gains, the smaller f + b - fb of both. */
typedef struct {
  LsTime f, i, w;
  LsTime b;  /* full backward */
  LsTime fb; /* a forward and a full backward executed together */
} LsChunkTimes;

typedef struct {
  LsChunkTimes chunk;         /* of every stage, unless: */
  const LsChunkTimes *stages; /* [stages of a pipe], not owned; or NULL */
  const LsTime *const
      *actions; /* [rank][action of its order], measured; not owned; or NULL. Evaluation only, not pairs */
  LsTime comm;  /* from a stage to its neighbour on another rank; none within a rank */
  /* What a chunk holds from I to W, in what one holds from F to I, which may be less; NULL: a half. Not
   * owned. */
  const double *kept; /* [stages of a pipe] */
} LsSchedTimes;

typedef struct {
  uint32_t pp;
  uint32_t vpp; /* chunks per rank; 0: what the schedule needs, where it leaves no choice */
  uint32_t n_micro_batches;
  uint32_t group;  /* micro-batches that pass a chunk before the next chunk's turn; 0: pp (interleaved-1f1b)
                     or all (hanayo) */
  LsRounds rounds; /* interleaved-1f1b: whose rule forms the groups */
  uint32_t waves;  /* hanayo; 0: vpp / 2, or 1 */
  uint32_t pipes;  /* chimera: replicas, half of them in each direction; 0: 2 */
  /* none, interleaved-1f1b: in the steady state a forward and the backward behind it are executed as one
   * pair, for which each rank does one forward more before */
  bool has_pairs;
  /* Automatic schedules only. */
  LsSchedTimes times;  /* all 0: f = i = w, no communication */
  double memory_limit; /* micro-batches of a rank's full activations; one weighs 1 from F,
                          times.kept from I, 0 from W; 0: unlimited */
} LsSchedShape;

/* Members of LsSchedShape that only some schedules heed: a set of bits. */
typedef enum {
  LS_SCHED_GROUP = 1 << 0,
  LS_SCHED_ROUNDS = 1 << 1,
  LS_SCHED_WAVES = 1 << 2,
  LS_SCHED_PIPES = 1 << 3,
  LS_SCHED_PAIRS = 1 << 4,
} LsSchedKnob;

/* How the actions of a rank become a program with sends and receives. */
typedef enum {
  LS_RECIPE_ANY,       /* for any order: lower/pipeline/lower_p2p.c                       */
  LS_RECIPE_MEGATRON,  /* warm-up, pairs, cool-down: lower/pipeline/lower_megatron.c; needs n_warmup */
  LS_RECIPE_UNFLUSHED, /* steps are not flushed: lower/pipeline/lower_pipe.c; needs n_versions */
} LsSchedRecipe;

/* Which schedule is meant where none is named: of one stage, of several, of several chunks on each. */
typedef enum {
  LS_SCHED_OTHER,
  LS_SCHED_ONE_STAGE,
  LS_SCHED_STAGES,
  LS_SCHED_CHUNKS,
} LsSchedUse;

/* Chunks that a rank may have: any, or by the schedule's own rules; 1; 2, which form a V; 2 and more. */
typedef enum { LS_CHUNKS_ANY, LS_CHUNKS_ONE, LS_CHUNKS_TWO, LS_CHUNKS_SEVERAL } LsSchedChunks;

typedef struct LsSched {
  const char *name; /* "1f1b"; for people and files */
  LsSchedUse use;
  LsSchedChunks chunks;
  const char *other; /* the rule on chunks in words of its own; NULL: as usual */
  LsPlacement placement;
  LsSchedRecipe recipe;
  uint32_t knobs;          /* LsSchedKnob that it has                              */
  bool has_pytorch_rounds; /* without being asked for them, and no others          */
  bool is_split;           /* backwards are I and W: activations may be held until W */
  const char *bounded;     /* it holds whatever makes it shorter, unless its shape has a limit: schedules of
                              its kind that hold less, "zb-1p or zb-2p"; NULL: it has one of its own */
  struct {
    uint32_t times, plus, over;
  } limit; /* of one that is searched: memory for (times pp + plus) / over micro-batches; over 0: any */
  bool always_pairs; /* of a forward and a backward, without being asked for them */
  /* Its rules next to that on chunks; pp and n_micro_batches are not 0. NULL: none. */
  const char *(*refusal) (const LsSchedShape *shape);
  /* Chunks per rank; NULL: vpp, or 1. */
  uint32_t (*n_chunks) (const LsSchedShape *shape);
  /* Append LsAction values; the shape must be legal. At most one of the two: a fixed schedule knows a rank's
   * order from its number, an automatic one finds all at once (ranks[pp] are empty arrays). Neither: it is
   * one of the 1F1B family, which the next three describe. */
  void (*order) (const LsSchedShape *shape, uint32_t rank, GArray *actions);
  void (*orders) (const struct LsSched *sched, const LsSchedShape *shape, GArray **ranks);
  /* Warm-up forwards, those before the steady state, which is made of pairs of a forward and a
   * backward (none is left for it if all forwards are warm-up). NULL: none. */
  uint32_t (*n_warmup) (const LsSchedShape *shape, uint32_t rank);
  /* With split backwards: the k-th W follows the I that is so many later; the last ones come at the end. */
  uint32_t (*n_delay) (const LsSchedShape *shape, uint32_t rank);
  /* Chunk and micro-batch of the k-th forward (type F) or backward (type B). NULL: micro-batch k of one
   * chunk. */
  LsAction (*nth) (const LsSchedShape *shape, LsActionType type, uint32_t k);
  /* Versions of the weights that a rank keeps. */
  uint32_t (*n_versions) (const LsSchedShape *shape, uint32_t rank);
  /* Forwards, of all chunks, that a rank surely does before its first backward ends. NULL: not known. */
  uint64_t (*in_flight) (const LsSchedShape *shape, uint32_t rank);
} LsSched;

const LsSched *ls_sched_find (const char *name); /* in any case, or a paper's name; NULL if unknown */
const LsSched *ls_sched_at (guint i);            /* NULL past the end */
const LsSched *ls_sched_usual (uint32_t pp, uint32_t vpp);

/* NULL if the schedule can be made for the shape, else a static text with the rule that
 * the shape breaks. */
const char *ls_sched_refusal (const LsSched *sched, const LsSchedShape *shape);
/* The schedule's own part of that: pp and n_micro_batches are not 0, and sizes not looked at. */
const char *ls_sched_own_refusal (const LsSched *sched, const LsSchedShape *shape);
/* It cuts the model into as many chunks as it needs, and leaves no choice. */
bool ls_sched_fixes_chunks (const LsSched *sched);
/* Its order is searched for, within a limit of memory. */
bool ls_sched_is_searched (const LsSched *sched);
/* Every step ends before the next begins. */
bool ls_sched_is_flushed (const LsSched *sched);
/* Versions of the weights that a rank keeps. */
uint32_t ls_sched_n_versions (const LsSched *sched, const LsSchedShape *shape, uint32_t rank);
/* As in_flight; what is not known: 1 of a single chunk, 0 of several. */
uint64_t ls_sched_in_flight (const LsSched *sched, const LsSchedShape *shape, uint32_t rank);

/* ---- layouts: which stage of which pipe a rank's chunk holds, and the other way round; orders on them ----
 *
 * A pipe is a replica of the model that micro-batches pass in one direction: one, save for dualpipe (2) and
 * chimera (2 or more). Stages and micro-batches are numbered within their pipe. */

typedef struct {
  uint16_t pipe;
  uint16_t stage;
} LsStageRef;

typedef struct {
  uint32_t rank;
  uint16_t chunk;
} LsHome;

typedef struct {
  uint32_t n_ranks, n_chunks; /* chunks per rank, at most */
  uint32_t n_pipes, n_stages; /* stages of a pipe */
  uint32_t n_micro_batches;   /* of a pipe */
  LsStageRef *stages;         /* [rank * n_chunks + chunk] */
  LsHome *homes;              /* [pipe * n_stages + stage] */
} LsLayout;

typedef struct {
  LsLayout layout;
  GArray **ranks; /* [n_ranks] of LsAction */
} LsOrders;

/* Chunks per rank; the shape must be legal. */
uint32_t ls_sched_n_chunks (const LsSched *sched, const LsSchedShape *shape);

/* Of a legal shape; free with ls_orders_free. */
LsOrders *ls_sched_orders (const LsSched *sched, const LsSchedShape *shape);
/* Empty orders; what is at each (rank, chunk), copied. A stage whose home is not told is
 * where its first rank is, so that a foreign order may be checked; stages that no rank
 * holds have home rank UINT32_MAX. */
LsOrders *ls_orders_new (uint32_t n_ranks, uint32_t n_chunks, uint32_t n_pipes, uint32_t n_stages,
                         uint32_t n_micro_batches, const LsStageRef *stages);
void ls_orders_free (LsOrders *orders); /* NULL allowed */
G_DEFINE_AUTOPTR_CLEANUP_FUNC (LsOrders, ls_orders_free)

LsStageRef ls_place (LsPlacement placement, uint32_t pp, uint32_t n_chunks, uint32_t rank, uint32_t chunk);

static inline LsStageRef
ls_layout_stage (const LsLayout *l, uint32_t rank, uint32_t chunk)
{
  return l->stages[rank * l->n_chunks + chunk];
}

static inline LsHome
ls_layout_home (const LsLayout *l, uint32_t pipe, uint32_t stage)
{
  return l->homes[pipe * l->n_stages + stage];
}

/* "3F0", stage 3, micro-batch 0; with several pipes "d1s3F0": pipe (direction) 1. */
void ls_action_append_text (const LsLayout *l, uint32_t rank, const LsAction *a, GString *text);
/* A rank's cells, separated by commas, in PyTorch's text format; pairs as
 * "(0F7;7B3)OVERLAP_F_B". */
void ls_orders_append_rank (const LsOrders *orders, uint32_t rank, GString *text);

#endif
