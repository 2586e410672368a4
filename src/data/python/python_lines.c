/* data/python/python_lines.c — lines of Python, and the blocks that stand further in behind one. */
#include "data/python/python_parts.h"

const PythonLine *
python_line (const LsPython *p, guint i)
{
  return &g_array_index (p->lines, PythonLine, i);
}

bool
python_starts (const LsPython *p, const PythonLine *line, const char *const *words)
{
  const PythonToken *t = &g_array_index (p->tokens, PythonToken, line->first);
  g_autofree char *word = g_strndup (t->at, t->n);
  return t->kind == PYTHON_NAME && g_strv_contains (words, word);
}

static const char *const blocks[]
    = { "if", "elif", "else", "for", "while", "with", "try", "except", "finally", "match", "del", NULL };

bool
python_is_block (const LsPython *p, const PythonLine *line)
{
  return python_starts (p, line, blocks);
}

guint
python_block_end (const LsPython *p, guint i)
{
  const PythonLine *first = python_line (p, i);
  for (i++; i < p->lines->len && python_line (p, i)->module == first->module
       && python_line (p, i)->indent > first->indent;)
    i++;
  return i;
}

bool
python_goes_on (const LsPython *p, guint i, const PythonLine *first, const char *const *words)
{
  const PythonLine *line = i < p->lines->len ? python_line (p, i) : NULL;
  return line && line->indent == first->indent && line->module == first->module
      && python_starts (p, line, words);
}

bool
python_block_has (const LsPython *p, guint i, const char *const *words)
{
  for (guint end = python_block_end (p, i); i < end; i++)
    if (python_starts (p, python_line (p, i), words))
      return true;
  return false;
}
