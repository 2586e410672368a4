/* data/jobs/imported.h — a job as the files of another program say it: launch scripts, configurations,
 * logs.
 *
 * Its readers are in launch/, which is a leaf: a build without them (-Dlaunch=disabled) refuses such files,
 * and all else stays. It is the mirror of data/jobs/emit.h. What a file says is set in a model and a strategy
 * by the keys of our files, and only what it says, or what follows from its program's rules; the latter is
 * told in `inferred`. Nothing is executed. */
#ifndef LS_DATA_JOBS_IMPORTED_H
#define LS_DATA_JOBS_IMPORTED_H

#include <glib.h>
#include <stdbool.h>

#include "base/diag.h"
#include "data/text/json_doc.h"
#include "data/text/field.h"
#include "data/text/json_out.h"
#include "model/model.h"
#include "strategy/strategy.h"

/* A step that a log timed; step_s 0: it times none. */
typedef struct {
  double step_s;
  guint n_lines, n_steady; /* lines that time a step; those whose median step_s is */
  /* 0: the log does not say. As it counts them, of one GPU; the peak of the fullest rank. */
  double flops_per_gpu, tokens_per_s_per_gpu;
  double allocated_bytes, reserved_bytes;
  char *path; /* of the log, where it lies beside a job's files; NULL: it is the first of these */
} LsImportMeasured;

/* An option that the files give, as they write it; value NULL: it is on. */
typedef struct {
  char *written, *value;
} LsImportOption;

typedef struct {
  const char *program; /* "Megatron-LM", static */
  char *name;          /* of the first file, with what is no letter, digit, '-', '_' or '.' as '-' */
  char *path;          /* of the first file */
  GPtrArray *files;    /* char *: all paths, also of files that were found beside the first */
  GPtrArray *asked;    /* char *: the same with what is given behind them       */
  LsModel model;
  LsStrategy strategy;
  GHashTable *model_said, *strategy_said; /* keys that are set: static strings */
  GHashTable *by_rule; /* those of strategy_said that no word of the files says: a rule of the program does */
  /* Options that the files give, also as off: "tensor-parallel" for "--tensor_parallel", and of "a.b.c" also
   * "b.c" and "c" (char *, owned). Keys of the strategy that they decide by their rows, static strings. */
  GHashTable *words, *decided;
  bool model_is_given;         /* by ls_import_load() */
  bool model_is_named;         /* the files name one, whether it is known or not */
  bool model_is_sized;         /* the files say of what sizes theirs is */
  guint first_year, last_year; /* of the releases that have the options; 0: not known */
  guint32 positions;           /* rows of a table of learned positions, if the model has one; 0: not known */
  GHashTable *given;           /* keys that were given, whatever the files say: static strings, of either */
  const char *departs;         /* the last of them of which a file says another value; NULL: none. Static */
  /* Keys, of either, that the file leaves open, static strings, and what is told of each, a line of
   * `unknown`; and keys of the strategy that were inferred from the number of GPUs. */
  GHashTable *open, *follows_gpus;
  bool may_have_more;              /* words are left open that may be options */
  GArray *options;                 /* LsImportOption, those that hold */
  const struct OptionTable *table; /* what options of the program are; NULL: its reader has none. Static */
  LsImportMeasured measured;
  GPtrArray *inferred;  /* char *: what follows from the program's rules, not from a word of the file */
  GPtrArray *unknown;   /* what may matter, and is not understood */
  GPtrArray *ignored;   /* options that matter neither to time nor to memory */
  GPtrArray *conflicts; /* what contradicts itself: such a job is refused */
} LsImport;

