/* data/launch/launch_script.h — which command of a shell script launches a job, on how many GPUs (private
 * to launch/). */
#ifndef LS_DATA_LAUNCH_LAUNCH_SCRIPT_H
#define LS_DATA_LAUNCH_LAUNCH_SCRIPT_H

#include "data/launch/import_reader.h"
#include "data/launch/launch_words.h"
#include "data/python/python.h"
#include "data/shell/shell.h"

struct ProgramMap;

/* Whose commands are looked for: a map, and the file of it that says how they are known
 * (program/program_map.h). */
typedef struct {
  const struct ProgramMap *map;
  const cJSON *of;
} LaunchKind;

/* Whether an option is the program's. */
bool launch_knows (const LaunchKind *kind, const char *name);
/* What a script does that trains nothing, by its name, "evaluates"; NULL: it trains. */
const char *launch_other (const LaunchKind *kind, const char *script);

typedef struct {
  LaunchWords *words;     /* behind the script of Python */
  char *script;           /* as launch_find_script() has it */
  guint64 gpus;           /* 0: not known */
  LaunchWords *batch;     /* what a batch system is asked */
  guint64 nodes, of_node; /* nodes and GPUs of each that what starts the command is told; 0: none are */
  GPtrArray *front;       /* char *: the words in front of the script */
  GHashTable *variables;  /* char * -> char *: what the script sets */
} LaunchScript;

/* Reads the first file as a script; others are what it sources. What is not decided is told in import. False:
 * with a diagnostic. launch_script_clear() frees what is there, also after false. */
bool launch_script_read (const ImportFiles *files, const LaunchKind *kind, LaunchScript *ret_script,
                         LsImport *import, LsDiagList *diags);
void launch_script_clear (LaunchScript *script);

/* The variables that a script sets, as options; NULL: with a diagnostic. *ret_lacks: whether it sources what
 * is not here, which is told. */
LaunchWords *launch_script_variables (const ImportFiles *files, LsImport *import, bool *ret_lacks,
                                      LsDiagList *diags);

/* Why a file that no reader takes is not read, if it is a script: a diagnostic. False: it is none. */
bool launch_script_refuse (const ImportFile *file, LsDiagList *diags);
/* By the name of a script or module: it learns from rewards or preferences; it trains nothing. */
bool launch_learns (const char *name);
bool launch_uses_model (const char *name);
/* The number at the end: "8", "gpu:8", "gpu:a100:8"; 0: there is none. */
guint64 launch_last_number (const char *text);

/* Where the options of a command begin, behind its script; 0: there is none, and all words are theirs.
 * *ret_at: where that stands; *ret_script: its name, which the caller frees: "train.py", a module of `-m`, or
 * a command that a package installs, with what it is told to do, "swift sft". NULL: there is none. */
guint launch_find_script (char *const *words, guint n, guint *ret_at, char **ret_script);

/* --- launch_python.c: programs in Python --- */

/* What variables that a script sets for its processes change, of CUDA, PyTorch, Transformer
 * Engine (has_te), XLA and NCCL, by the map of this name. What is not simulated of it is told. */
void launch_environment (bool has_te, GHashTable *variables, GHashTable *exported, LsImport *import);

/* What the program in Python says itself that a command starts, if it lies beside the
 * script: adds options of the kind to words, variables, and those that processes see. Options are told. */
void launch_python (const ImportFiles *files, const LaunchKind *kind, const GPtrArray *command,
                    LaunchWords *words, GHashTable *variables, GHashTable *exported, LsImport *import);
/* Of a configuration in Python, which was evaluated: launch_environment() of what it sets. */
void launch_python_environment (const LsPython *python, bool has_te, LsImport *import);

/* a.b.c for a file x/a/y.py: x/a/b/c.py or x/a/b/c/__init__.py, which the caller frees; NULL: none is. */
char *python_find_module (const char *path, const char *module);
/* The text of the file that a module which a file imports from is, and its path, both newly allocated; NULL:
 * it is not looked for, or not here. */
typedef char *PythonFind (const char *module, const char *from, gsize *ret_n, char **ret_path, gpointer data);
/* Adds what files import from, be it by files that are added, of the first `most`. paths: char *, of all
 * files of python so far, to which those of the new ones are added; texts: takes their texts. False: a
 * diagnostic. */
bool python_add_imported (LsPython *python, GPtrArray *paths, GPtrArray *texts, guint most, PythonFind *find,
                          gpointer data, LsDiagList *diags);
/* --- yaml_config.c: files that a command names --- */

#define LAUNCH_MAX_BESIDE ((size_t) 4 << 20) /* bytes of a file that is found beside */

/* The text of a file that a command names: one that the script writes, with "$NAME" for what it does
 * not decide, else of those behind the first the one of that name, else one where it says from the folder of
 * the first or one above that, or in it. The caller frees it; NULL: there is none. */
char *launch_file_of (const ImportFiles *files, const char *name, gsize *ret_n);
/* A file where its name says from the folder of the first one, or from one above that, in which its program
 * may be started. is_of_job: it is read for the job, not to see what it is. NULL: there is none. */
char *launch_read_beside (const ImportFiles *files, const char *name, bool is_of_job, gsize *ret_n);
char *launch_read_above (const ImportFiles *files, const char *name, bool is_of_job, gsize *ret_n);

/* A diagnostic: a script of a program whose configuration is not here. name: NULL: none is said. False. */
bool launch_refuse_config (const char *name, const LsImport *import, LsDiagList *diags);

bool launch_has_end (const char *name, const char *ends); /* one of these, with blanks between */
bool launch_is_yaml (const char *name);                   /* by its end */

/* Whether one of the words names a file, beside or behind the script, that has a line which begins with one
 * of marks, with blanks between. */
bool launch_names_file (const ImportFiles *files, char *const *words, guint n, const char *marks);

/* Whether a line of a text begins so, behind blanks. */
gboolean launch_has_line (const char *text, const char *start);
/* The same of several. */
bool launch_has_any_line (const char *text, const char *starts, const char *separator);
/* Whether a part of a name, between these characters, is one of a list, which has blanks. */
bool launch_has_part (const char *name, const char *separators, const char *parts);

#endif
