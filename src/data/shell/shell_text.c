/* data/shell/shell_text.c — what stands between words, where a word ends; here documents. */
#include "data/shell/shell_parts.h"

#include <string.h>

/* --- where a word ends --------------------------------------------------------------------------- */

const char *
shell_find (const char *p, const char *end, char c)
{
  const char *at = memchr (p, c, (size_t) (end - p));
  return at ? at : end;
}

bool
ls_shell_is_one (const char *word, const char *words)
{
  const gsize n = strcspn (word, " ");
  const char *p = n > 0 && word[n] == '\0' ? strstr (words, word) : NULL;
  while (p && ((p > words && p[-1] != ' ') || (p[n] != ' ' && p[n] != '\0')))
    p = strstr (p + n, word);
  return p != NULL;
}

/* Letters, digits and a few signs between < and >, the first and the last no blank. "<in>out" is none. */
const char *
shell_placeholder_end (const char *p, const char *end)
{
  bool has_blank = false;
  const char *q = p + 1;
  for (; q < end && (g_ascii_isalnum (*q) || strchr (" _-./,:'", *q)); q++)
    has_blank = has_blank || *q == ' ';
  bool is_one = q < end && *q == '>' && q > p + 1 && p[1] != ' ' && q[-1] != ' ';
  return is_one && (has_blank || q + 1 == end || g_ascii_isspace (q[1])) ? q + 1 : NULL;
}

const char *
shell_quote_end (const char *p, const char *end, char quote, int depth)
{
  while (p && p < end && *p != quote)
    p = *p == '\\' && quote != '\'' ? MIN (p + 2, end)
        : *p == '$' && quote == '"' ? shell_expansion_end (p, end, depth + 1)
                                    : p + 1;
  return p && p < end ? p + 1 : NULL;
}

/* Behind what is quoted, escaped or expanded at p; p itself: nothing is. */
static const char *
opaque_end (const char *p, const char *end, int depth)
{
  if (*p == '\\')
    return MIN (p + 2, end);
  if (*p == LS_SHELL_HOLE)
    return MIN (shell_find (p, end, LS_SHELL_HOLE_END) + 1, end);
  if (*p == '<' && shell_placeholder_end (p, end))
    return shell_placeholder_end (p, end);
  if (*p == '\'' || *p == '"' || *p == '`')
    return shell_quote_end (p + 1, end, *p, depth + 1);
  return *p == '$' ? shell_expansion_end (p, end, depth + 1) : p;
}

const char *
shell_group_end (const char *p, const char *end, const char *brackets, int depth)
{
  if (depth > SHELL_MAX_NESTED)
    return NULL;
  for (int nested = 0; p && p < end;) {
    const char *behind = opaque_end (p, end, depth);
    if (behind != p) {
      p = behind;
      continue;
    }
    if (*p == brackets[1] && nested-- == 0)
      return p + 1;
    nested += *p == brackets[0];
    bool is_comment = *p == '#' && *brackets == '(' && g_ascii_isspace (p[-1]);
    p = is_comment ? shell_find (p, end, '\n') : p + 1;
  }
  return NULL;
}

const char *
shell_expansion_end (const char *p, const char *end, int depth)
{
  if (depth > SHELL_MAX_NESTED)
    return NULL;
  if (*p == '`')
    return shell_quote_end (p + 1, end, '`', depth);
  char next = p + 1 < end ? p[1] : '\0';
  if (next == '(' || next == '{')
    return shell_group_end (p + 2, end, next == '(' ? "()" : "{}", depth + 1);
  if (next == '\'')
    return shell_quote_end (p + 2, end, '\'', depth);
  const char *name = shell_name_end (p + 1, end);
  if (name > p + 1)
    return name;
  return next != '\0' && strchr ("0123456789@*#?$!-", next) ? p + 2 : p + 1;
}

const char *
shell_name_end (const char *p, const char *end)
{
  const char *q = p;
  while (q < end && (g_ascii_isalpha (*q) || *q == '_' || (q > p && g_ascii_isdigit (*q))))
    q++;
  return q;
}

const char *
shell_assignment_value (const char *p, const char *end)
{
  const char *q = shell_name_end (p, end);
  if (q > p && q < end && *q == '[')
    q = shell_group_end (q + 1, end, "[]", 0);
  if (!q || q == p)
    return NULL;
  q += q < end && *q == '+';
  return q < end && *q == '=' ? q + 1 : NULL;
}

const char *
shell_word_end (const char *p, const char *end)
{
  const char *value = shell_assignment_value (p, end);
  while (p && p < end && !g_ascii_isspace (*p)) {
    if (p == value && *p == '(')
      return shell_group_end (p + 1, end, "()", 0);
    const char *behind = opaque_end (p, end, 0);
    if (behind == p && strchr (";|&<>()", *p))
      return p;
    p = behind == p ? p + 1 : behind;
  }
  return p;
}

/* --- between words ------------------------------------------------------------------------------ */

