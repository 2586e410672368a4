/* data/python/python_tokens.c — the words and marks of a file of Python, one by one. */
#include <string.h>

#include "data/python/python_parts.h"

gsize
python_text_prefix (const char *at)
{
  gsize n = strspn (at, "rRbBfFuU");
  return n <= 2 && (at[n] == '"' || at[n] == '\'') ? n : 0;
}

const PythonToken *
python_token (const PythonPlace *x)
{
  return &g_array_index (x->python->tokens, PythonToken, x->at);
}

bool
python_is (const PythonToken *t, const char *text)
{
  return (t->kind == PYTHON_MARK || t->kind == PYTHON_NAME) && strlen (text) == t->n
      && memcmp (t->at, text, t->n) == 0;
}

bool
python_take (PythonPlace *x, const char *text)
{
  bool is_there = python_is (python_token (x), text);
  x->at += is_there;
  return is_there;
}

char *
python_shown (const char *at, gsize n)
{
  char *shown = g_strndup (at, n);
  for (char *c = shown; *c; c++)
    *c = g_ascii_iscntrl (*c) || (*c & 0x80) ? ' ' : *c;
  return shown;
}

void
python_pass_to (PythonPlace *x, const char *end)
{
  guint depth = 0;
  for (; python_token (x)->kind != PYTHON_END && (depth > 0 || !python_is (python_token (x), end)); x->at++) {
    depth += python_is (python_token (x), "(") || python_is (python_token (x), "[")
        || python_is (python_token (x), "{");
    depth -= depth > 0
        && (python_is (python_token (x), ")") || python_is (python_token (x), "]")
            || python_is (python_token (x), "}"));
  }
}

bool
python_has_prefix (const PythonToken *t, char letter)
{
  gsize n = python_text_prefix (t->at);
  return memchr (t->at, letter, n) || memchr (t->at, g_ascii_toupper (letter), n);
}

void
python_append_text (GString *out, const PythonToken *t)
{
  const char *p = t->at + python_text_prefix (t->at), *end = t->at + t->n;
  gsize quotes = end - p >= 6 && p[1] == *p && p[2] == *p ? 3 : 1;
  g_autofree char *inside = g_strndup (p + quotes, (gsize) (end - p) - 2 * quotes),
                  *plain = python_has_prefix (t, 'r') ? NULL : g_strcompress (inside);
  g_string_append (out, plain ? plain : inside);
}
