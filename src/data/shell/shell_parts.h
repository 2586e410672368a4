/* data/shell/shell_parts.h — what the files of the shell reader share (private to shell/). */
#ifndef LS_DATA_LAUNCH_SHELL_PARTS_H
#define LS_DATA_LAUNCH_SHELL_PARTS_H

#include <stdbool.h>

#include "base/list.h"
#include "data/shell/shell.h"

/* What becomes of a statement: passed over, run, or perhaps run: the script does not say. */
typedef enum { SHELL_SKIPPED, SHELL_MAYBE, SHELL_RUN } ShellMode;

/* How a command ends; NO and YES are false and true. DONE: nobody knows, but scripts count on success. */
typedef enum { SHELL_NO, SHELL_YES, SHELL_UNKNOWN, SHELL_DONE } ShellStatus;

/* What an exit or its kin ends, of which the rest is not run. */
typedef enum { SHELL_STAYS, SHELL_LEAVES_ROUND, SHELL_LEAVES_FUNCTION, SHELL_LEAVES } ShellLeave;

/* A value: one item, or those of an array. */
typedef struct {
  GPtrArray *items; /* char *; NULL: it is not set */
  bool is_array;
  bool is_map;      /* of "declare -A": its items are variables "NAME[key]" */
  bool is_exported; /* processes see it */
} ShellValue;

/* What a $(command) prints. */
typedef struct {
  GString *text;    /* NULL: none is being read */
  bool is_lost;     /* it is not known; of no account where none is read */
  bool is_in_maybe; /* it stands in what is perhaps run */
  char *folder;     /* that it changed to; NULL: it did not */
} ShellOutput;

struct LsShell {
  LsShellFuncs funcs;
  gpointer data;
  GHashTable *values;    /* name: ShellValue * */
  GPtrArray *names;      /* char *: in the order in which they were first set */
  GHashTable *functions; /* name: text of its body */
  bool exports_all;      /* "set -a": what is set from now on is exported */
  GHashTable *unset;     /* names that were taken as not set */
  GHashTable *outside;   /* name: LsShellOutside of what is set from outside */
  GPtrArray *outer;      /* words of commands that this text was handed to, borrowed */
  GPtrArray *texts;      /* char *: those that are being read, one within the other, borrowed */
  ShellMode mode;
  guint n_rounds; /* of loops that were run as often as they say */
  ShellLeave leaves;
  GHashTable *locals; /* what variables of its own were before the function that is read; NULL: none is */
  void (*read) (LsShell *sh, const char *text, gsize n); /* reads a text as a script */
  ShellOutput out;
  int depth;     /* of commands within commands */
  gsize n_bytes; /* of words that were made, in all */
  char *fault;   /* what ended the reading; NULL: nothing did */
};

/* --- shell_command.c: variables --------------------------------------------------------------------- */

/* Gives up for a reason; the first one counts. */
void shell_fail (LsShell *sh, const char *why);
/* Counts what is made; false: that is too much. */
bool shell_afford (LsShell *sh, gsize n);
/* A hole of that name, newly allocated. */
char *shell_hole (const char *name);
/* Appends the words of a text, cut at blanks outside of holes. */
void shell_split (const char *text, GPtrArray *words);
/* Whether a path is one from the folder of the script, and nothing else of it is open. */
bool shell_is_beside (const char *path);

const ShellValue *shell_value (const LsShell *sh, const char *name);
/* Sets or appends, in the current mode. Takes items. */
void shell_assign (LsShell *sh, const char *name, GPtrArray *items, bool is_array, bool is_appended);
/* Sets it to one text. Takes text. */
void shell_set (LsShell *sh, const char *name, char *text);
/* It is an array whose items have names, none of which is set. */
void shell_declare_map (LsShell *sh, const char *name);
void shell_unset (LsShell *sh, const char *name);
/* Enters a mode, if it does less than that which is; what was. */
ShellMode shell_enter (LsShell *sh, ShellMode mode);
/* A variable, "0" or "BASH_SOURCE", is where the script lies that is being read; not set where nobody knows
 * that. */