/* A line "#SBATCH --nodes=4" is a command whose first word is the line's. */
static void
read_directive (ShellText *s, const char *end)
{
  g_autoptr (GPtrArray) words = g_ptr_array_new_with_free_func (g_free);
  g_autofree char *line = g_strndup (s->p, (gsize) (end - s->p));
  char *comment = strstr (line + 1, " #");
  if (comment)
    *comment = '\0';
  shell_split (line, words);
  if (s->sh->mode != SHELL_RUN || words->len < 2
      || !ls_shell_is_one (words->pdata[0], "#SBATCH #PBS #BSUB #$") || !shell_afford (s->sh, strlen (line)))
    return;
  g_ptr_array_add (words, NULL);
  const LsShellCommand command = { (char *const *) words->pdata, words->len - 1, true };
  s->sh->funcs.command (&command, s->sh->data);
}

void
shell_skip_blanks (ShellText *s)
{
  while (s->p < s->end) {
    if (*s->p == ' ' || *s->p == '\t')
      s->p++;
    else if (shell_is_at (s, "\\\n"))
      s->p += 2;
    else if (*s->p == '#' && (s->p == s->begin || g_ascii_isspace (s->p[-1]) || s->p[-1] == ';')) {
      const char *newline = shell_find (s->p, s->end, '\n');
      if (!s->is_array)
        read_directive (s, newline);
      s->p = newline;
    } else
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
    if (*s->p == '\n')
      shell_skip_newline (s);
    else if (!shell_is_at (s, ";;") && (*s->p == ';' || *s->p == '&'))
      s->p++;
    else
      return;
  }
}

void
shell_give_up (ShellText *s, const char *why)
{
  shell_fail (s->sh, why);
  s->is_bad = true;
  s->p = s->end;
}

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

bool
shell_is_word (ShellText *s, const char *word)
{
  if (!shell_is_at (s, word))
    return false;
  const char *behind = s->p + strlen (word);
  return behind >= s->end || g_ascii_isspace (*behind) || strchr (";&|()<>", *behind) || strpbrk (word, ";)");
}

bool
shell_take (ShellText *s, const char *word)
{
  if (!shell_is_word (s, word))
    return false;
  s->p += strlen (word);
  return true;
}

bool
shell_take_word (ShellText *s, const char *word)
{
  shell_skip_separators (s);
  return shell_take (s, word);
}

/* --- here documents and redirections -------------------------------------------------------------- */

/* The lines up to the delimiter; where those of the command go on. NULL: they are not asked for. */
static char *
take_here (ShellText *s)
{
  bool has_tabs = shell_is_at (s, "<<-");
  s->p += has_tabs ? 3 : 2;
  shell_skip_blanks (s);
  const char *begin = s->p;
  s->p = shell_next_end (s);
  g_autofree char *delimiter = g_strndup (begin, (gsize) (s->p - begin));
  bool is_literal = strpbrk (delimiter, "'\"\\") != NULL;
  g_strstrip (g_strdelimit (delimiter, "'\"\\", ' '));
  const char *from = s->here_to ? s->here_to : MIN (shell_find (s->p, s->end, '\n') + 1, s->end);
  for (const char *line = from; line < s->end && !s->is_bad; line = s->here_to) {
    const char *line_end = shell_find (line, s->end, '\n'), *text = line;
    s->here_to = MIN (line_end + 1, s->end);
    while (has_tabs && text < line_end && *text == '\t')
      text++;
    if ((gsize) (line_end - text) == strlen (delimiter) && g_str_has_prefix (text, delimiter))
      return s->sh->mode == SHELL_SKIPPED ? NULL
          : is_literal                    ? g_strndup (from, (gsize) (line - from))
                                          : shell_expand_text (s->sh, from, line, true);
  }
  shell_give_up (s, "a here document has no end");
  return NULL;
}

void
shell_take_redirection (ShellText *s, ShellStreams *streams)
{
  const char *mark = s->p;
  bool is_word = shell_is_at (s, "<<<"), is_error = mark > s->begin && mark[-1] == '2',
       is_output = shell_is_at (s, ">") && !shell_is_at (s, ">&") && !is_error;
  s->sh->out.is_lost = s->sh->out.is_lost || (s->sh->out.text && shell_is_at (s, ">&") && !is_error);
  if (shell_is_at (s, "<<") && !is_word) {
    char *text = take_here (s);
    if (text) {
      g_free (streams->here);
      streams->here = text;
    }
    return;
  }
  while (s->p < s->end && strchr ("<>&|", *s->p))
    s->p++;
  shell_skip_blanks (s);
  const char *begin = s->p;
  bool is_group = s->p < s->end && *s->p == '(' && !is_word;
  s->p = is_group ? shell_group_end (s->p + 1, s->end, "()", 0) : shell_next_end (s);
  if (!s->p)
    shell_give_up (s, "a bracket is not closed");
  char **text = is_word ? &streams->here : is_output ? &streams->target : NULL;
  if (is_output)
    streams->is_appended = mark + 1 < s->end && mark[1] == '>';
  if (text && begin < s->p && !s->is_bad && !(is_word && s->sh->mode == SHELL_SKIPPED)) {
    char *before = *text;
    *text = shell_expand_text (s->sh, begin, s->p, false);
    g_free (before);
  }
}

bool
shell_is_redirection (ShellText *s)
{
  bool is_input = shell_is_at (s, "<") && !shell_placeholder_end (s->p, s->end);
  return is_input || shell_is_at (s, ">") || shell_is_at (s, "&>");
}
