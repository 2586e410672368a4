/* data/launch/import_reader.h — a job that is read from files of another program (private to launch/). */
#ifndef LS_DATA_LAUNCH_IMPORT_READER_H
#define LS_DATA_LAUNCH_IMPORT_READER_H

#include "data/jobs/imported.h"
#include "strategy/strategy.h"

/* A job while it is read. What a file says is set in a model and a strategy by the keys of our files. */
typedef struct {
  LsImported made; /* so far: what becomes of it, without documents */
  LsModel model;
  LsStrategy strategy;
  GHashTable *model_said, *strategy_said; /* keys that are set: static strings */
  GHashTable *by_rule; /* those of strategy_said that no word of the files says: a rule of the program does */
  GHashTable *model_by_rule; /* of model_said what options without a word of the files are by default */
  /* Options that the files give, also as off: "tensor-parallel" for "--tensor_parallel", and of "a.b.c" also
   * "b.c" and "c" (char *, owned). Keys of the strategy that they decide by their rows, static strings. */
  GHashTable *words, *decided;
  bool model_is_given;        /* by ls_import_load() */
  bool model_is_named;        /* the files name one, whether it is known or not */
  bool model_is_sized;        /* they say of what sizes theirs is */
  guint32 positions;          /* rows of a table of learned positions, if the model has one; 0: not known */
  GHashTable *given;          /* keys that were given, whatever the files say: static strings, of either */
  const char *departs;        /* the last of them of which a file says another value; NULL: none. Static */
  bool may_have_more;         /* words are left open that may be options */
  guint n_told[LS_N_REMARKS]; /* remarks by their kinds */
} LsImport;

/* What is left where the files of a program are not read. */
#define IMPORT_ELSE "give the job by --model and options, which lockstep run --help lists"

/* Of a user's own map: its program, its file. */
#define IMPORT_READ_AS "read as %s, by %s"

/* A file as YAML, which several readers ask for: tree NULL: it is none. */
typedef struct {
  struct cJSON *tree;
  bool is_parsed;
} ImportYaml;

/* The files, read. */
typedef struct {
  const char *path;
  char *text;
  gsize n;
  const char *asked; /* the path with what is given behind it; NULL: nothing is */
  ImportYaml *yaml;  /* by yaml_config_tree () */
  bool *is_used;     /* something of it was taken: import_use_file (); NULL: nobody asks */
} ImportFile;

/* "NNODES=4": what is given of what is no key of ours, for a variable of the file. */
typedef struct {
  char *name, *value;
  bool is_used; /* set by the reader that had use for it  */
  bool is_lost; /* set by one that found that the file sets it itself */
} ImportGiven;

typedef struct {
  const ImportFile *files;
  guint n, n_logs; /* those of the job; logs beside it lie behind them, for no reader */
  ImportGiven *given;
  guint n_given;
  GHashTable *written; /* name without a folder to text: files that a script writes */
  GPtrArray *found;    /* char *: paths of all that are read, to which those found beside are added */
  GPtrArray *told;     /* char *: what is said of a first file that was unpacked; NULL: it was not */
} ImportFiles;

/* Whether the lines of a log are known, by the maps of programs (program/program_map.h): what it is,
 * borrowed; NULL: it is none. The second: whether it is one of this program. */
const char *import_log_what (const ImportFile *file);
bool import_is_log_of (const ImportFile *file, const char *map);
/* What its lines measured of a job that is read, which may be of another file; false: it has none. */
bool import_measure_log (const char *text, LsImport *import);
/* The first file, a log that does not say what its job is: what was measured alone. */
bool import_log_alone (const ImportFiles *files, LsImport *import, LsDiagList *diags);

/* The file is this text from now on, which is taken. */
void import_set_text (ImportFile *file, GString *text);
/* Something of the file is taken: one of which nothing is, is refused. */
void import_use_file (const ImportFile *file);

/* What is given by this name, of which there is now use; NULL: nothing is. */
const char *import_given (const ImportFiles *files, const char *name);

/* Whether the files give one of these names, which blanks part, and which may have '*'. */
bool import_has_option (const LsImport *import, const char *names);
/* "--a_b" as "a-b", newly allocated; of n bytes of a name. */
char *import_bare_name (const char *name, gsize n);
/* An option that the files give, as on or as off, and the key of the strategy that its row decides; NULL:
 * none. By these a key that is set is told to be of the files, or of a rule of their program. */
void import_note_word (LsImport *import, const char *name, const char *key);

/* Sets a key of ls_model_fields or ls_strategy_fields from text; `option` is what the file calls it: a name
 * that may have '*' for any characters, several with blanks where each of them says it, "--" where it is a
 * rule of the program that does. A key of the strategy is said by the files where they give one of these, or
 * an option whose row decides it (option_table.h); otherwise it is by_rule. A value out of range is a
 * conflict. A key that was given stays as it is. */
void import_set (LsImport *import, const LsField *fields, const char *key, const char *text,
                 const char *option);
void import_set_strategy_count (LsImport *import, const char *key, guint64 value, const char *option);
/* What is told of a key of the model or the strategy whose value the file leaves open: of `unknown` too. What
 * is told first stays. */
void import_open (LsImport *import, const char *key, const char *format, ...) G_GNUC_PRINTF (3, 4);
bool import_is_open (const LsImport *import, const char *key);
bool import_is_given (const LsImport *import, const char *key);

/* A key of the strategy that was inferred from the number of GPUs, and is not known for another one. */
void import_follows_gpus (LsImport *import, const char *key);

/* The program that runs the job, a name of strategies/software. */
void import_set_software (LsImport *import, const char *name);
/* Whether a key of the model or the strategy is set. */
bool import_has (const LsImport *import, const LsField *fields, const char *key);
/* What these are of; *ret_said: keys that are set. */
gpointer import_target (LsImport *import, const LsField *fields, GHashTable **ret_said);

/* A table of learned positions has this many rows, if the model has one. It has one for
 * each token of a sequence where the files say no more. */
void import_positions (LsImport *import, guint64 n);

/* Sets the keys of a model but for its sequence; `source` is said as where it is from. */
void import_model (LsImport *import, const LsModel *m, const char *source);
/* The same of the model that has this name for a program or a hub; one that nobody has is told as unknown. */
void import_model_of_name (LsImport *import, const char *name);
/* The model of a name, or of a folder that is called so: *ret_found, newly allocated, is then the name that
 * it was found by, else NULL. On success the caller clears *ret_model; false: nobody's; name NULL allowed. */
bool import_find_model (const char *name, LsModel *ret_model, bool *ret_is_decoder, char **ret_found);

void import_infer (LsImport *import, const char *format, ...) G_GNUC_PRINTF (2, 3);
void import_unknown (LsImport *import, const char *format, ...) G_GNUC_PRINTF (2, 3);
void import_ignore (LsImport *import, const char *format, ...) G_GNUC_PRINTF (2, 3);
void import_conflict (LsImport *import, const char *format, ...) G_GNUC_PRINTF (2, 3);
/* Unless it is told already. */
void import_unknown_once (LsImport *import, const char *text);
/* Of a key alone. */
void import_remark_key (LsImport *import, LsRemarkKind kind, const char *key);

/* A job of another kind, which `format` names as the file does: a diagnostic; false. */
bool import_refuse_task (const char *path, LsDiagList *diags, const char *format, ...) G_GNUC_PRINTF (3, 4);

#endif
