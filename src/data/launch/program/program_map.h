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

typedef struct ProgramMap ProgramMap;
typedef struct Emit Emit;

/* Of a member of `reads`, how a file of the program is known and read (src/manual/formats/program.md): a
 * text, NULL where none is there; whether it is true; whatever is there, or NULL. A script that names a
 * configuration in Python, which stands behind it in the list, has all of that which it does not say
 * itself. */
const char *reads_text (const cJSON *of, const char *key);
bool reads_is (const cJSON *of, const char *key);
const cJSON *reads_node (const cJSON *of, const char *key);
bool reads_is_script (const cJSON *of);

struct ProgramMap {
  char *name, *source;
  char *program, *prefix; /* as it is called; what "$" in front of an option stands for, or NULL */
  char *sections; /* what may stand in front of a name that has "~" there, with blanks between; or NULL */
  LsJsonDoc *doc;
  OptionTable table;
  GPtrArray *kept;              /* what its rows are made of, beside doc */
  const cJSON *root;            /* of doc, all of it; of arguments, these */
  bool is_dialect;              /* options of it become those of another program that is read in C */
  bool has_beside;              /* rules say what is configured beside it in options of another program */
  struct ProgramMap *arguments; /* of a command that names no configuration, in options of one; NULL: none */
};

/* What it has under one of its keys (src/manual/formats/program.md), "parts"; NULL: nothing. NULL allowed. */
static inline const cJSON *
program_section (const ProgramMap *map, const char *key)
{
  return map ? cJSON_GetObjectItemCaseSensitive (map->root, key) : NULL;
}

/* What stands there under a name; NULL: nothing does. */
static inline const cJSON *
program_entry (const ProgramMap *map, const char *key, const char *name)
{
  return cJSON_GetObjectItemCaseSensitive (program_section (map, key), name);
}

/* Names and texts of the maps that ship, as they were when this was built; NULL at the end (embed.py). */
extern const char *const program_embedded[][2];

/* By name or path, checked: NULL and diagnostics, LS_ERROR_INPUT. The caller frees it. */
ProgramMap *program_map_load (const char *name, LsDiagList *diags);
ProgramMap *program_map_read (const LsJsonDoc *doc, LsDiagList *diags);
void program_map_free (ProgramMap *map); /* NULL allowed */
G_DEFINE_AUTOPTR_CLEANUP_FUNC (ProgramMap, program_map_free)

/* --- program_expr.c: expressions ---------------------------------------------------------------------- */

/* A text, newly allocated, or else a number; neither (NAN): none. Yes and no are 1 and 0. */
typedef struct {
  char *text;
  double number;
} ProgramValue;

/* What expressions see, and rules change: a job that is being read. */
typedef struct {
  const ProgramMap *map;
  const cJSON *file;  /* which of the map's files is read, a member of `reads` */
  LaunchJob *job;     /* NULL: nothing is known, as where the file alone is looked at */
  LaunchWords *words; /* of job, to which rules may add */
  const cJSON *tree;  /* of a configuration, or a part that rules look at; NULL: there is none */
  const cJSON *root;  /* of a file that is unwrapped: its tree, or a list of its documents; or NULL */
  struct ProgramScript *wraps; /* what is written in its place; NULL: nothing is */
  cJSON *shaped;               /* the same before its options are read, where rules may change it; or NULL */
  const cJSON *told;        /* what code or a rule says of a file beside its options, texts by their names */
  const char *text;         /* of a file that is looked at, or read; NULL: there is none */
  const ImportFile *looked; /* that file; or NULL */
  const char *path;         /* of the job's file */
  const char *name;         /* of a configuration in Python: the name whose value it is; or NULL */
  const LaunchScript *script; /* that starts it; NULL: none does */
  char *command;              /* what of this starts the program (f_command ()); NULL: nothing is known */
  GHashTable *lets;           /* char * -> ProgramValue *: what rules calculated */
  char *wrong;                /* what is wrong with an expression; NULL: nothing */
  bool is_refused;            /* a rule refused the job */
  bool has_lacks;             /* a script sources what is not here */
  const ImportFiles *files;
  LaunchWords *says;      /* options of another program; NULL: there is none */
  LaunchJob other;        /* in these */
  bool is_read;           /* a rule read what options say by themselves */
  LaunchWords *deepspeed; /* a configuration of DeepSpeed for it; NULL: none was read */
  LaunchWords *made;      /* what took the place of the job's words; NULL: nothing did */
  GHashTable *seen;       /* variables of processes that the file says; NULL: it has none */
  const ProgramMap
      *around;        /* of a program around this one, with files that come with it; NULL: there is none */
  LsJsonCheck *check; /* where the file is looked at; NULL: a job is read */
  const OptionTable *theirs; /* its options, where the file is looked at; NULL: these are not known */
  GHashTable *parts;         /* char *: parts that rules run, where the file is looked at; or NULL */
  GHashTable *named;         /* char *: options that expressions name, where the file is looked at; or NULL */
  Emit *emit;                /* the job is written for the program; NULL: it is read */
  bool is_written;           /* so are its options: keys are those of a whole job */
  LsDiagList *diags;
} ProgramRun;

