/* data/jobs/imported.h — a job as the files of another program say it: launch scripts, configurations,
 * logs.
 *
 * Its readers are in launch/, which is a leaf: a build without them (-Dlaunch=disabled) refuses such files,
 * and all else stays. It is the mirror of data/jobs/emit.h. What a reader hands over is documents of ours, a
 * model and a strategy, and remarks. The documents have the keys that the files give, and those that follow
 * from rules of their program; the latter are remarked. Nothing is executed. */
#ifndef LS_DATA_JOBS_IMPORTED_H
#define LS_DATA_JOBS_IMPORTED_H

#include <glib.h>
#include <stdbool.h>

#include "analysis/report.h"
#include "base/diag.h"
#include "data/text/json_doc.h"
#include "data/text/field.h"
#include "data/text/json_out.h"
#include "model/model.h"

/* A line of text, or with the later kinds a key. */
typedef enum {
  LS_REMARK_INFERRED, /* what follows from the program's rules, not from a word of the files */
  LS_REMARK_UNKNOWN,  /* what may matter, and is not understood; with a key: the files leave it open */
  LS_REMARK_IGNORED,  /* options that matter neither to the time nor the memory of a step */
  LS_REMARK_CONFLICT, /* what contradicts itself: such a job is refused */
  LS_REMARK_BY_RULE,  /* of the strategy: no word of the files gives it, a rule of their program does, and
                       * another program that runs the job has it as it has it by itself */
  LS_REMARK_OF_JOB,   /* the same of which ranks, sequences and weights that learn there are (LsField of_job),
                       * which the other has too */
  LS_REMARK_OF_MODEL, /* of the model: what an option that is not given is by default */
  LS_REMARK_GIVEN,    /* it was given beside the files, whatever they say */
  LS_REMARK_DEPARTS,  /* the last of these of which a file has another value; "model": another model is run */
  LS_REMARK_OF_GPUS,  /* of the strategy: it was inferred from the number of GPUs */
  LS_REMARK_OPTION,   /* an option that the files give, as they write it; the key that it alone decides */
  LS_N_REMARKS
} LsRemarkKind;

typedef struct {
  char *text;      /* NULL: of a key alone; owned */
  char *value;     /* of an option, owned; NULL: it is on */
  const char *key; /* static; NULL: of none */
  LsRemarkKind kind;
} LsRemark;

typedef struct {
  const char *program;         /* "Megatron-LM", static */
  char *name;                  /* of the first file, with what is no letter, digit, '-', '_' or '.' as '-' */
  char *path;                  /* of the first file */
  GPtrArray *files;            /* char *: all paths, also of files that were found beside the first */
  GPtrArray *asked;            /* char *: the same with what is given behind them       */
  LsJsonDoc *model, *strategy; /* as files of `name`; what nobody gives, required or not, is not there */
  bool has_own_model;          /* the files name one, or say of what sizes theirs is, whatever was given */
  GArray *remarks;             /* LsRemark */
  guint first_year, last_year; /* of the releases that have the options; 0: not known */
  LsMeasured measured; /* of a log; source: where it lies beside a job's files, NULL: the first of these */
  const struct OptionTable *table; /* what options of the program are; NULL: its reader has none. Static */
} LsImported;

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
bool ls_import_load (const char *const *paths, const LsModel *model, LsImported *ret_import,
                     LsDiagList *diags);
/* The same of a text; name stands for its path, and nothing is given. */
bool ls_import_read (const char *text, gsize n, const char *name, const LsModel *model,
                     LsImported *ret_import, LsDiagList *diags);
/* What the files say of a run, not of a step, where none of the options of `lockstep train` that stand for it
 * is given (of: is_given's own): "--save-interval 50 (--checkpoint-every)", owned; NULL: nothing. */
char *ls_import_of_run (const LsImported *import, bool (*is_given) (gconstpointer of, const char *option),
                        gconstpointer of);
void ls_import_clear (gpointer import); /* an LsImported; NULL allowed */
void ls_import_unref (gpointer import); /* one that is counted (g_atomic_rc_box_dup); NULL allowed */

/* The first remark of that kind about a key, or about any if it is NULL; NULL: there is none. */
const LsRemark *ls_import_remark (const LsImported *import, LsRemarkKind kind, const char *key);
guint ls_import_n_remarks (const LsImported *import, LsRemarkKind kind);

/* What a file says that is not understood, where this is refused (--strict). */
#define LS_IMPORT_NOT_KNOWN "not known, may matter: "

/* Reports all remarks of a kind as errors with that code, each behind `before`; false: there are some. */
bool ls_import_refuse (const LsImported *import, LsRemarkKind kind, LsErrorCode code, const char *before,
                       LsDiagList *diags);

/* --- its documents ------------------------------------------------------------------------------- */

/* The first of the keys that a document has behind its schema, name and source; NULL: there are none. */
const cJSON *ls_import_first (const LsJsonDoc *doc);
/* All of these but for those of a set, as members of an object; NULL: all. */
void ls_import_write (const LsJsonDoc *doc, GHashTable *without, LsJsonOut *w);

/* The same as a file of that name: its text, newly allocated, ends in a newline; or read back. NULL:
 * diagnostics. */
char *ls_import_text (const LsJsonDoc *doc, GHashTable *without, const char *name);
LsJsonDoc *ls_import_parse (const char *text, const char *name, LsDiagList *diags);

/* What a document has of a key of that table, as the text of its flag, newly allocated; NULL: nothing. */
char *ls_import_value (const LsJsonDoc *doc, const LsField *fields, const char *key);
/* A value of it as documents write it, newly allocated; NULL: it is none. */
char *ls_import_spelled (const LsField *fields, const char *key, const char *text);

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
GPtrArray *ls_launch_changes (const LsImported *import, const char *now, const char *wanted);

/* --- maps of programs (launch/program/program_map.h) ------------------------------------------------ */

extern const LsField ls_program_fields[];
/* What such a file is, in words, newly allocated; NULL: diagnostics. */
char *ls_program_inspect (const LsJsonDoc *doc, LsDiagList *diags);

#endif
