/* schedules/zb.h — what the automatic zero-bubble schedulers share (zb_auto.c, zb_search.c);
 * nobody else includes it.
 *
 * A string says for each rank in which order it takes its symbols; the micro-batch is
 * implied, as every chunk's F and I come in the order of the micro-batches, and the W in
 * the order of the I. A symbol is a type plus the chunk (0 or 1). */
#ifndef LS_SCHEDULES_ZB_H
#define LS_SCHEDULES_ZB_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include <lockstep/units.h>

#define LS_ZB_UNLIMITED (G_MAXUINT32 / 2)
#define LS_ZB_N_KINDS   4 /* F and I of two chunks */

enum { LS_ZB_F = 0, LS_ZB_I = 2, LS_ZB_W = 4 };

/* Ranks, chunks per rank (1, or 2 that form a V), micro-batches; times per stage. */
typedef struct {
  uint32_t p, v, m;
  const LsTime *f, *i, *w; /* [p * v], not owned */
  LsTime comm;
  /* Memory, in units: an F takes `chunk` of them (0: 2); its I leaves kept[stage], which may be more, and its
   * W nothing. kept NULL: half of a chunk. */
  uint32_t limit; /* that a rank may hold; an I with no W before it to run may exceed it */
  uint32_t chunk;
  const uint32_t *kept; /* [p * v], not owned */
} LsZbJob;

static inline uint32_t
ls_zb_takes (const LsZbJob *job)
{
  return job->chunk > 0 ? job->chunk : 2;
}

static inline uint32_t
ls_zb_kept (const LsZbJob *job, uint32_t stage)
{
  return job->kept ? job->kept[stage] : ls_zb_takes (job) / 2;
}

/* What an F, or an I, takes more than it gives back. */
static inline uint32_t
ls_zb_needs (const LsZbJob *job, uint32_t stage, bool is_f)
{
  uint32_t takes = ls_zb_takes (job), kept = ls_zb_kept (job, stage);
  return is_f ? takes : kept > takes ? kept - takes : 0;
}

static inline uint32_t
ls_zb_stage (const LsZbJob *job, uint32_t rank, uint32_t chunk)
{
  return chunk == 0 ? rank : 2 * job->p - 1 - rank;
}

static inline uint32_t
ls_zb_rank (const LsZbJob *job, uint32_t stage)
{
  return stage < job->p ? stage : 2 * job->p - 1 - stage;
}

/* Symbols of a rank. */
static inline size_t
ls_zb_length (const LsZbJob *job)
{
  return (size_t) 3 * job->v * job->m;
}

/* A rank's last end less its first start: the largest, and the sum to break ties. */
typedef struct {
  LsTime span, sum;
} LsZbScore;

#define LS_ZB_NEVER ((LsZbScore) { INT64_MAX, INT64_MAX })

static inline bool
ls_zb_is_better (LsZbScore a, LsZbScore b)
{
  return a.span < b.span || (a.span == b.span && a.sum < b.sum);
}

/* How a rank treats its W: whether those of the string hold, and how long a wait must be,
 * in sixteenths of a W, for one to be run in it (16: it fits; less: it delays what is
 * waited for). */
typedef enum { LS_ZB_OBEY, LS_ZB_OBEY_UNTIL_DRAIN, LS_ZB_IGNORE } LsZbObey;
typedef struct {
  uint8_t obey; /* LsZbObey */
  uint8_t sixteenths;
} LsZbRule;

/* State of a rank while a string is run or made. */
typedef struct {
  LsTime t, first;           /* busy until; start of its first action, -1 before */
  LsTime idle;               /* between its actions */
  LsTime wake;               /* making: when it looks again */
  uint32_t n[LS_ZB_N_KINDS]; /* symbols done */
  uint32_t mem;              /* units */
  uint32_t n_i, n_w, n_w_seen;
  uint32_t n_planned[2]; /* making: W of the template that are past, by chunk */
  size_t pos, n_out;
  bool is_queued;
} LsZbRank;

typedef struct {
  const LsZbJob *job;
  LsZbRank *ranks;   /* [p] */
  LsTime *end[2];    /* of F, of I: [stage * m + micro-batch], -1 before */
  uint8_t *w_chunks; /* [p][v m]: chunk of the n-th I of a rank */
  uint32_t *heap;    /* [2 p] scratch */
  LsTime *work;      /* [p] of a rank */
  LsTime cutoff;     /* a longer span need not be known: LS_ZB_NEVER */
  int64_t budget;    /* actions that may still be timed */
} LsZbRun;

/* In the arena. */
void ls_zb_run_init (LsZbRun *run, const LsZbJob *job, int64_t budget, LsArena *arena);

/* schedules/zb_search.c: runs a string, rules[p] deciding where the W go. out, if not NULL,
 * gets the order that was run. LS_ZB_NEVER if the string stalls or breaks the limit. */
LsZbScore ls_zb_fill (LsZbRun *run, const uint8_t *string, const LsZbRule *rules, uint8_t *out);

/* schedules/zb_search.c: makes a string by list scheduling. keys[p][6]: place of the first
 * F0 F1 I0 I1 W0 W1 of each rank, in periods of the steady state; the k-th is k later.
 * In the steady state the keys decide; before a rank's first I and when its forwards are
 * used up, a symbol that is ready may overtake by up to the window. */
typedef struct {
  const double (*keys)[6]; /* NULL: priorities instead */
  double warm_window, drain_window;
  bool drains_late;                /* the drain begins after the forwards of both chunks, not of chunk 0 */
  uint8_t priority[LS_ZB_N_KINDS]; /* kinds, first first */
  double cap, cap_slope;           /* micro-batches that rank r holds in chunk 0: cap - r cap_slope */
  uint8_t sixteenths;
} LsZbList;
bool ls_zb_list (LsZbRun *run, const LsZbList *list, uint8_t *string); /* false: stalled */

/* schedules/zb_search.c: the best string so far, and ways to better it. */
typedef struct {
  LsZbRun run;
  LsTime goal; /* no span is less: the work of a rank */
  LsZbScore best;
  uint8_t *best_string, *string; /* [p][length] */
  LsZbRule *best_rules, *rules;  /* [p] */
} LsZbSearch;

void ls_zb_search_init (LsZbSearch *search, const LsZbJob *job, int64_t budget, LsArena *arena); /* in it */
bool ls_zb_search_is_over (const LsZbSearch *search);
/* Runs search->string with search->rules, keeps it if it is the best. */
LsZbScore ls_zb_try (LsZbSearch *search);
/* The same with each of a group of rules for all ranks: the best score of them, whose rules
 * are left in search->rules. */
typedef enum { LS_ZB_RULES_FEW, LS_ZB_RULES_ALL, LS_ZB_RULES_IGNORE } LsZbRules;
LsZbScore ls_zb_try_rules (LsZbSearch *search, LsZbRules which);
/* The rules that are tried in place of one rank's. */
extern const LsZbRule ls_zb_rules[];
guint ls_zb_n_rules (LsZbRules which, guint *ret_first);
/* Moves of single symbols, and of single ranks' rules, from search->string and rules. */
void ls_zb_polish (LsZbSearch *search);
void ls_zb_polish_best (LsZbSearch *search);

/* The searches: below for one chunk per rank, below for a V. */
void ls_zb_search_line (LsZbSearch *search);
void ls_zb_search_vee (LsZbSearch *search);

#endif