void program_run_clear (ProgramRun *run); /* what it made */

/* A malformed one is none, and run->wrong says why. */
ProgramValue program_eval (ProgramRun *run, const char *text);
bool program_holds (ProgramRun *run, const char *text);
/* Whether that holds of what is looked at: a configuration, a text, a file; NULL: nothing is asked. */
bool program_fits (ProgramRun look, const char *text);
/* A text in which "{expression}" stands for its value; of "{x|3g}" as printf has it. {" is as it stands, of
 * JSON. Newly allocated. */
char *program_fill (ProgramRun *run, const char *text);
/* Whether an expression, or else a text with such, can be read: what is wrong is told. */
void program_check_text (ProgramRun *run, const cJSON *node, bool is_template);
void program_value_clear (ProgramValue *v);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (ProgramValue, program_value_clear)
char *program_value_text (const ProgramValue *v); /* newly allocated; "" of none */

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

/* A text, which is taken, or a copy of it; NULL: none. */
static inline ProgramValue
program_taken (char *text)
{
  return (ProgramValue) { text, NAN };
}

static inline ProgramValue
program_text (const char *text)
{
  return program_taken (g_strdup (text));
}

/* Words of a text with such a separator; of none there are none. */
static inline char **
program_words (const char *text, const char *separator)
{
  return g_strsplit (text ? text : "", separator, -1);
}

/* Whether one of words, with this between, fits a text, as its start or end does; words NULL: none does. */
bool program_any_word (const char *words, const char *separator,
                       gboolean (*fits) (const char *text, const char *word), const char *text);

/* What later expressions call so; takes the value. */
void program_let (ProgramRun *run, const char *name, ProgramValue v);

/* Of the tree, by its path, or "." for all of it; "/": all that the file has. NULL: it is not there. */
const cJSON *program_node (const ProgramRun *run, const char *path);

/* The option that a word in an expression names: "$" is the prefix of the map. Newly allocated. */
char *program_option (const ProgramMap *map, const char *word);
/* The same of a job: "~x" is x in the first of the map's sections where it is given, or is off there. */
char *program_option_of (const ProgramRun *run, const char *word);
/* Whether there is such an option, which rules name, in one of the sections; it is told run->named. */
bool program_names_option (const ProgramRun *run, const char *word);

/* "each" is a text. */
void program_set_each (ProgramRun *run, const char *text);
/* An expression, or a number or a truth value as JSON has it; NULL: 0. */
ProgramValue program_value_of (ProgramRun *run, const cJSON *node);
/* The same of a member of a rule; as a whole number, or whether it is true. */
ProgramValue program_value_at (ProgramRun *run, const cJSON *rule, const char *key);
guint64 program_whole_at (ProgramRun *run, const cJSON *rule, const char *key);
bool program_is_true_at (ProgramRun *run, const cJSON *rule, const char *key);
/* What a rule tells, { "told": { name: value } }: texts; the caller frees it. */
cJSON *program_told_of (ProgramRun *run, const cJSON *rule);
/* A number without its fraction; 0: there is none above 0. */
guint64 program_whole (const ProgramValue *v);

/* A job that is written for a program. */
struct Emit {
  const LsModel *m;
  const LsStrategy *s;
  const char *title;
  LsDiagList *refusals;
  GString *notes;
  bool asks_whether; /* nobody reads why: the first refusal ends it */
};

/* What an option is in a job, newly allocated, "": it is on; NULL: it is not written. */
char *program_written (const ProgramMap *map, const char *expression, const LsModel *m, const LsStrategy *s);
/* Refuses what the program does not have, and notes what is said elsewhere. */
void program_check_written (const char *map, Emit *e);
/* knob: "--schedule zb-2p", as one would type it; why: of the target. */
void program_refuse_written (Emit *e, const char *knob, const char *why);

/* --- program_functions.c: functions of expressions ------------------------------------------------------ */

/* An option, a key or a word as it is written, or a value: by the letter of the function. */
typedef struct {
  char *word;
  bool is_other; /* an option of the program that options become those of */
  ProgramValue value;
} ProgramArgument;

