/* job/job_interval.h — the interval around the step of a job: analysis/interval.h where its cluster was
 * fitted to enough runs, else analysis/interval.h with the residuals that its spec names. */
#ifndef LS_JOB_JOB_INTERVAL_H
#define LS_JOB_JOB_INTERVAL_H

#include "analysis/interval.h"
#include "job/hardware.h"
#include "job/job.h"

/* *ret_residuals: those of the spec; NULL if it wants none. result: NULL where it is not simulated yet. Those
 * of a trace follow from its program. LS_ERROR_INPUT: a file that is wrong, or named and missing. */
gboolean ls_job_residuals_load (const LsJobSpec *spec, const LsJobResult *result, LsResiduals **ret_residuals,
                                GError **error);

/* What the job has that runs may not have, but for its architecture. */
void ls_job_traits (const LsJobResult *result, const LsClusterSpec *cluster, LsTraits *ret_traits);

/* residuals: what the above gave, if not NULL. without: a source that does not count (LsIntervalJob), or
 * NULL. Clear with ls_interval_clear(). */
void ls_job_interval (const LsJobSpec *spec, const LsJobResult *result, const LsResiduals *residuals,
                      const char *without, LsInterval *ret);

/* Appends to notes what an interval would say of the machine, for figures of up to n_gpus that have none:
 * what of it was not measured, and what ls_note_network() tells. */
void ls_note_machine (const LsJobSpec *spec, const LsHardware *hardware, uint32_t n_gpus, GPtrArray *notes);
/* Appends a warning for each thing that the program (NULL: none) does in such a job and that is not
 * simulated. s: resolved; memory_bytes: what is simulated of the fullest rank. */
void ls_note_missing (const LsSoftwareSpec *software, const LsModel *m, const LsStrategy *s,
                      uint64_t memory_bytes, GPtrArray *notes);
/* Appends to notes that no kernel of the accelerator was fitted, if so: its times are a bound. */
void ls_note_roofline (const LsHardware *hardware, GPtrArray *notes);

#endif
