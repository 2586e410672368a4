/* data/shell/shell.h — the commands of a shell script, found by reading it: nothing is executed.
 *
 * Followed are assignments, arrays, maps (declare -A), ${X:-default} and its kin, $((arithmetic)), if, case,
 * functions, shift, eval, bash -c "...", here documents, $(commands) that print what the script says, and
 * files that are sourced, as far as the script decides them. What only a run would know ($1, the output of
 * another command, a variable that nobody set) stands in a word as a hole with its name; so does what is said
 * in a form that is not read. A variable that nobody set is taken as not set where the script asks (-z,
 * ${X:-...}).
 *
 * A loop over words that the script says is run for each of them. Another loop is read once, as what perhaps
 * happens; so are the branches of a condition that is not decided: what they append is kept as such, what
 * they set is a hole.
 *
 * Memory is limited before it is taken: LS_SHELL_MAX_BYTES of words in all. */
#ifndef LS_DATA_LAUNCH_SHELL_H
#define LS_DATA_LAUNCH_SHELL_H

#include <glib.h>
#include <stdbool.h>

#define LS_SHELL_MAX_BYTES ((gsize) 32 << 20) /* lists of data that grow line by line take 3 */

/* A hole is '\001', its name, '\002'. */
#define LS_SHELL_HOLE     '\001'
#define LS_SHELL_HOLE_END '\002'
/* The hole that stands for the folder of the script, in front of paths from there. */
#define LS_SHELL_FOLDER "\001the folder of the script\002"
/* In a hole, behind what the script says in a form that is not read: "${A/x/y}", "mapfile A". */
#define LS_SHELL_UNREAD ", which is not read"

typedef struct {
  char *const *words; /* of the commands around it first; NULL at the end */
  guint n;
  bool is_certain; /* false: the script does not decide that it is run */
} LsShellCommand;

typedef struct {
  void (*command) (const LsShellCommand *command, gpointer data);
  /* Text of a file that is sourced, or is started as a script of its own, newly allocated; NULL: there is
   * none. path: as the script says it, with holes */
  char *(*source) (const char *path, bool is_started, gpointer data);
  /* A file that the script writes, by a here document or by echo, or adds to; text: with holes. NULL: not
   * asked for */
  void (*write) (const char *name, const char *text, bool is_appended, gpointer data);
} LsShellFuncs;

typedef struct LsShell LsShell;

LsShell *ls_shell_new (const LsShellFuncs *funcs, gpointer data);
void ls_shell_free (LsShell *sh); /* NULL allowed */
G_DEFINE_AUTOPTR_CLEANUP_FUNC (LsShell, ls_shell_free)

/* Reads a script, which lies in LS_SHELL_FOLDER by this name. A reason, newly allocated, why it cannot be
 * read; NULL: it was. */
char *ls_shell_read (LsShell *sh, const char *name, const char *text, gsize n);

/* A variable that is set from outside, before or while the script is read. */
void ls_shell_set (LsShell *sh, const char *name, const char *text);
/* What became of it: whether the script asked for it, or set it itself before it did. */
typedef enum { LS_SHELL_UNASKED, LS_SHELL_ASKED, LS_SHELL_OVERWRITTEN } LsShellOutside;
LsShellOutside ls_shell_outside (const LsShell *sh, const char *name);

/* The variables that were set, in order: names, borrowed. */
const GPtrArray *ls_shell_names (const LsShell *sh);
/* The words of a value: char *, owned by the array; NULL: it is not set. */
GPtrArray *ls_shell_words (const LsShell *sh, const char *name);
/* Whether processes see a variable: it is exported, set in front of a command, or set from outside. */
bool ls_shell_exports (const LsShell *sh, const char *name);
/* Names of variables that were taken as not set, sorted; g_list_free(). */
GList *ls_shell_unset (const LsShell *sh);

/* Of a command "bash ... -c TEXT" where the text is; 0: it is another one. */
guint ls_shell_text_of (char *const *words, guint n);

/* A program without its folder; borrowed. */
const char *ls_shell_base_of (const char *word);

/* Whether a word has holes; the names of them, "$X, $(hostname)", newly allocated. */
bool ls_shell_has_hole (const char *word);
char *ls_shell_hole_names (const char *word);

#endif
