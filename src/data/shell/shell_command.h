/* data/shell/shell_command.h — one simple command of a shell script: what it sets, or hands on (private to
 * launch/). */
#ifndef LS_DATA_LAUNCH_SHELL_COMMAND_H
#define LS_DATA_LAUNCH_SHELL_COMMAND_H

#include "data/shell/shell_parts.h"

/* Performs an assignment as it stands, NAME=value, NAME+=value or NAME=( ... ), up to end. */
void shell_perform_assignment (LsShell *sh, const char *p, const char *end);

/* Runs a command in the current mode: words (char *), and the here document at its input, NULL: none.
 * `read` reads a text as a script. */
typedef void (*ShellReadFunc) (LsShell *sh, const char *text, gsize n);
/* here: a document that stands with it, target: the file that its output goes to; NULL: neither. */
ShellStatus shell_run (LsShell *sh, GPtrArray *words, const char *here, const char *target,
                       ShellReadFunc read);

#endif