/* Letters: o an option, with ">" in front of it one of the program that options become those of, k a key, w a
 * word as it stands, v a value. */
typedef struct {
  const char *name, *letters;
  ProgramValue (*call) (ProgramRun *run, const ProgramArgument *a);
  bool is_free; /* needs no job */
} ProgramFunction;

/* One by an expression of the run and its arguments: of a number, of a text that is copied, of one that is
 * taken; NULL: none. */
#define PROGRAM_NUMBER(name, expression) PROGRAM_VALUE (name, program_number (expression))
#define PROGRAM_TEXT(name, expression)   PROGRAM_VALUE (name, program_text (expression))
#define PROGRAM_TAKEN(name, expression)  PROGRAM_VALUE (name, program_taken (expression))
#define PROGRAM_VALUE(name, expression)                                                                      \
  static ProgramValue name (ProgramRun *run, const ProgramArgument *a)                                       \
  {                                                                                                          \
    return expression;                                                                                       \
  }

/* Of program_other.c and program_wrap.c; the last has no name. */
extern const ProgramFunction program_file_functions[], program_wrap_functions[];

/* "model.layers", "strategy.tp": NULL: there is no such key. */
const LsField *program_key_find (const char *word, bool *ret_is_model);

/* The value of a word "name=value", borrowed; NULL: it is another. Of the first such word of a command. */
const char *program_pair_value (const char *word, const char *name);
const char *program_pair (const LaunchScript *script, const char *name);

/* --- program_rules.c: rules ----------------------------------------------------------------------------- */

/* A rule that acts: on what its action says or, of an object, on a member of that after the other. */
typedef struct {
  const cJSON *rule, *what;
  const char *action, *name; /* of the rule; of what, an option in full */
  char *text;                /* what it says, filled, an option in full; NULL: an expression, not asked for */
  ProgramValue value;        /* of that */
  bool is_evaluated;
} ProgramAct;
typedef void ProgramAction (ProgramRun *run, ProgramAct *a);
ProgramAction program_lack, program_note; /* of a job that is written */

/* What it says, where it is an expression: evaluated once, when first asked for. As a text, "" of none. */
const ProgramValue *program_act_value (ProgramRun *run, ProgramAct *a);
const char *program_act_text (ProgramRun *run, ProgramAct *a);

/* Looks at rules that no job is run by: actions, keys, options and expressions that there are not. */
void program_check_rules (ProgramRun *run, const cJSON *rules);

/* --- program_other.c: options of another program, and what reads the job by these ----------------------- */

ProgramAction program_base, program_translate, program_say, program_say_option, program_assume,
    program_switch, program_deepspeed, program_read_as, program_run_part, program_beside, program_fill_open;
/* Tells a value of the act as "why" of its rule says, or as the default of the program. */
void program_tell_default (ProgramRun *run, ProgramAct *a);
/* What "translate" calls the options of a configuration of the program itself, for those of a command. */
#define PROGRAM_CONFIGURATION "configuration"

/* Files that options name, what a log prints, what a test measured. */

ProgramAction program_unset; /* program_functions.c */
ProgramAction program_add_options, program_leave_more, program_take_file, program_take_arguments,
    program_take_golden;

/* --- program_python.c: configurations in Python --------------------------------------------------------- */

/* What a text sets, or the first of names that it sets, as members by their paths; NULL: a diagnostic. */
cJSON *program_python_tree (ProgramRun *run, const char *text, gsize n, const char *path);
ProgramAction program_python, program_take_part, program_lift, program_put, program_move,
    program_drop_members, program_put_said, program_put_pairs, program_lay_files, program_lie_on,
    program_configure;
/* The first file of a map that functions in Python return; NULL: there is none. */
const cJSON *program_returned (const ProgramMap *map);
/* What a function of a text returns, the only one if none is asked for; as that, NULL: a diagnostic. */
cJSON *program_python_returned (ProgramRun *run, const char *asked, const ImportFile *file);
/* Shapes what was made elsewhere, as by a map's configurations in Python; false: a rule refuses it. */
bool program_shape (ProgramRun *run, cJSON *tree);
/* The same behind the file's own rules about it. */
bool program_take (ProgramRun *run, cJSON *tree);

/* --- program_wrap.c: files that wrap a launch script --------------------------------------------------- */

/* Puts the script in place of a file that this map unwraps, which loses its tree; another file stays as it
 * is. told: takes what is said of it, char *, owned by the array. False: a diagnostic. */
bool program_unwrap (const char *name, ImportFile *file, GPtrArray *told, LsDiagList *diags);
ProgramAction program_write_line, program_tell_once, program_write_variable, program_write_command,
    program_write_once;

