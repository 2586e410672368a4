/* job/assumptions.h — what the numbers of a job rest on: what was given, and what holds where nothing was.
 *
 * Problem. A step follows from the length of sequences, the batch, number formats, attention, the load of
 * experts and the program as much as from degrees. Who types none of these gets a number all the same, and
 * has to see of what.
 *
 * Rule. Each of these is a row, always, in every form of a result: its value, whence it is, and what to
 * type for another one. All other knobs that have an effect in the job are rows of a list of their own.
 * Whence: the option was given, a launch file says so, the program that was named has it by default, the
 * model's file says it, or it is the textbook's (job/softwares.h).
 *
 * Worked example. `run --model gpt-7.5b --cluster dgx-a100-80g --gpus 64`: gpus 64, given; seq 2048, the
 * model's; tokens 131072, from a batch of a micro-batch for each of 64 copies; micro_batch 1, zero 0 and
 * recompute none by default, which the sentence says only where nobody else does; parameters bf16, gradients
 * bf16, masters fp32, moments fp32, the textbook's; attention unfused, the model's; software textbook, as
 * none was named. */
#ifndef LS_JOB_ASSUMPTIONS_H
#define LS_JOB_ASSUMPTIONS_H

#include <glib.h>

#include "job/job.h"

typedef struct {
  char *value;       /* as one would type it: "2048", "bf16"                             */
  char *why;         /* whence: "given", "of the model's file"                           */
  char *instead;     /* what to type for another one: "--seq N"; NULL: nothing does      */
  char *words;       /* in a sentence: "sequences of 2,048"                              */
  const char *key;   /* static: "seq", "tokens"                                          */
  bool is_given;     /* by an option, or a file of a strategy                            */
  bool says_instead; /* in the sentence too, where it is not given                     */
} LsAssumption;

GArray *ls_assumptions_empty (void); /* of LsAssumption, which it owns */

/* Of a job whose strategy is resolved: LsAssumption, a new array that owns its rows. chosen: whence a knob is
 * that somebody else than the spec has set, static, or NULL; may be NULL. */
GArray *ls_assumptions_new (const LsJobSpec *spec, const LsModel *model, const LsStrategy *strategy,
                            const char *(*chosen) (const char *knob, gconstpointer data), gconstpointer data);

/* The same of all knobs that have an effect in the job and are none of these, of what calls cost the host,
 * and of how it is simulated. Of a trace there are no knobs, but the rest. r: with its plan. */
GArray *ls_assumptions_of_knobs (const LsJobSpec *spec, const LsJobResult *r, const LsHardware *hardware,
                                 const char *(*chosen) (const char *knob, gconstpointer data),
                                 gconstpointer data);

/* Adds whose times kernels and messages have, and how far clocks differ. plan: of a replayed trace, in which
 * they may be recorded, else NULL. *all NULL: a new array. */
void ls_assumptions_add_times (GArray **all, const LsJobSpec *spec, const LsHardware *hardware,
                               const LsPlan *plan, uint32_t n_ranks);

/* What to type for another value of a key of a cluster's file, "gpu.reserved" and "SIZE"; newly allocated.
 * cluster: as it was asked for. */
char *ls_cluster_change (const char *cluster, const LsClusterSpec *spec, const char *path, const char *kind);
/* Whether that is done. */
bool ls_cluster_is_changed (const char *cluster, const char *path);

/* Adds what the file of a cluster has not, but another could, and which ways of a drawn fabric. cluster: as
 * it was asked for. *all NULL: a new array. */
void ls_assumptions_add_unsaid (GArray **all, const char *cluster, const LsClusterSpec *spec,
                                bool has_fabric);

/* Adds these, and which chips or trays of a built cluster a job has, where nobody says. command: what has an
 * option for other chips, "lockstep run ", or "": it is asked itself, and says trays elsewhere; NULL: none
 * has, the cluster's name takes them. *all NULL: a new array. */
void ls_assumptions_add_place (GArray **all, const char *cluster, const LsClusterSpec *spec, bool is_given,
                               const char *command);

/* Takes rows with these keys away. all: NULL allowed. */
void ls_assumptions_drop (GArray *all, const char *const *keys);
/* Those of a job of which neither memory nor an interval is shown, nor as of which program these are. */
void ls_assumptions_drop_memory (LsJobResult *r);

/* Adds the rows of `own` that `other` has not, or otherwise; NULL: has none. *all NULL: a new array. */
void ls_assumptions_add_beside (GArray **all, const GArray *own, const GArray *other);
/* Takes rows away that `own` has not, or otherwise. *shared NULL: a new array of all of them. */
void ls_assumptions_keep (GArray **shared, const GArray *own);
/* "parameters bf16; masters fp32", newly allocated; NULL: no row has words. */
char *ls_assumptions_words (const GArray *all);

/* Adds what a question rests on besides its job. *all NULL: a new array. value: taken. why: whence it is that
 * nobody said it, NULL: it is given; instead: what to type, which the sentence says too;
 * NULL: nothing. words: with %s for
 * the value, as of a sentence. */
void ls_assumptions_add (GArray **all, const char *key, char *value, const char *words, const char *why,
                         const char *instead);

/* "rests on ..." in lines of at most LS_ASSUMPTIONS_WIDTH columns where words allow, newly allocated, without
 * a newline at its end. NULL array: NULL. */
#define LS_ASSUMPTIONS_WIDTH 110
char *ls_assumptions_text (const GArray *assumptions);

#endif
