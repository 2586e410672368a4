/* data/launch/program/program_map.h — another program as data: strategies/programs/NAME.json (private to
 * launch/).
 *
 * Problem. What the options of a training program mean is a fact of that program and of its releases; whoever
 * knows it should be able to write it down without a compiler.
 *
 * Method. A file has three lists, documented in src/manual/formats/program.md. `reads`: how a file of the
 * program is known. `options`: the rows of an OptionTable (option_table.h). `rules`, in order: a key of the
 * model or of the strategy and an expression for it, or what is told. A rule that holds only sometimes has an
 * expression "when". Expressions ask of options (`on`, `off`, `given`, `text`, `number`), of what was set
 * (`has`, `key`), and calculate. A fourth list, `logs`, says which lines of its logs say which numbers.
 *
 * Worked example. { "model": { "ffn": "4 * key (model.hidden)" }, "when": "not has (model.ffn)" }.
 *
 * Deviations. What is not a rule of one line but a calculation, such as layers of a pipeline, is a function
 * that a rule calls by its name. */
#ifndef LS_DATA_LAUNCH_PROGRAM_MAP_H
#define LS_DATA_LAUNCH_PROGRAM_MAP_H

#include <math.h>

#include "data/launch/launch_script.h"
#include "data/launch/option_table.h"

/* How a file of the program is known. */
typedef struct {
  const char *what; /* "a configuration of nanotron"; NULL: another of them says so */

  /* Of a script. */
  const char *marks;  /* lists of texts, of each of which it has one; ';' is between lists, ' ' between texts,
                       * '~' a blank in one; NULL: one of starts */
  const char *starts; /* words of a command that starts it, ' ' between them, '~' between two of which one
                       * stands behind the other; NULL: its options tell */
  const char *config; /* its option that names the configuration, "": its first word does; NULL: its own
                       * options are the job's */
  bool has_pairs;     /* its options are words "a.b=c" */
  bool submits;       /* these say on how many GPUs, not what it is started by */

  /* Of a configuration, which a script may name. */
  const char *yaml;    /* a text that such a YAML has; NULL: it is a script */
  const char *fits;    /* what holds of the YAML: an expression; NULL: nothing is asked */
  const cJSON *moves;  /* mappings of the YAML that are read at other places, by their paths; NULL: none */
  const char *lifts;   /* a mapping of the YAML whose members are the configuration's own; NULL: none */
  const char *drops;   /* paths of what of it matters to nothing, however much it has; NULL: none */
  bool is_apart;       /* a key that two files have is refused by the program */
  bool is_alone;       /* files behind it are none of the configuration */
  const cJSON *beside; /* but members of it where they fit: an expression for each; NULL: none */

  /* Of a script with a configuration. */
  const cJSON *rules;     /* about its command, before the configuration is read; NULL: none */
  const cJSON *overrides; /* true, or an expression: where its other options lie on top of the YAML, which,
                           * but beside pairs, need then not be named; NULL: they do not */
  const char *word;       /* the option that a word of none is the value of: an expression; NULL: none */
  const char *behind;     /* words "a=b" and "~a" behind the name of the configuration change it; of a mapping
                           * this member is set; NULL: they do not */
} ProgramFile;

typedef struct {
  char *name, *source;
  char *program, *prefix; /* as it is called; what "$" in front of an option stands for, or NULL */
  LsJsonDoc *doc;
  OptionTable table;
  GArray *files;      /* ProgramFile */
  const cJSON *rules; /* of doc */
  const cJSON *logs;  /* of doc; NULL: none are known */
} ProgramMap;

extern const LsField ls_program_fields[];

/* By name or path, checked: NULL and diagnostics, LS_ERROR_INPUT. The caller frees it. */
ProgramMap *program_map_load (const char *name, LsDiagList *diags);
ProgramMap *program_map_read (const LsJsonDoc *doc, LsDiagList *diags);
void program_map_free (ProgramMap *map); /* NULL allowed */
G_DEFINE_AUTOPTR_CLEANUP_FUNC (ProgramMap, program_map_free)

/* The same, loaded once and kept; NULL: it cannot be read. */
const ProgramMap *program_map_get (const char *name);

/* --- program_expr.c: expressions ---------------------------------------------------------------------- */

/* A text, newly allocated, or else a number; neither (NAN): none. Yes and no are 1 and 0. */
typedef struct {
  char *text;
  double number;
} ProgramValue;

