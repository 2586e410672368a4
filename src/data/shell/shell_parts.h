/* data/shell/shell_parts.h — what the files of the shell reader share (private to launch/). */
#ifndef LS_DATA_LAUNCH_SHELL_PARTS_H
#define LS_DATA_LAUNCH_SHELL_PARTS_H

#include "data/shell/shell.h"

/* What becomes of a statement: passed over, run, or perhaps run: the script does not say. */
typedef enum { SHELL_SKIPPED, SHELL_MAYBE, SHELL_RUN } ShellMode;

/* How a command ends. DONE: nobody knows, but scripts count on success. */
typedef enum { SHELL_NO, SHELL_YES, SHELL_UNKNOWN, SHELL_DONE } ShellStatus;

/* A value: one item, or those of an array. */
typedef struct {
  GPtrArray *items; /* char * */
  bool is_array;
} ShellValue;

struct LsShell {
  LsShellFuncs funcs;
  gpointer data;
  GHashTable *values;    /* name: ShellValue * */
  GPtrArray *names;      /* char *: in the order in which they were first set */
  GHashTable *functions; /* name: text of its body */
  GHashTable *unset;     /* names that were taken as not set */
  GHashTable *outside;   /* name: LsShellOutside of what is set from outside */
  GPtrArray *outer;      /* words of commands that this text was handed to, borrowed */
  GPtrArray *texts;      /* char *: those that are being read, one within the other, borrowed */
  ShellMode mode;
  guint n_rounds;    /* of loops that were run as often as they say */
  bool continues;    /* has_left, but only the round of a loop */
  bool has_left;     /* exit was met, or return in a function */
  int depth;         /* texts within texts, blocks within blocks */
  gsize n_bytes;     /* of words that were made, in all */
  GPtrArray *faults; /* char *: what ended the reading; empty: nothing did */
};

/* Gives up for a reason. */
void shell_fail (LsShell *sh, const char *format, ...) G_GNUC_PRINTF (2, 3);
bool shell_has_failed (const LsShell *sh);
/* Counts what is made; false: that is too much. */
bool shell_afford (LsShell *sh, gsize n);

/* --- variables --- */

const ShellValue *shell_value (const LsShell *sh, const char *name);
/* Sets or appends, in the current mode. Takes items. */
void shell_assign (LsShell *sh, const char *name, GPtrArray *items, bool is_array, bool is_appended);
void shell_unset (LsShell *sh, const char *name);

/* --- words --- */

/* Appends the fields of a word, char *. */
void shell_expand (LsShell *sh, const char *p, const char *end, GPtrArray *fields);
/* The word as one text, newly allocated, as in quotes; with is_here, quotes are characters. */
char *shell_expand_text (LsShell *sh, const char *p, const char *end, bool is_here);
/* Appends the words of a text, cut at blanks outside of holes. */
void shell_split (const char *text, GPtrArray *words);

/* --- arithmetic and tests --- */

/* The value of an expression whose expansions were made; false: it has holes, or makes no sense. */
bool shell_arithmetic (const LsShell *sh, const char *text, gint64 *ret_value);
/* Of [ ... ], the words between the brackets; of [[ ... ]] with has_patterns. */
ShellStatus shell_test (LsShell *sh, char *const *words, guint n, bool has_patterns);

#endif
