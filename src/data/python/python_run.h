/* data/python/python_run.h — what the parts of the reader of Python share that run statements
 * (private to python/). */
#ifndef LS_DATA_PYTHON_PYTHON_RUN_H
#define LS_DATA_PYTHON_PYTHON_RUN_H

#include "data/python/python_parts.h"

/* --- python_targets.c ------------------------------------------------------------------------------ */

/* What a value goes to: "a.b", "a, (b, *c)". */
typedef struct PythonTarget PythonTarget;

typedef void PythonVisit (PythonPlace *x, const GPtrArray *path, guint n, gpointer data);

/* Up to `end`; NULL: it is no such thing. evaluates: as above. */
PythonTarget *python_read_target (PythonPlace *x, const char *end, bool evaluates);
void python_target_free (gpointer target);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (PythonTarget, python_target_free)
/* "a: int =", "a = b =": what stands before the value, PythonTarget *; the caller frees it. */
GPtrArray *python_read_assigned (PythonPlace *x, bool evaluates);
/* Each path gets its part of item, which is taken, and is written from the token `first` on, in a statement
 * that begins at `start`. If that is not known, the statement is named, and each part is a hole. */
void python_unpack (PythonPlace *x, const PythonTarget *target, cJSON *item, guint first, guint start);
void python_visit_target (PythonPlace *x, const PythonTarget *target, PythonVisit *visit, gpointer data);
/* "a, (b, *c) = ...", "a.b: int = ...". False: it is no such statement. */
bool python_assign (PythonPlace *x);

/* --- python_changes.c ------------------------------------------------------------------------------ */

/* "n += 1", "a.append (1)", "f (a)" of a known function. A statement that is not followed is named. */
void python_change (PythonPlace *x);
bool python_is_augmented (const PythonToken *t);

/* --- python_open.c --------------------------------------------------------------------------------- */

/* What lines set from i up to `end`. */
void python_visit_set (LsPython *p, guint i, guint end, GHashTable *names, PythonVisit *visit, gpointer data);
/* What line i and those further in set is a hole from now on, as the line `decides` is written. */
void python_open_block (LsPython *p, guint i, guint decides, GHashTable *names);
/* What a function in a function changes of what is set around it, whenever it is called, is a hole. */
void python_open_function (LsPython *p, const PythonLine *line, GHashTable *names);

/* --- python_guard.c -------------------------------------------------------------------------------- */

/* Whether "if" in line i sets what it asks for to what is false, and nothing else. */
bool python_is_guard (LsPython *p, guint i);

/* --- python_try.c ---------------------------------------------------------------------------------- */

/* "try" in line i. Returns where what is followed ends. */
guint python_run_try (LsPython *p, guint i, GHashTable *names, cJSON **ret_result);

/* --- python_loops.c -------------------------------------------------------------------------------- */

/* "for" or "while" in line i, with "else". Returns where it ends. */
guint python_run_loop (LsPython *p, guint i, GHashTable *names, cJSON **ret_result);
/* Whether a block has "break" or "continue" of a loop around it. */
bool python_leaps (const LsPython *p, guint i);

/* --- python_statements.c --------------------------------------------------------------------------- */

/* Line i is not followed, nor what is further in, as the line `decides` is not: what they set is a hole. */
void python_pass_block (LsPython *p, guint i, guint decides, GHashTable *names);
/* From a line on, those that are as far in: what they return, null if they return nothing; NULL: they do not
 * return. names: those of the function; NULL: of the file. */
cJSON *python_run_body (LsPython *p, guint first, GHashTable *names);
/* Runs the statements of a file. */
void python_run (LsPython *p, guint module);

/* --- python_classes.c ------------------------------------------------------------------------------ */

/* What objects of a class of the files have, by name; NULL: there is none, or that is not known. The caller
 * frees it. */
cJSON *python_members_of (LsPython *p, guint module, const char *name);

/* --- python_functions.c ---------------------------------------------------------------------------- */

/* What a function returns that is called from a file; NULL: nothing. arguments: an object by name and place,
 * of which some are taken; NULL: there are none. */
cJSON *python_call (LsPython *p, guint module, const char *name, cJSON *arguments, guint line);
/* Of a function that is defined in a line: what its parameters usually are is found once, here, and is the
 * same object in each call. */
void python_keep_usual (LsPython *p, const PythonLine *line);

/* What parameters of a function usually are, by their names, of those without a "*" before them; the caller
 * frees it. NULL: there is no such function. */
cJSON *python_usual_of_function (LsPython *p, guint module, const char *name);

/* --- python_declared.c ----------------------------------------------------------------------------- */

/* Adds options of the first file that packages make of functions and classes. */
void python_read_declared (LsPython *p);

#endif