/* --- program_reader.c: the files ------------------------------------------------------------------------ */

/* Whose file it is. */
typedef struct {
  const ProgramMap *map;
  const cJSON *file;
  bool is_own;  /* of a user, which is told */
  bool is_last; /* of scripts that no other program takes */
} ProgramReader;

/* Whether it is a file of a map, of those that are asked for last or not; own maps are asked for all. Else
 * *ret_reader is as it was. */
bool program_reader_of (const char *name, bool is_own, bool is_last, const ImportFile *file,
                        ProgramReader *ret_reader);
bool program_read (const ProgramReader *reader, const ImportFiles *files, LsImport *import,
                   LsDiagList *diags);
/* What the file says of options that the tree has not, or, on top, whatever it has. */
void program_add_said (ProgramRun *run, cJSON *tree, bool is_on_top);

/* --- read_hf_launch.c: a Trainer of Hugging Face, and programs around one -------------------------- */

/* A script that launches one, and what that names; a configuration of accelerate, or of a program around a
 * Trainer. False: with a diagnostic. */
bool hf_read_script (const LaunchKind *kind, const ImportFiles *files, LsImport *import, LsDiagList *diags);
bool hf_read_configuration (const ImportFiles *files, bool is_around, LsImport *import, LsDiagList *diags);
/* Whether a YAML is of a program around one, with a name of a model under the option of that program. */
bool hf_is_around (const ImportFile *file);
/* Whether an option matters to a Trainer, or is one of a program around it. */
bool hf_knows (const char *name);

/* --- program_logs.c: logs ------------------------------------------------------------------------------- */

void program_check_logs (LsJsonCheck *check, const cJSON *logs);
/* Options that a log says of its job. */
void program_log_options (ProgramRun *run, LaunchWords *words);

/* The number behind the first such words of a text, on their line, "6,180" and "12.3K" too; NAN: there is
 * none. */
double log_number (const char *text, const char *words);
/* Where an object of JSON or Python ends, behind its brace; NULL: it does not. Braces in texts count too. */
const char *log_object_end (const char *object);

/* Marks, as `reads` has them, in n bytes of a text. */
bool program_has_marks (const char *text, gsize n, const char *marks);

/* --- what lower files call of higher ones -------------------------------------------------------------- */

/* A map that is asked whose file it is, in the order in which that is done. */
typedef struct {
  const char *map;
  bool unwraps; /* files that wrap a script, which others then read */
  bool is_last; /* files of the map that it wants to be asked for so */
  bool is_own;  /* of the user, or none of those that ship */
} ProgramAsked;

/* Circles of files end here: import.c, which knows all files, sets them before main () runs. */
typedef struct {
  /* All maps, the user's own first; the last has no name. */
  const ProgramAsked *(*maps) (void);
  /* As program_map_load() reads it, loaded once and kept; NULL: it cannot be read. */
  const ProgramMap *(*map_get) (const char *name);
  const ProgramFunction *(*function_find) (const char *name); /* NULL: there is none */
  /* Whether all were run: else one refuses the job, and run->diags says why. */
  bool (*run_rules) (ProgramRun *run, const cJSON *rules);
  /* A job in options of a map's program by its rules, or by a part of them, before which they were read. What
   * else `run` has of it holds: files, diags (NULL: nobody asks), what is told, a configuration of DeepSpeed,
   * which is taken, a program around it, what takes its options as those of a Trainer, and where it is
   * written. False: with a diagnostic. */
  bool (*run_map) (const char *name, const char *part, ProgramRun run, LaunchJob *job);
  /* A configuration of a map's first file, which code has read, and which is changed. False: a diagnostic. */
  bool (*read_tree) (const char *name, cJSON *tree, const char *path, const cJSON *told, LsImport *import,
                     LsDiagList *diags);
} ProgramDoors;

extern const ProgramDoors *program_doors;

/* The functions behind them. */
const ProgramMap *program_map_get (const char *name);
const ProgramFunction *program_function_find (const char *name);
bool program_run_rules (ProgramRun *run, const cJSON *rules);
bool program_run_map (const char *name, const char *part, ProgramRun run, LaunchJob *job);
bool program_read_tree (const char *name, cJSON *tree, const char *path, const cJSON *told, LsImport *import,
                        LsDiagList *diags);

/* The options of a program; NULL: there is none of that name, or NULL. */
static inline const OptionTable *
program_table_find (const char *name)
{
  const ProgramMap *map = name ? program_doors->map_get (name) : NULL;
  return map && map->table.n > 0 ? &map->table : NULL;
}

#endif
