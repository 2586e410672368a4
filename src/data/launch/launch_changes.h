/* data/launch/launch_changes.h — where an option stands in somebody's files (private to launch/). */
#ifndef LS_DATA_LAUNCH_LAUNCH_CHANGES_H
#define LS_DATA_LAUNCH_LAUNCH_CHANGES_H

#include <glib.h>

#include "data/jobs/imported.h"

/* Of an option, "--tp-size" or "training.seq_len", and its value: the one line of the files (char *, paths)
 * that says it, or, where a variable of a shell holds the value, the line that sets this. *ret_file: newly
 * allocated; NULL if no line or several may be meant. *ret_through: the variable, newly allocated, or
 * NULL. */
void launch_place_find (const GPtrArray *files, const char *option, const char *value, char **ret_file,
                        unsigned *ret_line, char **ret_through);

#endif
