/* api/memory_snapshot.h — `lockstep memory --snapshot` (private). */
#ifndef LS_API_MEMORY_SNAPSHOT_H
#define LS_API_MEMORY_SNAPSHOT_H

#include "api/job_answer.h"

#define LS_SNAPSHOT_MAX_RANKS 16

/* Writes what PyTorch's allocator does on ranks (uint32_t; empty: the fullest) into a file, and notes what is
 * not in it. Errors as of ls_memory_history_of() and ls_snapshot_write(). */
gboolean ls_job_answer_write_snapshot (const LsJobAnswer *j, const GArray *ranks, const char *path,
                                       LsAnswer *a, GError **error);

#endif
