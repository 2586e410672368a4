/* ask/captured.h — a training program run without its GPUs, and what its memory was.
 *
 * Problem. What a program allocates is decided by the program: its layers, its sharding, PyTorch's allocator.
 * A model of it is as good as what is known of the program.
 *
 * Method. The program runs, on one process in the place of all of its ranks, with libraries that answer as
 * CUDA's would on the named GPU (capture/standin.h). PyTorch's allocator then does what it does on that GPU,
 * and says what it held when it held most. Where its ranks differ, as stages of a pipeline do, there is a
 * process for each role, and what they send to each other travels.
 *
 * Beside it on a GPU lie, from tables: the context of the process, and what NCCL takes for its communicators,
 * which is charged when a communicator is first used. What is reserved may depend on how fast the GPU is: it
 * can be run again for one of half and one of double the speed.
 *
 * Worked example. A program on 8 ranks that shards parameters of 4 GiB and keeps two moments of each holds
 * 0.5 + 0.5 + 1 GiB after a step: tests/golden/capture.txt, the second case.
 *
 * Deviations. Kernels do not run: what depends on values is not what it would be. Ranks that are not captured
 * are as those that stand for them. */
#ifndef LS_ASK_CAPTURED_H
#define LS_ASK_CAPTURED_H

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/parallel.h"
#include "cluster/gpu.h"

/* ONE stands for all. AUTO: as many as have roles of their own: the first, and where ranks send to single
 * ones, as stages of a pipeline do, one of each place. */
typedef enum { LS_CAPTURE_AUTO, LS_CAPTURE_ONE, LS_CAPTURE_ALL, LS_CAPTURE_LIST } LsCaptureWhich;

/* What the clocks of a program followed, and how far. */
typedef struct {
  double step_time_s; /* that was predicted for the step that was captured */
  char *rests_on;     /* NULL: they were the machine's */
  uint32_t steps;     /* that the program did on it */
  double waited_s;    /* that it slept, or waited until some time, in vain */
  uint64_t n_known, n_beyond,
      n_crude; /* launches whose time is the table's; of these, beyond those of the step: the mean; others */
} LsCapturedClock;

typedef struct {
  const LsGpu *gpu; /* borrowed */
  uint32_t gpus_per_node;
  uint32_t world;       /* 0: as the command says */
  LsCaptureWhich which; /* of its ranks are run */
  const uint32_t
      *ranks; /* n_ranks: LS_CAPTURE_LIST's, in order; of LS_CAPTURE_ONE the one that is run for all */
  guint n_ranks;
  uint32_t members;        /* of each role, of LS_CAPTURE_AUTO, that are run and compared; 0: not said */
  uint32_t steps;          /* of its optimizer, after which it is ended */
  const char *expert_load; /* "even", "zipf:S": what a router chooses; or NULL: each as likely */
  bool with_range;         /* run it for GPUs of half and of double the speed too */
  bool with_snapshot, with_trace;
  const char *clock;  /* cluster whose predicted times the program's clocks follow; or NULL */
  const char *tables; /* folder of these, for ls_capture_run() itself; NULL: it is no such run */
  const LsCapturedClock *following;
  const char *following_roles;
  const char *keep;           /* folder in which a capture that is stopped is kept, and goes on; or NULL */
  const char *const *command; /* NULL-terminated */
  const char *models;         /* file of names of published models, for what has no configuration; or NULL */
  const gint *stop;           /* not 0: end it; or NULL. Read atomically */
  const LsProgress *progress; /* of ranks; or NULL */
} LsCaptureAsk;

/* Bytes that something held when most was allocated. */
typedef struct {
  char *kind;     /* "parameters", "activations" */
  char *phase;    /* in which they were allocated: "forward" */
  char *operator; /* of PyTorch: "mm"; "": not known */
  char *line;     /* of the program: "model.py:12 Block.forward"; "": none of Python */
  uint64_t bytes, blocks;
} LsCapturedRow;

