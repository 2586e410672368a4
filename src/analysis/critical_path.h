/* analysis/critical_path.h — which ops, links and ranks a step's time went through.
 *
 * Problem. A step is as long as the longest chain of things that had to wait for each other.
 * What is not on it could be faster for nothing; what is on it shortens the step.
 *
 * Method. Walk back from what ended last. At instant t stands an op that could not begin, or
 * end, before: what it did until then is a piece of the path, and what it had waited for is
 * the next op.
 *
 *     rank 1  . . . . . . . . . . [ receive     |moving ][ kernel ]|
 *                                  start         matched  end     window
 *     rank 0  [ kernel          ][ send . . . . |moving ]
 *                                 <- the later of both: go on with what it waited for
 *
 *     kernel          the time that it takes alone, and what sharing added to it
 *     communication   from its match to its end: latency, then data that move. Before, it
 *                     waited for the member that came last, so the walk goes on there; for
 *                     its own rank where nobody came later
 *     host            from the end of what held up the host to the start of the op
 *
 * The causes of a timeline (exec/replay/timeline.h) say what waited for what on a rank;
 * critical_path.c finds the other ends. Steps overlap: the walk ends at the start of the
 * window, wherever it is.
 *
 * Pieces lie end to end: they sum to the step to the picosecond.
 *
 * Worked example. Above, let the kernel of rank 0 take 10 us, the transfer 2 us of latency and 6
 * of moving, the kernel of rank 1 another 3: 3 + 6 + 2 + 10 us = 21 us, one change of rank.
 *
 * Deviations. Of several that came last, or ended last, one is taken: that of the own rank,
 * else the lowest. A group of transfers has one span: of those that may have ended it, the one
 * whose ends came last is taken. Latency is that of the plan of the call, put before all
 * moving, also where phases alternate. Ranks that were not simulated are told by who stands
 * for them (timeline.representative): what they did is the same. */
#ifndef LS_ANALYSIS_CRITICAL_PATH_H
#define LS_ANALYSIS_CRITICAL_PATH_H

#include "cluster/cluster.h"
#include "exec/replay/timeline.h"
#include "network/coll.h"

typedef enum {
  LS_PATH_KERNEL,   /* at the speed that it has alone               */
  LS_PATH_SLOWDOWN, /* what sharing added to it                     */
  LS_PATH_LATENCY,  /* communication: nothing moves yet             */
  LS_PATH_MOVING,   /* communication, copies: data move             */
  LS_PATH_HOST,     /* waiting to be issued                         */
  LS_PATH_QUEUE,    /* behind an earlier transfer or copy the same way, or blocks of a kernel */
  LS_PATH_OTHER,    /* what nothing explains                        */
  LS_N_PATH_KINDS
} LsPathKind;

extern const char *const ls_path_kind_names[LS_N_PATH_KINDS]; /* by value: "kernel" */

#define LS_PATH_NO_LINK UINT32_MAX

/* [from, to), not empty, of one op on one rank. */
typedef struct {
  LsTime from, to;
  uint32_t rank;
  uint32_t span;    /* of who represents the rank; LS_SPAN_NONE: of no op      */
  uint32_t link;    /* MOVING: resource that limits it, or LS_PATH_NO_LINK     */
  uint32_t n_links; /* that limit it alike                                     */
  double busy_s;    /* what that link would need for it alone                  */
  LsPathKind kind;
} LsPathPiece;

/* Names of a piece are those of the span: ls_path_name(). */
typedef struct {
  const LsTimeline *timeline; /* borrowed, as the cluster is */
  const LsCluster *cluster;   /* NULL: links are not known   */
  GArray *pieces;             /* LsPathPiece, in order of time */
} LsCriticalPath;

/* cluster and nccl NULL: without latencies and links. LS_ERROR_LIMIT: the timeline has spans of
 * some ranks only. Free with ls_critical_path_free(). */
LsCriticalPath *ls_critical_path_new (const LsTimeline *t, const LsCluster *cluster, const LsNccl *nccl,
                                      GError **error);
void ls_critical_path_free (LsCriticalPath *path); /* NULL allowed */
G_DEFINE_AUTOPTR_CLEANUP_FUNC (LsCriticalPath, ls_critical_path_free)

/* What to call the op of a piece; borrowed or static. */
const char *ls_path_name (const LsCriticalPath *path, const LsPathPiece *piece);

/* --- which link limits a call, and how it is run ------------------------------------------------- */

/* Of all links that a call loads, the one that would need longest for its bytes if it carried
 * nothing else: sum over phases of demand * flows that cross it / capacity. Where NCCL itself
 * is slower than all links, that is less than the time in which the data move. */

typedef struct {
  LsTime latency;   /* of all phases                          */
  uint32_t link;    /* resource; UINT32_MAX: it loads none    */
  uint32_t n_links; /* as long as this one, which is the first */
  double busy_s;
  const char *algorithm, *protocol; /* of collectives: "ring", "Simple"; static; NULL: not known */
} LsCallLimit;

typedef struct LsCallLimits LsCallLimits;

/* Borrows all. With cluster or nccl NULL nothing is known of any call. */
LsCallLimits *ls_call_limits_new (const LsPlan *plan, const LsCluster *cluster, const LsNccl *nccl);
void ls_call_limits_free (LsCallLimits *l); /* NULL allowed */
G_DEFINE_AUTOPTR_CLEANUP_FUNC (LsCallLimits, ls_call_limits_free)

/* A collective of the rank; a transfer from one rank to another; a copy of the rank. */
LsCallLimit ls_limit_of_call (LsCallLimits *l, uint32_t rank, const LsOp *op);
LsCallLimit ls_limit_of_transfer (LsCallLimits *l, uint32_t from, uint32_t to, const LsTransfer *t);

/* --- a critical path added up: by kind, op, link and rank ---------------------------------------- */

/* Pieces of one kind of ops with one name. */
typedef struct {
  const char *name; /* of the plan, or static */
  LsPathKind kind;
  LsTime time;
  guint n;
} LsPathOp;

/* Data that moved, and what they would have needed with the link for themselves. */
typedef struct {
  char *name;
  uint32_t n_alike; /* the most links that limit one of these calls alike, this one included */
  LsTime time;
  double busy_s;
  guint n;
} LsPathLink;

typedef struct {
  uint32_t rank, stage;
  uint32_t class, n_class; /* who stands for it, and for how many */
  LsTime time;
} LsPathRank;

/* From what one rank does to what another does next, as it ended. */
typedef struct {
  uint32_t from, to;
  LsTime at;        /* after the start of the window */
  const char *name; /* of the op on the second rank  */
} LsPathHop;

typedef struct {
  LsTime step; /* the sum of all pieces, and of each of these lists but the links */
  LsTime by_kind[LS_N_PATH_KINDS];
  GArray *ops;   /* LsPathOp, longest first     */
  GArray *links; /* LsPathLink, longest first   */
  GArray *ranks; /* LsPathRank, longest first   */
  GArray *hops;  /* LsPathHop, in order of time */
} LsPathSummary;

/* Borrows names from the path's plan. Free with ls_path_summary_free(). */
LsPathSummary *ls_path_summary_new (const LsCriticalPath *path);
void ls_path_summary_free (LsPathSummary *s); /* NULL allowed */
G_DEFINE_AUTOPTR_CLEANUP_FUNC (LsPathSummary, ls_path_summary_free)

#endif