/* Reads the files, of which the first says what is launched, and others are what it sources. What they leave
 * open, or say otherwise, may be given behind a path, as behind the name of a file of ours:
 * "train.sh:vocab=50257,NNODES=4", keys of a model, of a strategy, and variables that a script asks for. With
 * no path, ":gpus=8", behind the first, it is known without being told, and dropped if it is malformed. On
 * success the caller clears *ret_import; on failure it is untouched and diags says why: LS_ERROR_INPUT;
 * LS_ERROR_UNSUPPORTED for jobs that are no decoders; LS_ERROR_USAGE: what is given is of no use.
 *
 * model: of a job that runs another one than the files say: rules that depend on a model see this one. A job
 * chooses how long a sequence is and how many layers predict further tokens: the files still say these. NULL:
 * theirs. */
bool ls_import_load (const char *const *paths, const LsModel *model, LsImport *ret_import, LsDiagList *diags);
/* The same of a text; name stands for its path, and nothing is given. */
bool ls_import_read (const char *text, gsize n, const char *name, const LsModel *model, LsImport *ret_import,
                     LsDiagList *diags);
void ls_import_clear (LsImport *import); /* NULL allowed */

/* Whether another program that runs the job has a key of the strategy as it has it by itself: no word of the
 * files says it, and it does not tell which ranks, sequences and weights that learn there are (LsField
 * of_job). */
bool ls_import_gives_way (const LsImport *import, const LsField *key);

/* Adds what ls_import_load() of a whole job still lacks to be run, and its conflicts, as LS_ERROR_CONFLICT
 * and LS_ERROR_INPUT. */
bool ls_import_check (const LsImport *import, LsDiagList *diags);

/* The job as our files of a model and of a strategy; "name" is as given. NULL: diagnostics. without: keys
 * that are left out; NULL: none. */
LsJsonDoc *ls_import_model (const LsImport *import, const char *name, LsDiagList *diags);
LsJsonDoc *ls_import_strategy (const LsImport *import, GHashTable *without, const char *name,
                               LsDiagList *diags);
/* Their texts, newly allocated, end in a newline. */
char *ls_import_model_text (const LsImport *import, const char *name);
char *ls_import_strategy_text (const LsImport *import, const char *name);

/* --- what a launch file said, written by the field tables of our files --------------------------- */

/* The members of an object: the keys that are set. */
void ls_import_write_model (const LsImport *import, LsJsonOut *w);
void ls_import_write_strategy (const LsImport *import, LsJsonOut *w);

/* What is asked of one key, as the text of its flag; NULL: it is not set. Newly allocated. */
char *ls_import_model_value (const LsImport *import, const char *key);
char *ls_import_strategy_value (const LsImport *import, const char *key);

/* --- how the files change for another configuration ------------------------------------------------ */

/* A program's fragment (data/jobs/emit.h) of the job as it is and of the one that is wanted differ in some
 * options. Each is looked for among the options that the files give, by its name, else by another name of
 * what it decides (launch/option_table.h), and in their text. */

/* All owned. */
typedef struct {
  char *option;  /* "--micro-batch-size", "training.seq_len": as the file has it, else the program */
  char *before;  /* its value in the file, "": it is on; NULL: it is to be added                    */
  char *after;   /* "": on; NULL: it is to be taken out                                            */
  char *file;    /* where it stands; NULL: not known                                               */
  unsigned line; /* of it, from 1                                                                  */
  char *through; /* the variable that holds the value there: "TP"; NULL: none                      */
} LsLaunchChange;

/* now: the fragment of the job as it is, NULL: the program has none; wanted: of the other. GPtrArray of
 * LsLaunchChange that frees them: what is changed, what is added, what goes, each in the order of
 * fragments. */
GPtrArray *ls_launch_changes (const LsImport *import, const char *now, const char *wanted);

/* The option of the files, as they write it, which alone decides a key, with its value behind it; NULL: none
 * does. Newly allocated. */
char *ls_launch_option_of (const LsImport *import, const char *key);

/* --- maps of programs (launch/program/program_map.h) ------------------------------------------------ */

extern const LsField ls_program_fields[];
/* What such a file is, in words, newly allocated; NULL: diagnostics. */
char *ls_program_inspect (const LsJsonDoc *doc, LsDiagList *diags);

#endif
