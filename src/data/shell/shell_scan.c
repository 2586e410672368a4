#include "data/shell/shell_parts.h"

#include <glib.h>
#include <string.h>

#include "data/shell/shell.h"

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
