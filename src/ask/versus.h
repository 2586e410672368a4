/* ask/versus.h — a captured step next to the plan of the same job.
 *
 * Problem. A profile of a program (strategies/software) says by hand which kernels it launches, what it
 * gathers when, in which format it keeps gradients. A captured step shows what the program does.
 *
 * Method. Both are plans (plan/plan.h) and are run on one cluster, so both say of each op its phase, the part
 * of the model that it is of (LsSite), its shape, and the time that it takes there. All ops of one rank are
 * put into rows, which are told apart by
 *
 *     kernels       phase, site, how they touch memory (LsAccess), number format
 *     products      phase, m x n x k with m and n in any order, as libraries swap them, number format
 *     attention     phase, how many heads, queries, keys, width
 *     collectives   phase, kind, bytes, ranks
 *     copies        phase, direction
 *     host          what calls cost it, each so often times its cost
 *     memory        what holds it when most is held
 *
 * and each row has both sides, one of which may have nothing. The phase of what is of none (a gather) is
 * that of the last kernel before it. What a message waits for is the last kernel of the compute stream that
 * must be over, by its dependencies and those of what they wait for. Messages are assumed to be over in the
 * order in which they were sent.
 *
 * All is counted: the rows of a side add up to its program, op by op (tests/unit/ask/test_versus.c).
 *
 * A row differs where numbers of launches do, or bytes or FLOPs by more than 2 %, of products and attention
 * times. First stand those whose predicted times differ most; of memory those whose bytes do. Which knobs of
 * the job may say otherwise is looked up in a table of keys by section, phase and site (versus.c), and their
 * values where the job says whence they are (job/assumptions.h).
 *
 * Worked example. tests/golden/captured.txt, captured-compare.
 *
 * Deviations. Times are those that kernels take alone, and messages once all of their ranks are there. */
#ifndef LS_ASK_VERSUS_H
#define LS_ASK_VERSUS_H

#include "job/job.h"

typedef enum {
  LS_VERSUS_KERNELS,
  LS_VERSUS_PRODUCTS,
  LS_VERSUS_ATTENTION,
  LS_VERSUS_COLLECTIVES,
  LS_VERSUS_COPIES,
  LS_VERSUS_HOST,
  LS_VERSUS_MEMORY,
  LS_N_VERSUS
} LsVersusSection;

extern const char *const ls_versus_sections[LS_N_VERSUS]; /* "kernels" */

typedef enum { LS_VERSUS_CAPTURED, LS_VERSUS_PLANNED, LS_N_VERSUS_SIDES } LsVersusWhose;

typedef struct {
  uint64_t n; /* launches, calls */
  double flops, bytes;
  LsTime time;
  /* Of sums of messages: bytes times the share of the step's kernels after which they may begin, and of those
   * that do not wait for them. */
  double after, before;
  char *of; /* "mul 64, add 32": what launches most of it; of messages after what they may begin */
} LsVersusSide;

typedef struct {
  char *what;         /* "castup bf16", "14336 x 4096 x 8192 bf16", "all-gather of 436.2 MB over 8" */
  GPtrArray *because; /* LsAssumption, borrowed of the planned job: what may say otherwise, if it differs */
  LsVersusSide sides[LS_N_VERSUS_SIDES];
  uint8_t section, phase, site; /* LsVersusSection; LsTag: F, B, RECOMPUTE or OPTIMIZER; LsSite */
  uint8_t part;                 /* of the host: LsHostCost; of memory: LsMemCategory */
  bool differs;
} LsVersusRow;

/* Of a section, or a site in a phase, or a kind of message. */
typedef struct {
  uint8_t section, phase, site, message; /* message: LsCollKind; LS_N_COLL_KINDS: to a neighbour */
  LsVersusSide sides[LS_N_VERSUS_SIDES]; /* without `of` */
} LsVersusSum;

typedef struct {
  const LsJobResult *jobs[LS_N_VERSUS_SIDES]; /* borrowed */
  uint32_t rank;
  uint64_t n_ranks;    /* that do the same, by the capture    */
  GArray *rows;        /* LsVersusRow: those that differ first, the largest difference first */
  GArray *sections;    /* LsVersusSum, by section             */
  GArray *sites;       /* LsVersusSum of kernels, products and attention, by phase and site */
  GArray *messages;    /* LsVersusSum, by kind                */
  guint n_calls_alike; /* messages that both send in the same order, perhaps with others between */
} LsVersus;

/* The captured step in a folder, on the machine of a job and with its ways to simulate. Errors: as of running
 * a trace. */
LsJobResult *ls_versus_replay (const LsJobSpec *like, const char *folder, GError **error);

/* Both were run, on the same cluster, and outlive the result. LS_ERROR_CONFLICT: they have other numbers of
 * ranks, or no such rank. */
LsVersus *ls_versus_new (const LsJobResult *captured, const LsJobResult *planned, uint32_t rank,
                         GError **error);
void ls_versus_free (LsVersus *v); /* NULL allowed */
G_DEFINE_AUTOPTR_CLEANUP_FUNC (LsVersus, ls_versus_free)

/* Of an LsTag: "forward"; "" of that of memory, which has none. */
const char *ls_versus_phase (uint8_t phase);

#endif
