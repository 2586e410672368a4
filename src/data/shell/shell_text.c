/* data/shell/shell_text.c — what stands between words, where a word ends; here documents. */
#include "data/shell/shell_parts.h"

#include <glib.h>
#include <string.h>

#include "data/shell/shell.h"

/* --- where a word ends --------------------------------------------------------------------------- */

static const char *group_end (const char *p, const char *end, char open, char close, int depth);
static const char *expansion_end (const char *p, const char *end, int depth);

const char *
shell_hole_end (const char *p, const char *end)
{
  const char *close = memchr (p, LS_SHELL_HOLE_END, (size_t) (end - p));
  return close ? close + 1 : end;
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

static const char *
single_end (const char *p, const char *end)
{
  const char *quote = memchr (p, '\'', (size_t) (end - p));
  return quote ? quote + 1 : NULL;
}

/* Of "..." and `...`. */
static const char *
quote_end (const char *p, const char *end, char quote, int depth)
{
  while (p && p < end) {
    if (*p == quote)
      return p + 1;
    if (*p == '\\')
      p += p + 1 < end ? 2 : 1;
    else if (*p == '$' && quote == '"')
      p = expansion_end (p, end, depth + 1);
    else
      p++;
  }
  return NULL;
}

/* Behind what is quoted, escaped or expanded at p; p itself: nothing is. */
static const char *
opaque_end (const char *p, const char *end, int depth)
{
  if (*p == '\\')
    return p + 1 < end ? p + 2 : p + 1;
  if (*p == LS_SHELL_HOLE)
    return shell_hole_end (p, end);
  if (*p == '<' && shell_placeholder_end (p, end))
    return shell_placeholder_end (p, end);
  if (*p == '\'')
    return single_end (p + 1, end);
  if (*p == '"' || *p == '`')
    return quote_end (p + 1, end, *p, depth + 1);
  return *p == '$' ? expansion_end (p, end, depth + 1) : p;
}

static const char *
line_end (const char *p, const char *end)
{
  const char *newline = memchr (p, '\n', (size_t) (end - p));
  return newline ? newline : end;
}

static const char *
group_end (const char *p, const char *end, char open, char close, int depth)
{
  if (depth > SHELL_MAX_NESTED)
    return NULL;
  for (int nested = 0; p && p < end;) {
    const char *behind = opaque_end (p, end, depth);
    if (behind != p) {
      p = behind;
      continue;
    }
    if (*p == close && nested-- == 0)
      return p + 1;
    nested += *p == open;
    bool is_comment = *p == '#' && open == '(' && g_ascii_isspace (p[-1]);
    p = is_comment ? line_end (p, end) : p + 1;
  }
  return NULL;
}

static const char *
expansion_end (const char *p, const char *end, int depth)
{
  if (depth > SHELL_MAX_NESTED)
    return NULL;
  if (*p == '`')
    return quote_end (p + 1, end, '`', depth);
  char next = p + 1 < end ? p[1] : '\0';
  if (next == '(')
    return group_end (p + 2, end, '(', ')', depth + 1);
  if (next == '{')
    return group_end (p + 2, end, '{', '}', depth + 1);
  if (next == '\'')
    return single_end (p + 2, end);
  const char *name = shell_name_end (p + 1, end);
  if (name > p + 1)
    return name;
  return next != '\0' && strchr ("0123456789@*#?$!-", next) ? p + 2 : p + 1;
}

const char *
shell_group_end (const char *p, const char *end, char open, char close)
{
  return group_end (p, end, open, close, 0);
}

const char *
shell_quote_end (const char *p, const char *end, char quote)
{
  return quote == '\'' ? single_end (p, end) : quote_end (p, end, quote, 0);
}

const char *
shell_expansion_end (const char *p, const char *end)
{
  return expansion_end (p, end, 0);
}

const char *
shell_name_end (const char *p, const char *end)
{
  if (p >= end || !(g_ascii_isalpha (*p) || *p == '_'))
    return p;
  while (p < end && (g_ascii_isalnum (*p) || *p == '_'))
    p++;
  return p;
}

const char *
shell_assignment_value (const char *p, const char *end)
{
  const char *q = shell_name_end (p, end);
  if (q == p)
    return NULL;
  if (q < end && *q == '[') {
    q = shell_group_end (q + 1, end, '[', ']');
    if (!q)
      return NULL;
  }
  if (q < end && *q == '+')
    q++;
  return q < end && *q == '=' ? q + 1 : NULL;
}

const char *
shell_word_end (const char *p, const char *end)
{
  const char *value = shell_assignment_value (p, end);
  while (p && p < end && !g_ascii_isspace (*p)) {
    if (p == value && *p == '(')
      return shell_group_end (p + 1, end, '(', ')');
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