/* Of a rank. */
typedef struct {
  char *gpu, *torch, *cuda, *why, *error; /* why it ended; error: what it failed with, or NULL */
  char *trace;      /* the same where ranks launched, sent and allocated the same in the same order */
  GHashTable *done; /* what it did, by its hash: how often */
  uint32_t world, rank, steps;
  uint32_t stands_for; /* ranks, itself among them */
  uint32_t like;       /* the first that was captured of its role, or itself */
  uint64_t allocated_bytes, reserved_bytes, requested_bytes; /* peaks, of PyTorch's allocator */
  uint64_t context_bytes, nccl_bytes;                        /* beside it */
  uint64_t total_bytes;                                      /* of the GPU, as a program sees it */
  uint64_t n_retries, n_out_of_memory;
  uint32_t n_kept; /* ranks that a capture which was stopped had captured */
  uint64_t n_kernels, n_products, n_collectives, n_communicators, n_graphs, n_plans; /* of cuDNN */
  bool depends_on_speed;          /* a GPU of half or double the speed would have answered otherwise */
  uint64_t low_bytes, high_bytes; /* reserved, of GPUs of half to double the speed; 0: not asked */
  GArray *rows;                   /* LsCapturedRow, the largest first */
  GPtrArray *ranks;               /* LsCaptured, all that were captured, in order; freed with each */
  char *over_time;                /* JSON: {kinds, changes, columns: [[bytes of each kind]]}; NULL:
                                     of a rank that does not decide */
  GBytes *recorded;               /* its last step, as data/traces/traces.h reads it; NULL: not asked */
  uint64_t n_operators, n_launches,
      n_apart; /* of that step; launches of operators that PyTorch did not record */
  char *keys;  /* of that step: of each thing that takes time on a stream its key, a line each */
  LsCapturedClock clock;
  char *roles;      /* JSON: as lockstep_ranks.py has it; NULL: one rank stands for all */
  GBytes *snapshot; /* a pickle, as torch.cuda.memory._dump_snapshot() writes; NULL: not
                       asked, or of a rank that does not decide */
  GPtrArray *notes; /* lines: what was done otherwise than the program says */
} LsCaptured;

/* Of the rank that decides: one that failed, else the fullest. LS_ERROR_UNSUPPORTED: there are no stand-ins,
 * or none for this GPU; LS_ERROR_USAGE: no such command; LS_ERROR_FAILED: it ended before a GPU was used, or
 * in what is not answered, with the name; LS_ERROR_STOPPED. */
LsCaptured *ls_capture_run (const LsCaptureAsk *ask, GError **error);
void ls_captured_free (LsCaptured *captured); /* and all ranks; NULL allowed */
/* What was asked for with_trace, as data/traces/traces.h has it. LS_ERROR_FAILED: not of all its
 * ranks a whole step was seen; LS_ERROR_IO. */
gboolean ls_captured_write_trace (const LsCaptured *c, const char *folder, GError **error);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (LsCaptured, ls_captured_free)
/* Replays the captured step on the cluster; of each rank that was captured a table of predicted times, as
 * capture/standin_clock.c reads it, goes into folder/clock-RANK. Errors: as of running the trace;
 * LS_ERROR_IO. */
gboolean ls_captured_write_clock (const LsCaptured *c, const char *cluster, const char *folder,
                                  LsCapturedClock *ret, GError **error);
/* What the log of a rank begins with; newly allocated. */
char *ls_captured_clock_head (const LsCapturedClock *clock, const char *cluster, uint32_t rank);

/* Whether it ran to its end or its steps without an error, and what is needed is on the GPU. */
bool ls_captured_fits (const LsCaptured *c);
uint64_t ls_captured_needed (const LsCaptured *c); /* bytes: reserved, context and NCCL */
/* Of what a and b did, how much the other did not, counting what one did more often; ret_n: what b did. */
uint64_t ls_captured_apart (const LsCaptured *a, const LsCaptured *b, uint64_t *ret_n);
/* What would make less of it, the largest first: "\nhint: ..." each, newly allocated. */
char *ls_captured_advice (const LsCaptured *c);

/* --- a program in several layouts, each captured and replayed on a cluster ----------------------------- */

/* Problem. Which of some layouts of one's own program is the fastest of those that fit.
 *
 * Method. In the words of its command each {KEY} is a value of that axis. Every combination is captured
 * (above), and its trace replayed (job/job.c): memory is the program's, time the simulation's.
 *
 * Worked example. {tp} of 1 and 2, {mb} of 4: two captures. tests/golden/capture.txt, capture-sweep.
 *
 * Deviations. Those above and of data/traces/traces.h. */

#define LS_MOST_LAYOUTS 64

typedef struct {
  char *key;     /* "tp" */
  char **values; /* NULL-terminated */
} LsCaptureAxis;

typedef struct {
  char **values;                      /* of each axis; NULL-terminated, each borrowed */
  bool fits, is_too_large;            /* the latter: it ended out of memory */
  uint64_t needed_bytes, total_bytes; /* of the rank that decides */
  double step_time_s;                 /* NaN: it failed */
  char *error;                        /* why; NULL: it did not */
} LsCaptureLayout;

typedef struct {
  char *cluster;
  GArray *axes;    /* LsCaptureAxis */
  GArray *layouts; /* LsCaptureLayout: those that fit first, the fastest of them first */
} LsCaptureLayouts;

/* ask: of each, with a command that has {KEY}s. Takes axes. LS_ERROR_USAGE: an axis that no word has, or
 * too many layouts; LS_ERROR_STOPPED; of one that fails the row says why. */
LsCaptureLayouts *ls_capture_layouts (const LsCaptureAsk *ask, const char *cluster, GArray *axes,
                                      GError **error);
GArray *ls_capture_axes_new (void);
void ls_capture_layouts_free (LsCaptureLayouts *layouts); /* NULL allowed */

#endif
