/* data/shell/shell_loop.c — loops of the shell: over words that the script says, and over a count. */
#include "data/shell/shell_parts.h"

#include <string.h>

#define MAX_ROUNDS 256 /* of loops that are run as often as they say, in all */

/* The words of "for X in a b c", char *; none: the script does not say them all. */
static GPtrArray *
read_for_words (ShellText *s)
{
  GPtrArray *words = g_ptr_array_new_with_free_func (g_free);
  shell_skip_blanks (s);
  if (shell_is_word (s, "in"))
    s->p += 2;
  for (shell_skip_blanks (s); !shell_has_ended (s) && !s->is_bad; shell_skip_blanks (s)) {
    const char *end = shell_next_end (s);
    if (s->sh->mode != SHELL_SKIPPED)
      shell_expand (s->sh, s->p, end, words);
    s->p = MIN (MAX (end, s->p + 1), s->end);
  }
  for (guint i = 0; i < words->len; i++)
    if (ls_shell_has_hole (words->pdata[i])) {
      g_ptr_array_set_size (words, 0);
      break;
    }
  return words;
}

static void
set_for (ShellText *s, const char *name, const char *value)
{
  GPtrArray *items = g_ptr_array_new_with_free_func (g_free);
  g_ptr_array_add (items, g_strdup (value));
  if (*name)
    shell_assign (s->sh, name, items, false, false);
  else
    g_ptr_array_unref (items);
}

static void
read_body (ShellText *s)
{
  shell_read_list (s, (const char *const[]) { "done", NULL });
  shell_take_word (s, "done");
}

/* Whether a loop can be run as often as it says: nothing leaves it before, and loops are short. */
static bool
can_repeat (ShellText *s, guint n)
{
  const char *begin = s->p;
  ShellMode mode = shell_enter (s->sh, SHELL_SKIPPED);
  read_body (s);
  g_autofree char *body = g_strndup (begin, (gsize) (s->p - begin));
  s->sh->mode = mode;
  s->p = begin;
  if (strstr (body, "break") || n > MAX_ROUNDS - s->sh->n_rounds)
    return false;
  s->sh->n_rounds += n;
  return true;
}

/* --- loops that count --- */

/* "((i = 0; i < N; i++))": its three parts, expanded. NULL: there are not three. */
static char **
read_counting (ShellText *s)
{
  const char *end = shell_group_end (s->p + 1, s->end, '(', ')');
  if (!end) {
    shell_give_up (s, "a bracket is not closed");
    return NULL;
  }
  g_autofree char *text = shell_expand_text (s->sh, s->p + 2, MAX (end - 2, s->p + 2), true);
  s->p = end;
  char **parts = g_strsplit (text, ";", -1);
  if (g_strv_length (parts) == 3)
    return parts;
  g_strfreev (parts);
  return NULL;
}

/* How often it goes round, if its body leaves the count alone; 0: not known, or never. */
static guint
count_rounds (LsShell *sh, char *const *parts)
{
  gint64 value;
  guint n = 0;
  if (sh->mode != SHELL_RUN || !shell_set_arithmetic (sh, parts[0], &value))
    return 0;
  while (n <= MAX_ROUNDS && shell_arithmetic (sh, parts[1], &value) && value != 0) {
    n++;
    if (!shell_set_arithmetic (sh, parts[2], &value))
      return 0;
  }
  bool is_known = n <= MAX_ROUNDS && shell_arithmetic (sh, parts[1], &value);
  return is_known ? n : 0;
}

/* One round of each: a word that the variable gets, or a count. */
typedef struct {
  const char *name;
  const GPtrArray *words; /* NULL: it counts */
  char *const *parts;
  guint n;
} Loop;

static void
begin_round (ShellText *s, const Loop *loop, guint i)
{
  gint64 value;
  if (loop->words)
    set_for (s, loop->name, loop->words->pdata[i]);
  else
    shell_set_arithmetic (s->sh, loop->parts[i > 0 ? 2 : 0], &value);
}

static void
repeat (ShellText *s, const Loop *loop)
{
  const char *begin = s->p;
  for (guint i = 0; i < loop->n && !shell_has_failed (s->sh) && !s->is_bad; i++) {
    s->p = begin;
    begin_round (s, loop, i);
    read_body (s);
    s->sh->has_left = s->sh->has_left && !s->sh->continues;
    s->sh->continues = false;
  }
  if (!loop->words)
    begin_round (s, loop, loop->n);
}

/* --- the whole --- */

ShellStatus
shell_read_for (ShellText *s)
{
  shell_skip_blanks (s);
  ShellMode outer = s->sh->mode;
  const char *name_end = shell_name_end (s->p, s->end);
  g_autofree char *name = g_strndup (s->p, (gsize) (name_end - s->p));
  g_autoptr (GPtrArray) words = NULL;
  g_auto (GStrv) parts = NULL;
  s->p = name_end;
  if (shell_is_at (s, "(("))
    parts = read_counting (s);
  else
    words = read_for_words (s);
  shell_skip_separators (s);
  shell_take_word (s, "do");
  const Loop loop = { name, words, parts, words ? words->len : parts ? count_rounds (s->sh, parts) : 0 };
  if (loop.n > 0 && outer == SHELL_RUN && !s->is_bad && can_repeat (s, loop.n))
    repeat (s, &loop);
  else {
    gint64 value;
    shell_enter (s->sh, SHELL_MAYBE);
    set_for (s, name, "?");
    if (parts)
      shell_set_arithmetic (s->sh, parts[0], &value);
    read_body (s);
  }
  s->sh->mode = outer;
  return SHELL_DONE;
}
