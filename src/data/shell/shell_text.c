#include "data/shell/shell_parts.h"

#include <string.h>

/* --- between words ------------------------------------------------------------------------------ */

/* A line "#SBATCH --nodes=4" is a command whose first word is the line's. */
static void
read_directive (ShellText *s, const char *end)
{
  static const char *const marks[] = { "#SBATCH", "#PBS", "#BSUB", "#$", NULL };
  g_autoptr (GPtrArray) words = g_ptr_array_new_with_free_func (g_free);
  g_autofree char *line = g_strndup (s->p, (gsize) (end - s->p));
  char *comment = strstr (line + 1, " #");
  if (comment)
    *comment = '\0';
  shell_split (line, words);
  if (s->sh->mode != SHELL_RUN || words->len < 2 || !g_strv_contains (marks, words->pdata[0])
      || !shell_afford (s->sh, strlen (line)))
    return;
  g_ptr_array_add (words, NULL);
  const LsShellCommand command = { (char *const *) words->pdata, words->len - 1, true };
  s->sh->funcs.command (&command, s->sh->data);
}

static void
skip_comment (ShellText *s)
{
  const char *newline = memchr (s->p, '\n', (size_t) (s->end - s->p));
  read_directive (s, newline ? newline : s->end);
  s->p = newline ? newline : s->end;
}

void
shell_skip_blanks (ShellText *s)
{
  while (s->p < s->end) {
    if (*s->p == ' ' || *s->p == '\t')
      s->p++;
    else if (*s->p == '\\' && s->p + 1 < s->end && s->p[1] == '\n')
      s->p += 2;
    else if (*s->p == '#' && (s->p == s->begin || g_ascii_isspace (s->p[-1]) || s->p[-1] == ';'))
      skip_comment (s);
    else
      return;
  }
}

void
shell_skip_newline (ShellText *s)
{
  s->p = s->here_to ? s->here_to : s->p + 1;
  s->here_to = NULL;
}

void
shell_skip_separators (ShellText *s)
{
  for (shell_skip_blanks (s); s->p < s->end; shell_skip_blanks (s)) {
    bool is_end_of_case = *s->p == ';' && s->p + 1 < s->end && s->p[1] == ';';
    if (*s->p == '\n')
      shell_skip_newline (s);
    else if (!is_end_of_case && (*s->p == ';' || *s->p == '&'))
      s->p++;
    else
      return;
  }
}

void
shell_give_up (ShellText *s, const char *why)
{
  if (!shell_has_failed (s->sh))
    shell_fail (s->sh, "%s", why);
  s->is_bad = true;
  s->p = s->end;
}

/* The end of the word that begins here. */
const char *
shell_next_end (ShellText *s)
{
  const char *end = shell_word_end (s->p, s->end);
  if (!end)
    shell_give_up (s, "a quote or bracket is not closed");
  return end ? end : s->end;
}

bool
shell_is_at (ShellText *s, const char *text)
{
  gsize n = strlen (text);
  return (gsize) (s->end - s->p) >= n && strncmp (s->p, text, n) == 0;
}

/* A word as it stands, not only the beginning of one. */
bool
shell_is_word (ShellText *s, const char *word)
{
  gsize n = strlen (word);
  if (!shell_is_at (s, word))
    return false;
  const char *behind = s->p + n;
  return behind >= s->end || g_ascii_isspace (*behind) || strchr (";&|()<>", *behind) || strchr (word, ';')
      || strchr (word, ')');
}

bool
shell_take_word (ShellText *s, const char *word)
{
  shell_skip_separators (s);
  if (!shell_is_word (s, word))
    return false;
  s->p += strlen (word);
  return true;
}

/* --- here documents and redirections -------------------------------------------------------------- */

/* Up to the line that is the delimiter; where the lines of the command go on. */
static char *
read_here (ShellText *s, const char *delimiter, bool is_literal, bool has_tabs)
{
  const char *from = s->here_to;
  if (!from) {
    const char *newline = memchr (s->p, '\n', (size_t) (s->end - s->p));
    from = newline ? newline + 1 : s->end;
  }
  for (const char *line = from; line < s->end;) {
    const char *newline = memchr (line, '\n', (size_t) (s->end - line));
    const char *line_end = newline ? newline : s->end, *text = line;
    while (has_tabs && text < line_end && *text == '\t')
      text++;
    bool is_last = (gsize) (line_end - text) == strlen (delimiter)
        && strncmp (text, delimiter, strlen (delimiter)) == 0;
    if (is_last) {
      s->here_to = newline ? newline + 1 : s->end;
      if (s->sh->mode == SHELL_SKIPPED)
        return NULL;
      return is_literal ? g_strndup (from, (gsize) (line - from))
                        : shell_expand_text (s->sh, from, line, true);
    }
    line = newline ? newline + 1 : s->end;
  }
  shell_give_up (s, "a here document has no end");
  return NULL;
}

static char *
take_here (ShellText *s)
{
  bool has_tabs = shell_is_at (s, "<<-");
  s->p += has_tabs ? 3 : 2;
  shell_skip_blanks (s);
  const char *end = shell_next_end (s);
  g_autofree char *raw = g_strndup (s->p, (gsize) (end - s->p));
  bool is_literal = strpbrk (raw, "'\"\\") != NULL;
  g_autofree char *delimiter = g_strdelimit (g_strdup (raw), "'\"\\", ' ');
  s->p = end;
  return s->is_bad ? NULL : read_here (s, g_strstrip (delimiter), is_literal, has_tabs);
}

/* The word behind "<<<". */
static char *
take_here_word (ShellText *s)
{
  s->p += 3;
  shell_skip_blanks (s);
  const char *begin = s->p;
  s->p = shell_next_end (s);
  return s->is_bad || s->sh->mode == SHELL_SKIPPED ? NULL : shell_expand_text (s->sh, begin, s->p, false);
}

/* Passes over "> file", "2>&1", "<(command)"; the here document if it is one. */
char *
shell_take_redirection (ShellText *s)
{
  if (shell_is_at (s, "<<<"))
    return take_here_word (s);
  if (shell_is_at (s, "<<"))
    return take_here (s);
  while (s->p < s->end && strchr ("<>&|", *s->p))
    s->p++;
  shell_skip_blanks (s);
  const char *end
      = s->p < s->end && *s->p == '(' ? shell_group_end (s->p + 1, s->end, '(', ')') : shell_next_end (s);
  if (!end)
    shell_give_up (s, "a bracket is not closed");
  else
    s->p = end;
  return NULL;
}

bool
shell_is_redirection (ShellText *s)
{
  bool is_input = shell_is_at (s, "<") && !shell_placeholder_end (s->p, s->end);
  return is_input || shell_is_at (s, ">") || shell_is_at (s, "&>");
}

/* "2" of "2>&1". */
bool
shell_is_descriptor (ShellText *s, const char *end)
{
  for (const char *p = s->p; p < end; p++)
    if (!g_ascii_isdigit (*p))
      return false;
  return end > s->p && end < s->end && (*end == '<' || *end == '>');
}
