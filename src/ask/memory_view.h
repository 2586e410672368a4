/* ask/memory_view.h — the memory of a job: what its ranks hold, and which changes make it fit. */
#ifndef LS_ASK_MEMORY_VIEW_H
#define LS_ASK_MEMORY_VIEW_H

#include "analysis/memory_formulas.h"
#include "analysis/report.h"
#include "ask/whatif.h"
#include "exec/memory/history.h"
#include "exec/memory/memory.h"
#include "job/job.h"

/* --- what would make a job fit that does not ----------------------------------------------------- */

/* Problem. Which change costs least? Rules of thumb leave out what it does to overlap and to the pipeline, so
 * changes are simulated, and must fit on the same clock and with the same allocator as the job.
 *
 * Method. The changes are those of ask/whatif.h. By the order of its allocations alone
 * (exec/memory/memory.h: on the host clock a lower bound) each is known to be illegal, to save nothing, to
 * leave too much, or perhaps to make the job fit. Those that may are simulated, as by lockstep whatif, those
 * first whose step takes least by its lower bound (exec/shortcuts/plan_bound.h). If none is enough, the WIDTH
 * that leave the least too much are joined with what is proposed for the jobs that they make, and so on.
 *
 * What the job has comes first. What needs other software, accelerators or numerics, or the memory of the
 * host, is looked at after that: if the first is enough, only single changes. The ranking is by what is left
 * too much, then by tokens per second.
 *
 * Worked example. A job is 30 GiB short; --sp saves 10, --zero 1 25, --recompute full 40 and 30 % of its
 * time. One change is enough, so that is the advice. Were it 50 GiB short: --recompute full --zero 1.
 *
 * Deviations. A combination is missed if none of those that are joined leads to it, or if a part of it saves
 * nothing without the rest. The memory of the host is checked only where the cluster's file has it. */

#define LS_ADVICE_MAX_CHANGES 4 /* that are tried together */
#define LS_ADVICE_N_NEAREST   5 /* that are told where none is enough */

/* r: the job as it ran, which did not fit. What would make it fit: rows with what is too much for the least
 * memory first, then the fastest. LS_ERROR_UNSUPPORTED for a trace, and for a job in the order of a file:
 * both have fixed what could be changed. */
LsWhatIf *ls_memory_advise (const LsJobSpec *spec, LsJobResult *r, GError **error);

/* --- what the ranks of a job hold, as a table and as a picture ----------------------------------- */

/* A class of ranks. */
typedef struct {
  const LsClassMemory *m;             /* borrowed */
  uint32_t stage;                     /* of the pipeline */
  uint32_t peak_mb;                   /* micro-batch of the op at the peak */
  const char *peak_segment, *peak_op; /* borrowed; NULL: before the first of the step */
  LsMemoryFormula formula;
} LsMemoryRow;

typedef struct {
  const char *title, *subtitle; /* borrowed */
  const LsMemory *memory;       /* borrowed */
  GArray *rows;                 /* LsMemoryRow */
  double step_time_s;
  uint64_t capacity_bytes, context_bytes;
  bool fits;
  const LsHeadroom *headroom; /* borrowed */
  const LsWhatIf *advice;     /* borrowed; NULL: not asked for */
  const GArray *assumptions;  /* LsAssumption; borrowed, may be NULL */
  const GArray *knobs;        /* likewise */
} LsMemoryTable;

void ls_memory_table_clear (LsMemoryTable *t);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (LsMemoryTable, ls_memory_table_clear)

/* Rows by stage, then rank. The result must have been run with spans; it, title,
 * subtitle and the advice (may be NULL) must outlive the table. */
void ls_memory_table_init (LsMemoryTable *t, const LsJobResult *r, const char *title, const char *subtitle,
                           const LsWhatIf *advice);

/* The curve of a rank, or of the one that stands for it. LS_ERROR_USAGE: there is no such rank,
 * or too many spans to keep them for each. */
GArray *ls_memory_curve_of (const LsJobResult *r, const LsMemoryOptions *options, uint32_t rank,
                            GError **error);

/* What PyTorch's allocator does on a rank, of at most max_changes (exec/memory/history.h). LS_ERROR_USAGE as
 * above; LS_ERROR_UNSUPPORTED: the job is of TPUs, or a trace that says nothing of memory. */
LsMemoryHistory *ls_memory_history_of (const LsJobResult *r, const LsMemoryOptions *options, uint32_t rank,
                                       uint64_t max_changes, GError **error);

/* --- which layers a rank holds, and their parameters ------------------------------------------------ */

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
