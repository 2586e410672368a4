/* data/launch/launch_changes.h — how somebody's own launch files change for another configuration, in the
 * words of their program.
 *
 * A program's fragment (data/jobs/emit.h) of the job as it is and of the one that is wanted differ in some
 * options. Each is looked for among the options that the files give, by its name, else by another name of
 * what it decides (option_table.h), and in their text. */
#ifndef LS_DATA_LAUNCH_LAUNCH_CHANGES_H
#define LS_DATA_LAUNCH_LAUNCH_CHANGES_H

#include <glib.h>

#include "data/launch/import.h"

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

/* --- where an option stands in somebody's files ---------------------------------------------------- */

/* Of an option, "--tp-size" or "training.seq_len", and its value: the one line of the files (char *, paths)
 * that says it, or, where a variable of a shell holds the value, the line that sets this. *ret_file: newly
 * allocated; NULL if no line or several may be meant. *ret_through: the variable, newly allocated, or
 * NULL. */
void launch_place_find (const GPtrArray *files, const char *option, const char *value, char **ret_file,
                        unsigned *ret_line, char **ret_through);

#endif
