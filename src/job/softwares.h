/* job/softwares.h — which program a job is taken to run, where it names none.
 *
 * Problem. Kernels, host costs and habits of the training loop are the program's, not the user's. A job that
 * names no program is run by some program all the same.
 *
 * Rule. Files of strategies/software with dp_kinds are programs as such, not releases. A job is taken to run
 * the one whose dp_kinds has the way to be data parallel that the job asks for, and whose architectures has
 * its accelerator's; one that names architectures goes before one that names none. What a user chooses
 * (degrees, number formats, what overlaps) stays as Lockstep has it by itself: only what is of a program
 * (LsField of_program, set_only) is taken from its defaults, and what the job says itself goes before that. A
 * program that is named gives all its defaults (job/job_spec.c).
 *
 * Worked example. `--dp-kind fsdp2` on H100: torchtitan, so its kernels; on TPUs XLA, whatever the job asks
 * for. */
#ifndef LS_JOB_SOFTWARES_H
#define LS_JOB_SOFTWARES_H

#include "data/jobs/read_software.h"
#include "job/hardware.h"

/* Programs that are at hand and have dp_kinds, or a writer of jobs; no releases of them. LsSoftwareSpec *, in
 * the order of their names; made once, then static. Those whose file is wrong are left out: `lockstep check`
 * tells. Reads all of them. */
const GPtrArray *ls_softwares (void);

/* dp_kind: LsDpKind, but AUTO; architecture: "hopper", "tpu". NULL: no program does that. Static. */
const LsSoftwareSpec *ls_softwares_find (int dp_kind, const char *architecture);

/* What a strategy leaves to the program that runs it. named: that it names, whose defaults it has already;
 * NULL: it is taken to run one, which is noted in s and gives what is of a program. said: keys that were said
 * (char *), which stay; may be NULL. What is only the program's habit gives way: a list of kernels, whose
 * bytes are those of 16 bits, in a job in fp32 to those that are built in. s need not be resolved. */
void ls_softwares_settle (const LsSoftwareSpec *named, const LsHardware *hardware, GHashTable *said,
                          LsStrategy *s);

/* The one that a strategy was taken to run; NULL: it named one, or there is none. Static. */
const LsSoftwareSpec *ls_softwares_assumed (const LsStrategy *s);

/* A strategy as it is by itself with the program that a job with the dp_kind of s, which is resolved, is
 * taken to run; with none, where s names one. The caller clears it. */
void ls_softwares_blank (const LsStrategy *s, LsStrategy *ret_blank);

/* Whose measured runs tell how far off the job of a resolved strategy may be (LsResidualGroup). named: what
 * its program says of that; NULL: nothing. Interned. */
const char *ls_softwares_runs_like (const char *named, const LsStrategy *s, const char *architecture);

#endif
