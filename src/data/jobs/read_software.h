/* data/jobs/read_software.h — a training program: its defaults, what a sweep tries of it, what it takes of
 * memory besides what is simulated, what published tables of its runs do not say
 * (strategies/software/NAME.json).
 *
 * A file may be based on another, of an earlier release or of the program that it began as: what it does not
 * say is as there, except what belongs to one file only (dp_kinds, architectures, tables).
 *
 * What is legal there is not in the file: it is what the writer of its job accepts (data/jobs/emit.h). */
#ifndef LS_DATA_JOBS_READ_SOFTWARE_H
#define LS_DATA_JOBS_READ_SOFTWARE_H

#include "data/jobs/read_ranges.h"

/* What accelerators are called in "architectures" that have no NCCL; others are called as their file of
 * topologies/nccl. */
#define LS_ARCHITECTURE_TPU      "tpu"
#define LS_ARCHITECTURES_OF_GPUS "gpu" /* in "runs_on": all but TPUs */

/* Memory that no simulated category holds: a size, and a share of the accelerator's memory. */
typedef struct {
  char *what; /* "NCCL" */
  uint64_t bytes;
  double percent;
  bool is_of_allocator; /* is simulated where the caching allocator is (LS_MEMORY_CACHING) */
  char *runs_on;        /* only on these accelerators, as of a program; NULL: on all */
  char *source;
} LsHeadroomItem;

/* Ways to run a job that the program does not have: "tp,pp" (LS_SOFTWARE_WAYS). */
#define LS_SOFTWARE_WAYS "tp, pp, cp, ep, sp, fp8"
typedef struct {
  char *ways, *source;
} LsLacking;

/* What the program does in some jobs that is not simulated, and what that was measured to cost. */
typedef struct {
  char *what;    /* "the host path of its all-to-all" */
  char **when;   /* "key=a|b" or "key=>=8", of a strategy or a model: of which jobs */
  double times;  /* so many times as long as simulated such steps were measured, at most; 1: none was */
  double memory; /* so many times what is simulated was measured at the peak; 1: none was */
  char *source;
} LsMissing;

/* What the runs of a table had that its columns do not say, or say otherwise. */
typedef struct {
  char *of;                 /* the table: patterns with * and ? for the column `source`, "a*|b*"     */
  char *family;             /* what its rows are called together on a scoreboard; NULL: as before   */
  char **when;              /* "column=a|b" or "column=>=8": of which rows; NULL: of all            */
  char **model, **strategy; /* "key=value", put over the columns; NULL: none              */
  char *cluster;            /* what they ran on, over the column; NULL: what the column says        */
  char *source;
} LsTableFacts;

typedef struct {
  char *name, *source;
  char *based_on;                   /* NULL: nothing */
  char *program, *vendor, *release; /* as one would say it: "Megatron-LM", "NVIDIA", "core 0.15" */
  char *package; /* "megatron-bridge 0.4": one of it, and the first version that the file speaks of; NULL */
  /* whose measured runs tell how far off a prediction may be, in words; NULL: as those of the program that
   * has its way to be data parallel (dp_kinds) */
  char *runs_like;
  char *emit;          /* data/jobs/emit.h; NULL: no job is written for it */
  char *dp_kinds;      /* "megatron,none": ways to be data parallel that it has; NULL: a release of another */
  char *architectures; /* "tpu": only on these accelerators; NULL: where no other file names one */
  char *runs_on;       /* "gpu" or "tpu" or such architectures, with commas; NULL: not said */
  char *experts;       /* how it runs them, where they are simulated otherwise; NULL: they are not */
  LsStrategy defaults; /* of the command line, with those of the program over them */
  /* LsArchitectureDefaults while a file is read: then they are in defaults, for all strategies to share */
  GArray *by_architecture;
  int p2p_interleaved; /* LsP2p with vpp above 1, unless it is said */
  LsRanges ranges;     /* that a sweep tries */
  GArray *headroom;    /* LsHeadroomItem */
  GArray *lacks;       /* LsLacking      */
  GArray *misses;      /* LsMissing      */
  GArray *tables;      /* LsTableFacts, in the order in which they apply */
} LsSoftwareSpec;

const LsField *ls_software_fields (void); /* made once, then static */

/* What a condition says, "a|b" or ">=8", of a value as it is written. */
bool ls_software_condition_holds (const char *wanted, const char *value);

/* LS_ERROR_INPUT. On success the caller clears *ret_software; on failure it is untouched. */
bool ls_software_load (const char *name, LsSoftwareSpec *ret_software, LsDiagList *diags);
/* Only dp_kinds, architectures, emit and package, as the file itself has them: what a program is chosen by. A
 * file without dp_kinds and emit is of a release. */
bool ls_software_load_head (const char *name, LsSoftwareSpec *ret_head, LsDiagList *diags);
bool ls_software_read (const LsJsonDoc *doc, LsSoftwareSpec *ret_software, LsDiagList *diags);
/* The name of the file that speaks of a version of a package: the last that is not later, else the first;
 * NULL: none speaks of it. The caller frees it. */
char *ls_software_of_package (const char *package, const char *version);
void ls_software_clear (LsSoftwareSpec *software); /* NULL allowed */

/* Whether it has that way to be data parallel (LsDpKind) among its dp_kinds, that accelerator among its
 * architectures. */
bool ls_software_has_dp_kind (const LsSoftwareSpec *software, int dp_kind);
bool ls_software_has_architecture (const LsSoftwareSpec *software, const char *architecture);

/* Whether a list as "runs_on" has it names accelerators of that architecture; NULL names all. */
bool ls_software_names_architecture (const char *runs_on, const char *architecture);

/* What is left to the program's choice in s, which need not be resolved. */
void ls_software_settle (const LsSoftwareSpec *software, LsStrategy *s);

#endif
