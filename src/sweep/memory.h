/* sweep/memory.h — what the ranks of a job hold, as a table and as a picture. */
#ifndef LS_SWEEP_MEMORY_H
#define LS_SWEEP_MEMORY_H

#include "io/plot_memory.h"
#include "io/write_memory.h"
#include "sweep/job.h"

/* Rows by stage, then rank. The result must have been run with spans; it, title,
 * subtitle and the advice (may be NULL) must outlive the table. */
void ls_memory_table_init (LsMemoryTable *t, const LsJobResult *r, const char *title, const char *subtitle,
                           const LsMemoryAdvice *advice);

/* The curve of a rank, or of the one that stands for it. LS_ERROR_USAGE: there is no such rank,
 * or too many spans to keep them for each. */
GArray *ls_memory_curve_of (const LsJobResult *r, const LsMemoryOptions *options, uint32_t rank, GError **error);

#endif
