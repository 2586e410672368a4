/* data/launch/python/python_names.h — configurations in Python: names at the start of their lines, and
 * functions (private to launch/). */
#ifndef LS_DATA_LAUNCH_PYTHON_NAMES_H
#define LS_DATA_LAUNCH_PYTHON_NAMES_H

#include <cjson/cJSON.h>

#include "data/launch/import_reader.h"
#include "data/python/python.h"

/* The names that a text sets, and those of files that it imports all names from, as one object, as
 * data/python/python.h has it. What of them is not followed is told with its places. The caller frees
 * it; NULL: a diagnostic. */
cJSON *python_names_of (const ImportFiles *files, const char *text, gsize n, const char *name,
                        LsImport *import, LsDiagList *diags);
/* Of the functions that can be called without an argument the one that is asked for, or, NULL, the only one,
 * borrowed; NULL: a diagnostic. of: the file of a map, one of `reads`. */
const char *python_pick_function (const LsPython *python, const cJSON *of, const char *asked,
                                  const char *path, LsDiagList *diags);
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
/* Files of a job from the one with the text of `first` on, and those that they import from, of modules that
 * have one of the words of `joins` as a part, with what functions of the program do that are not here; each
 * well formed, NULL: a diagnostic. texts, to which what is read is added, outlive it. */
LsPython *python_join (const cJSON *of, const ImportFiles *files, const ImportFile *first, GPtrArray *texts,
                       LsImport *import, LsDiagList *diags);
/* Tells what a function of a configuration does that is not followed, of ls_python_value(): the first few
 * places, and how many more there are. */
void python_tell_passed (LsImport *import, const char *function, const GPtrArray *passed);
/* Refuses a function that was evaluated where it or one that it calls is a program: it is run, not read, by
 * what prints the configuration of a program, "megatron-bridge", or by capturing it. False: none is. */
bool python_refuse_program (const LsPython *python, const char *path, const char *program, LsDiagList *diags);
/* Drops which functions make objects, and their arguments without a name, in place. What a function gives of
 * which no member is known becomes a hole. */
void python_names_forget_calls (cJSON *tree);

#endif
