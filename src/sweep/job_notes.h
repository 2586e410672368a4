/* sweep/job_notes.h — what keeps a job from what its schedule promises. */
#ifndef LS_SWEEP_JOB_NOTES_H
#define LS_SWEEP_JOB_NOTES_H

#include "sweep/job.h"

/* Appends to the notes of a result with a report: why a schedule that splits backwards gives less than
 * `lockstep schedule` says of it, where that is a hundredth of the step or more. */
void ls_job_note_schedule (LsJobResult *r);

#endif
