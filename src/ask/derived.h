/* ask/derived.h — a software profile, derived from captured steps of the program.
 *
 * Problem. What a program does otherwise than another one is said by the keys of a strategy that are the
 * program's and not the user's: how it shards and reduces, in which formats it keeps what, whose attention
 * runs, which kernels a layer launches, what a call costs its host. Whoever writes these down by hand is
 * often wrong, and a release later always.
 *
 * Method. Some small jobs are captured, with a table that says of each what its user asked for. The plan of
 * each job under a set of values of these keys stands next to its captured step (ask/versus.h). How far it is
 * has four parts, each a mean over the jobs:
 *
 *     work    sum over all kernels by phase and part of the model, products and attention once more by
 *             size, messages by kind, and copies, of |planned - captured time|, over the captured step
 *     memory  |planned - captured bytes| of what stays between steps, and of all else but buffers of
 *             messages, of which a host that is ahead holds more; over the captured
 *     order   by what share of the step's kernels, in the mean over bytes of each kind of message, these
 *             may begin earlier or later, and are waited for earlier or later
 *     host    sum over what calls cost the host, but launches, of |planned - captured|, over the step
 *
 * A value may take the place of the one that a key has if it is nearer in the first of these parts in which
 * they differ, and in those after it not farther by more than 0.005, but in the order. A key that is so in
 * the program improves what it computes and what it holds; what only makes up for another difference does
 * not. Step times, which all causes share, say nothing.
 *
 * In each turn all keys are tried, and the one value that brings most nearer is taken, until there is none.
 * What a launch costs the host is then what makes the host of all jobs together take as long as captured.
 *
 * Keys of pipelines, tensor and context parallelism and experts are tried where a job has such. A key was
 * *seen* if its other values are farther, and only those are written: what no job shows is as in
 * the profile that it is based on. Keys of sizes are not tried.
 *
 * Worked example. tests/golden/captured.txt, capture-profile: "attention_kernel" cudnn, as FlashAttention-2
 * takes longer.
 *
 * Deviations. Turns end where no single key comes nearer: two that only help together are not found. */
#ifndef LS_ASK_DERIVED_H
#define LS_ASK_DERIVED_H

#include "base/parallel.h"
#include "job/job.h"

typedef enum { LS_FAR_WORK, LS_FAR_MEMORY, LS_FAR_ORDER, LS_FAR_HOST, LS_N_FAR } LsFarPart;

extern const char *const ls_far_parts[LS_N_FAR]; /* "work" */

typedef struct {
  double part[LS_N_FAR]; /* INFINITY: it is refused */
} LsFar;

typedef struct {
  char *value;     /* that is nearest, as a file has it */
  char *was;       /* of the profile that it is based on */
  char *next;      /* the nearest of the others; NULL of a cost of the host: all that is nearer or farther */
  const char *key; /* static */
  LsFarPart by;    /* the first part in which `next` is farther */
  double farther;  /* by so much */
} LsDerivedKey;

typedef struct {
  char *trace, *model;
  uint32_t n_ranks;
  double captured_s, based_s, derived_s; /* steps: captured; planned as based on, and as derived */
  LsFar based, derived;
  double flops; /* of products and attention, planned as derived over captured; NAN: it is refused */
  char *job;    /* what it is, at a glance (job/knobs.h) */
} LsDerivedJob;

typedef struct {
  char *based_on;    /* NULL: the textbook */
  bool is_nearest;   /* of those that are shipped, as none was named */
  char *made_with;   /* "torch 2.15.0, CUDA 13.2" of the captures, each once */
  GArray *jobs;      /* LsDerivedJob, in the order of the table */
  GArray *keys;      /* LsDerivedKey, seen, in the order of the strategy's */
  GPtrArray *unseen; /* keys that no job shows, static */
  GPtrArray *sizes;  /* keys that are not tried, static */
  GPtrArray *ways;   /* "tp", "pp": ways to be parallel that no job has, static */
} LsDerived;

/* A captured job. */
typedef struct {
  char *trace;           /* folder of the step */
  LsJobSpec spec;        /* what its user asked for, and the profile that it is planned as of first */
  LsJobResult *captured; /* its step, replayed on that machine                                      */
} LsDerivedFrom;

void ls_derived_from_free (gpointer job);

/* base: machine, ways to simulate, and the software that it is based on; of none the nearest that is shipped,
 * by work and memory together. table: a CSV with a column `trace`, folders of captured steps, and others that
 * are options of the job. Folders, and files of models, are from that of the table, if they are there.
 * LS_ERROR_INPUT: of the table; LS_ERROR_CONFLICT: a job has other ranks than its capture;
 * LS_ERROR_UNSUPPORTED: a trace that does not say of what its kernels are; others: as of running a job. */
LsDerived *ls_derived_new (const LsJobSpec *base, const char *table, guint n_threads,
                           const LsProgress *progress, GError **error);
/* jobs: LsDerivedFrom, whose specs are of that software; NULL: none was named, and they change. */
LsDerived *ls_derived_of (const GPtrArray *jobs, const char *software, guint n_threads,
                          const LsProgress *progress, GError **error);
void ls_derived_free (LsDerived *derived); /* NULL allowed */
G_DEFINE_AUTOPTR_CLEANUP_FUNC (LsDerived, ls_derived_free)

#endif