/* What expressions see. */
typedef struct {
  const ProgramMap *map;
  LaunchJob *job;             /* NULL: nothing is known, as where the file alone is looked at */
  const cJSON *tree;          /* of a YAML; NULL: there is none */
  const char *path;           /* of the job's file */
  const LaunchScript *script; /* that starts it; NULL: none does */
  const char *command;        /* of this what starts the program (f_command ()); NULL: nothing is known */
  GHashTable *lets;           /* char * -> ProgramValue *: what rules calculated */
  char *wrong;                /* what is wrong with an expression; NULL: nothing */
  bool is_refused;            /* a rule refused the job */
  const ImportFiles *files;
  LaunchWords *says; /* options of another program (translate); NULL: there are none */
  LaunchJob other;   /* in these */
  GHashTable *named; /* char *: options that expressions name, where the file is looked at; or NULL */
  LsDiagList *diags;
} ProgramRun;

/* A malformed one is none, and run->wrong says why. */
ProgramValue program_eval (ProgramRun *run, const char *text);
bool program_holds (ProgramRun *run, const char *text);
/* A text in which "{expression}" stands for its value; of "{x|3g}" as printf has it. Newly allocated. */
char *program_fill (ProgramRun *run, const char *text);
void program_value_clear (ProgramValue *v);
char *program_value_text (const ProgramValue *v); /* newly allocated; "" of none */
bool program_value_is_true (const ProgramValue *v);
ProgramValue program_value_copy (const ProgramValue *v);
static inline ProgramValue
program_number (double n)
{
  return (ProgramValue) { NULL, n };
}
static inline ProgramValue
program_none (void)
{
  return program_number (NAN);
}
static inline bool
program_value_is_none (const ProgramValue *v)
{
  return !v->text && v->number != v->number;
}

/* The option that a word in an expression names: "$" is the prefix of the map. Newly allocated. */
char *program_option (const ProgramMap *map, const char *word, gsize n);

/* --- program_functions.c: functions of expressions ------------------------------------------------------ */

/* An option, a key or a word as it is written, or a value: by the letter of the function. */
typedef struct {
  char *word;
  ProgramValue value;
} ProgramArgument;

/* Letters: o an option, k a key, w a word as it stands, v a value. */
typedef struct {
  const char *name, *letters;
  ProgramValue (*call) (ProgramRun *run, const ProgramArgument *a);
  bool is_free; /* needs no job */
} ProgramFunction;

const ProgramFunction *program_function_find (const char *name); /* NULL: there is none */

/* "model.layers", "strategy.tp": NULL: there is no such key. */
const LsField *program_key_find (const char *word, bool *ret_is_model);

/* The value of a word "name=value", borrowed; NULL: it is another. Of the first such word of a command. */
const char *program_pair_value (const char *word, const char *name);
const char *program_pair (const LaunchScript *script, const char *name);

/* --- program_rules.c: rules ----------------------------------------------------------------------------- */

/* Whether all were run: else one refuses the job, and run->diags says why. */
bool program_run_rules (ProgramRun *run, const cJSON *rules);
/* Looks at rules that no job is run by: actions, keys, options and expressions that there are not. */
bool program_check_rules (ProgramRun *run, const LsJsonDoc *doc, const cJSON *rules, LsDiagList *diags);

/* --- program_calls.c: what is in C ---------------------------------------------------------------------- */

typedef void ProgramCall (ProgramRun *run);
/* A calculation that is no rule of one line, by its name; NULL: there is none. */
ProgramCall *program_call_find (const char *name);
/* Options of a program that is read in C; NULL: of none of that name. */
const OptionTable *program_table_find (const char *name);
/* [[["flash", "mamba"], 12], ...]: the kinds of layers of each part, so many times, or once, each by its
 * letter in "flash=A mamba=m". The caller frees it; NULL: it is written otherwise, or has other kinds. */
char *program_pattern (const cJSON *parts, const char *letters);

/* --- program_reader.c: the files ------------------------------------------------------------------------ */

/* The reader of a file of a map; NULL: it is none of its files. is_own: of a user, which is told. */
const ImportReader *program_reader_of (const char *name, bool is_own, const ImportFile *file);

/* --- program_logs.c: logs ------------------------------------------------------------------------------- */

/* A log of a program: numbers of the time of its steps, of memory and batches. */
typedef struct {
  const ProgramMap *map;
  const cJSON *node; /* of map->logs */
} ProgramLog;

bool program_check_logs (const ProgramMap *map, LsDiagList *diags);
/* Whether a text is such a log: a line says the time of a step, or its batch. */
bool program_log_of (const ProgramMap *map, const char *text, ProgramLog *ret_log);
/* "a log of MaxText", borrowed. */
const char *program_log_what (const ProgramLog *log);
/* Sets what is measured (log_measure ()), and a batch that no file of the job says. */
void program_log_measure (const ProgramLog *log, const char *text, LsImport *import);
/* Of a log without a job's files: the model is not known. */
void program_log_read_alone (const ProgramLog *log, const ImportFile *file, LsImport *import);

/* Marks (ProgramFile) in n bytes of a text. */
bool program_has_marks (const char *text, gsize n, const char *marks);

#endif
