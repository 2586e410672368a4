/* job/job_idle.h — knobs that were set and make no difference to the job, in words. */
#ifndef LS_JOB_JOB_IDLE_H
#define LS_JOB_JOB_IDLE_H

#include "job/job.h"

/* Appends a note (char *) for each knob that a flag or a file has set, that is not what it is by default, and
 * makes no difference to the job that was made of it: "--dp-overlap 0 has no effect here: FSDP always reduces
 * beside the backward". Where no rule says so (strategy/strategy_idle.h), the job is lowered without the
 * knob, and the plans are compared. */
void ls_idle_notes (const LsJobSpec *spec, const LsJobResult *prepared, const LsHardware *hardware,
                    GPtrArray *notes);

#endif
