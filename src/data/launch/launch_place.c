#include "data/launch/launch_changes.h"

#include <stdbool.h>
#include <string.h>

#include "base/diag.h"
#include "data/text/read_file.h"

#define MAX_BYTES ((size_t) 4 << 20)

/* The lines that may be meant. */
typedef struct {
  const char *option, *value;
  const char *variable; /* NULL: none is looked for */
  guint n;              /* lines that fit           */
  const char *file;
  unsigned line;
  char *through; /* the variable that stands for the value in the line, owned; NULL: none */
} Place;

static bool
is_name_char (char c)
{
  return g_ascii_isalnum (c) || c == '_' || c == '-';
}

/* Behind the word in a line; NULL: it is not there as a whole. '_' and '-' are the same. */
static const char *
behind (const char *line, const char *word)
{
  for (const char *p = line; *p; p++) {
    gsize n = 0;
    while (word[n] && (p[n] == word[n] || (p[n] && strchr ("-_", p[n]) && strchr ("-_", word[n]))))
      n++;
    const char *front = p;
    while (front > line && front[-1] == '-')
      front--;
    if (!word[n] && !is_name_char (p[n]) && (front == line || !is_name_char (front[-1])))
      return p + n;
  }
  return NULL;
}

/* Whether a value begins there, but for what stands between it and its name. */
static bool
begins_value (const char *p, const char *value)
{
  p += strspn (p, " \t=:\"'.");
  gsize n = strlen (value);
  return strncmp (p, value, n) == 0 && !is_name_char (p[n]);
}

/* "$TP", "${TP}", "${TP:-8}": TP, newly allocated. */
static char *
variable_at (const char *p)
{
  p += strspn (p, " \t=\"'");
  if (*p != '$')
    return NULL;
  p += p[1] == '{' ? 2 : 1;
  const char *end = p;
  while (g_ascii_isalnum (*end) || *end == '_')
    end++;
  return end > p ? g_strndup (p, (gsize) (end - p)) : NULL;
}

/* "TP=8", "export TP=${TP:-8}" */
static bool
sets_variable (const char *line, const char *name, const char *value)
{
  const char *p = line + strspn (line, " \t");
  if (g_str_has_prefix (p, "export "))
    p += strlen ("export ");
  gsize n = strlen (name);
  if (strncmp (p, name, n) != 0 || p[n] != '=')
    return false;
  p += n + 1;
  p += strspn (p, "\"'");
  const char *fallback = *p == '$' ? strstr (p, ":-") : NULL;
  return begins_value (fallback ? fallback + 2 : p, value);
}

static void
take (Place *x, const char *file, unsigned line)
{
  x->n++;
  x->file = file;
  x->line = line;
}

static void
look_at (Place *x, const char *line, const char *file, unsigned number)
{
  if (*(line + strspn (line, " \t")) == '#')
    return;
  if (x->variable) {
    if (sets_variable (line, x->variable, x->value))
      take (x, file, number);
    return;
  }
  const char *p = behind (line, x->option);
  if (!p)
    return;
  g_autofree char *variable = variable_at (p);
  if (!*x->value || begins_value (p, x->value) || variable) {
    take (x, file, number);
    g_free (x->through);
    x->through = g_steal_pointer (&variable);
  }
}

static void
look (Place *x, const GPtrArray *files)
{
  for (guint i = 0; i < files->len; i++) {
    g_autoptr (LsDiagList) diags = ls_diag_list_new ();
    size_t n;
    g_autofree char *text = ls_read_file (files->pdata[i], MAX_BYTES, &n, diags);
    g_auto (GStrv) lines = text ? g_strsplit (text, "\n", -1) : NULL;
    for (unsigned k = 0; lines && lines[k]; k++)
      look_at (x, lines[k], files->pdata[i], k + 1);
  }
}

void
launch_place_find (const GPtrArray *files, const char *option, const char *value, char **ret_file,
                   unsigned *ret_line, char **ret_through)
{
  const char *dot = strrchr (option, '.');
  Place x = { .option = dot ? dot + 1 : option + strspn (option, "-"), .value = value };
  look (&x, files);
  *ret_file = *ret_through = NULL;
  if (x.n == 1 && x.through) {
    Place y = { .option = x.option, .value = value, .variable = x.through };
    look (&y, files);
    bool is_one = y.n == 1;
    *ret_file = g_strdup (is_one ? y.file : x.file);
    *ret_line = is_one ? y.line : x.line;
    *ret_through = is_one ? g_steal_pointer (&x.through) : NULL;
  } else if (x.n == 1) {
    *ret_file = g_strdup (x.file);
    *ret_line = x.line;
  }
  g_free (x.through);
}
