/* job/softwares.h — the programs that run jobs, and what a job runs that names none.
 *
 * Problem. Kernels, host costs and habits of the training loop are the program's, not the user's. Which
 * program runs a job cannot be read off its strategy: what reduces gradients is a way to be data parallel,
 * that several programs have.
 *
 * Rule. A job that names no program runs the textbook (strategies/software/textbook.json), whatever its way
 * to be data parallel, its schedule and its accelerator. The defaults of the options are the textbook's, so
 * that its file changes none of them and `--software textbook` says nothing new. A program that is named by
 * --software, --for, --from or a strategy file gives all its defaults (job/job_spec.c), and those that it has
 * on the accelerator; what the job says goes before these.
 *
 * Worked example. gpt-7.5b on 64 A100s with ddp, ZeRO-1, 2 and 3: the same kernels, so the same activations,
 * and gradients of 16 bits, so that bytes are as 2 : 2 : 2 : 3. */
#ifndef LS_JOB_SOFTWARES_H
#define LS_JOB_SOFTWARES_H

#include "data/jobs/read_software.h"
#include "job/hardware.h"

#define LS_SOFTWARE_TEXTBOOK "textbook" /* the name of its file */

/* Programs that are at hand and have dp_kinds, or a writer of jobs; no releases of them. LsSoftwareSpec *, in
 * the order of their names; made once, then static. Those whose file is wrong are left out: `lockstep check`
 * tells. Reads all of them. */
const GPtrArray *ls_softwares (void);

/* Of a program as such that has that way to be data parallel on that accelerator; one that names
 * architectures goes before one that names none. dp_kind: LsDpKind, but AUTO; architecture: "hopper", "tpu".
 * NULL: no program does that. Static. */
const LsSoftwareSpec *ls_softwares_find (int dp_kind, const char *architecture);

/* What a job runs that names no program; NULL: its file is not there. Static. */
const LsSoftwareSpec *ls_softwares_textbook (void);

/* What a strategy leaves to the program that runs it. named: that it names, whose defaults it has already;
 * NULL: what s->software names, else the textbook, whose name s has then. said: keys that were said (char *),
 * which stay; may be NULL. What is only the program's habit gives way: a list of kernels, whose bytes are
 * those of 16 bits, in a job in fp32 to those that are built in. s need not be resolved. */
void ls_softwares_settle (const LsSoftwareSpec *named, const LsHardware *hardware, GHashTable *said,
                          LsStrategy *s);

/* What was said of own (keys, char *), over the defaults of a program; the size of the job stays. Not a list
 * of kernels, which is of a program. The caller clears it. diags: as of ls_field_set_text(). */
void ls_softwares_rebase (const LsSoftwareSpec *software, const LsStrategy *own, GHashTable *said,
                          LsStrategy *ret, LsDiagList *diags);

/* Whose measured runs tell how far off the job of a resolved strategy may be (LsResidualGroup). named: what
 * its program says of that; NULL: nothing. Interned. */
const char *ls_softwares_runs_like (const char *named, const LsStrategy *s, const char *architecture);

#endif