void shell_set_place (LsShell *sh, const char *name, const char *path);
/* Processes see it. */
void shell_export (LsShell *sh, const char *name);

/* What variables were when they were kept first, which they are again after shell_set_back(). The caller
 * frees it. */
GHashTable *shell_kept_new (void);
void shell_keep (const LsShell *sh, GHashTable *kept, const char *name);
void shell_set_back (LsShell *sh, const GHashTable *kept);

/* What is so again behind a shell of its own, which finds all variables and changes none of them. */
typedef struct {
  GHashTable *values;
  guint n_names;
  ShellLeave leaves;
} ShellOutside;
ShellOutside shell_begin_own (LsShell *sh);
void shell_end_own (LsShell *sh, ShellOutside outside);

/* --- shell_command.c: commands ---------------------------------------------------------------------- */

/* What a command reads and writes, newly allocated: a here document at its input, and the file that its
 * output goes to; NULL: none. */
typedef struct {
  char *here, *target;
  bool is_appended;
} ShellStreams;

/* Runs a command, words (char *), in the current mode. */
ShellStatus shell_run (LsShell *sh, GPtrArray *words, const ShellStreams *streams);
/* What a command prints, without newlines at its end, newly allocated; NULL: only a run would know. What it
 * sets is lost, as in a shell of its own. */
char *shell_output_of (LsShell *sh, const char *text);

/* --- shell_expand.c: where a word ends -------------------------------------------------------------- */

/* Quotes, $(...), ${...}, $((...)), `...` and arrays =( ... ) belong to a word; what is nested deeper than
 * SHELL_MAX_NESTED is given up. */
#define SHELL_MAX_NESTED 32

/* Where a character stands next; end: nowhere. */
const char *shell_find (const char *p, const char *end, char c);
/* Behind a word that begins at p; p itself: there is none. NULL: a quote or bracket of it is not closed. */
const char *shell_word_end (const char *p, const char *end);
/* Behind the bracket that closes what was opened before p, "()"; NULL: none does. depth: of what it is in. */
const char *shell_group_end (const char *p, const char *end, const char *brackets, int depth);
/* Behind a "<path to data>" that stands for what a user is to fill in, p at its '<'; NULL: it is none. */
const char *shell_placeholder_end (const char *p, const char *end);
/* Behind a name of a variable that begins at p; p itself: there is none. */
const char *shell_name_end (const char *p, const char *end);
/* Of NAME=, NAME+= or NAME[...]=: behind the '='; NULL: the word assigns nothing. */
const char *shell_assignment_value (const char *p, const char *end);

/* --- shell_expand.c: what a word is ----------------------------------------------------------------- */

/* Appends the fields of a word, char *. */
void shell_expand (LsShell *sh, const char *p, const char *end, GPtrArray *fields);
/* The word as one text, newly allocated, as in quotes; with is_here, quotes are characters. */
char *shell_expand_text (LsShell *sh, const char *p, const char *end, bool is_here);
/* The value of an expression whose expansions were made; false: it has holes, or makes no sense. */
bool shell_arithmetic (const LsShell *sh, const char *text, gint64 *ret_value);
/* Whether it is not 0, and the same of "NAME = ...", "NAME += ..." and "NAME++", which set a variable, in the
 * current mode. */
ShellStatus shell_set_arithmetic (LsShell *sh, const char *text);
/* Of [ ... ], the words behind the first; of [[ ... ]] with has_patterns those between the brackets. */
ShellStatus shell_test (LsShell *sh, char *const *words, guint n, bool has_patterns);
/* "NAME[INDEX]" up to end becomes a text, or has one more behind it, in the current mode; an index that is no
 * number leaves a hole where there is an array. text NULL: it is taken away. Takes text. */
void shell_set_element (LsShell *sh, const char *p, const char *end, char *text, bool is_appended);

#endif
