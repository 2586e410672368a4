/* data/shell/shell_text.h — a shell script as it is read: what stands between words, what a word is, where
 * here documents lie (private to launch/). */
#ifndef LS_DATA_LAUNCH_SHELL_TEXT_H
#define LS_DATA_LAUNCH_SHELL_TEXT_H

#include "data/shell/shell_parts.h"

typedef struct {
  LsShell *sh;
  const char *begin, *p, *end;
  const char *here_to; /* behind the here documents of this line; NULL: it has none */
  bool is_bad;         /* something is not closed: the rest is not read */
} ShellText;

/* Blanks, comments, and lines that go on; of comments, those of a batch system are commands. */
void shell_skip_blanks (ShellText *s);
/* p at a newline: passes over it, and the here documents of its line. */
void shell_skip_newline (ShellText *s);
/* All that separates commands, but not the ;; of a case. */
void shell_skip_separators (ShellText *s);
/* The script cannot be read, and why. */
void shell_give_up (ShellText *s, const char *why);
/* The end of the word that begins here. */
const char *shell_next_end (ShellText *s);
bool shell_is_at (ShellText *s, const char *text);
/* Whether a word begins here that is this one, not only its beginning. */
bool shell_is_word (ShellText *s, const char *word);
/* Passes over separators, and then over this word if it is there. */
bool shell_take_word (ShellText *s, const char *word);
/* Passes over "> file", "2>&1", "<(command)"; the text of a here document, newly allocated, or NULL. */
char *shell_take_redirection (ShellText *s);
bool shell_is_redirection (ShellText *s);
/* Whether the word that ends there is the "2" of "2>&1". */
bool shell_is_descriptor (ShellText *s, const char *end);

/* [[ ... ]] and (( ... )), with what stands in them. */
ShellStatus shell_read_test (ShellText *s);
ShellStatus shell_read_arithmetic (ShellText *s);

#endif
