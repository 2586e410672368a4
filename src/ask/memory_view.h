/* ask/memory_view.h — what the ranks of a job hold, as a table and as a picture. */
#ifndef LS_ASK_MEMORY_VIEW_H
#define LS_ASK_MEMORY_VIEW_H

#include "ask/memory_advice.h"
#include "exec/memory/history.h"
#include "job/job.h"

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
  const LsHeadroom *headroom;   /* borrowed */
  const LsMemoryAdvice *advice; /* borrowed; NULL: not asked for */
} LsMemoryTable;

void ls_memory_table_clear (LsMemoryTable *t);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (LsMemoryTable, ls_memory_table_clear)

/* Rows by stage, then rank. The result must have been run with spans; it, title,
 * subtitle and the advice (may be NULL) must outlive the table. */
void ls_memory_table_init (LsMemoryTable *t, const LsJobResult *r, const char *title, const char *subtitle,
                           const LsMemoryAdvice *advice);

/* The curve of a rank, or of the one that stands for it. LS_ERROR_USAGE: there is no such rank,
 * or too many spans to keep them for each. */
GArray *ls_memory_curve_of (const LsJobResult *r, const LsMemoryOptions *options, uint32_t rank,
                            GError **error);

/* What PyTorch's allocator does on a rank, of at most max_changes (exec/memory/history.h). LS_ERROR_USAGE as
 * above; LS_ERROR_UNSUPPORTED: the job is of TPUs, or a trace that says nothing of memory. */
LsMemoryHistory *ls_memory_history_of (const LsJobResult *r, const LsMemoryOptions *options, uint32_t rank,
                                       uint64_t max_changes, GError **error);

#endif
