/* job/job_notes.h — what a user should know of a result: what keeps a job from what its schedule promises,
 * and which of its figures are bounds. */
#ifndef LS_JOB_JOB_NOTES_H
#define LS_JOB_JOB_NOTES_H

#include "job/job.h"

/* Appends to the notes of a result with a report: why a schedule that splits backwards gives less than
 * `lockstep schedule` says of it, where that is a hundredth of the step or more. */
void ls_job_note_schedule (LsJobResult *r);

/* Appends to notes that what n_gpus GPUs of a cluster send over TCP is a bound. nccl: the file that the user
 * gave of their own measurements, which says itself what it is; NULL: none. */
void ls_note_tcp (const LsClusterSpec *cluster, uint32_t n_gpus, const char *nccl, GPtrArray *notes);

/* Appends to the notes of a result, if it has a model, that its kernels are Megatron-Core's, where gradients
 * are reduced by other software and no list of kernels is given, and that attention is not as its program
 * runs it, where that was not measured. named: the program that the job names; NULL: none. */
void ls_job_note_kernels (const LsSoftwareSpec *named, LsJobResult *result);

#endif
