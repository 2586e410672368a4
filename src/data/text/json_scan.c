#include "data/text/json_scan.h"

#include <glib.h>
#include <string.h>

typedef struct {
  const char *at, *end;
  GString *out;
} Relax;

/* A string with its quotes, as it is. */
static void
copy_string (Relax *r)
{
  const char *start = r->at++;
  while (r->at < r->end && *r->at != '"' && *r->at != '\n')
    r->at += *r->at == '\\' && r->at + 1 < r->end ? 2 : 1;
  r->at = MIN (r->end, r->at + 1);
  g_string_append_len (r->out, start, r->at - start);
}

/* Whether a comment was here: its lines stay. */
static bool
skip_comment (Relax *r)
{
  gsize left = (gsize) (r->end - r->at);
  bool is_block = left > 1 && r->at[0] == '/' && r->at[1] == '*',
       is_line = *r->at == '#' || (left > 1 && r->at[0] == '/' && r->at[1] == '/');
  const char *end = is_block ? g_strstr_len (r->at, (gssize) left, "*/")
      : is_line              ? memchr (r->at, '\n', left)
                             : NULL;
  if (!is_block && !is_line)
    return false;
  end = !end ? r->end : is_block ? end + 2 : end;
  for (; r->at < end; r->at++)
    if (*r->at == '\n')
      g_string_append_c (r->out, '\n');
  return true;
}

/* A comma with only blanks and comments behind it up to the end of its list. */
static void
copy_comma (Relax *r)
{
  gsize where = r->out->len;
  g_string_append_c (r->out, ',');
  r->at++;
  while (r->at < r->end && (g_ascii_isspace (*r->at) || skip_comment (r)))
    if (r->at < r->end && g_ascii_isspace (*r->at))
      g_string_append_c (r->out, *r->at++);
  if (r->at < r->end && (*r->at == ']' || *r->at == '}'))
    r->out->str[where] = ' ';
}

static bool
is_word (char c)
{
  return g_ascii_isalnum (c) || strchr ("_$<>", c);
}

/* true, false and null stay; other words are what a script puts in. */
static void
copy_word (Relax *r)
{
  static const char *const plain[] = { "true", "false", "null", NULL };
  const char *start = r->at;
  bool has_braces = r->at + 1 < r->end && r->at[0] == '$' && r->at[1] == '{';
  while (r->at < r->end && (has_braces ? *r->at != '}' && *r->at != '\n' : is_word (*r->at)))
    r->at++;
  r->at += has_braces && r->at < r->end;
  g_autofree char *word = g_strndup (start, (gsize) (r->at - start));
  if (g_strv_contains (plain, word)) {
    g_string_append (r->out, word);
    return;
  }
  g_strdelimit (word, "\"\\", '_');
  const char *name = word + strspn (word, "${");
  g_string_append_printf (r->out, "\"${%.*s}\"", (int) strcspn (name, "}"), name);
}

static void
relax (Relax *r)
{
  while (r->at < r->end) {
    if (*r->at == '"')
      copy_string (r);
    else if (*r->at == ',')
      copy_comma (r);
    else if (g_ascii_isalpha (*r->at) || (*r->at != '\0' && strchr ("_$<", *r->at)))
      copy_word (r);
    else if (g_ascii_isdigit (*r->at) || *r->at == '-') /* "1e-5" */
      while (r->at < r->end && (g_ascii_isalnum (*r->at) || strchr ("+-.", *r->at)) && *r->at)
        g_string_append_c (r->out, *r->at++);
    else if (!skip_comment (r))
      g_string_append_c (r->out, *r->at++);
  }
}

LsJsonDoc *
relaxed_json_parse (const char *text, gsize n, const char *name, LsDiagList *diags)
{
  Relax r = { text, text + n, g_string_sized_new (n + 64) };
  relax (&r);
  LsJsonDoc *doc = ls_json_doc_parse (r.out->str, r.out->len, name, diags);
  g_string_free (r.out, TRUE);
  return doc;
}

void
ls_json_blank_infinities (char *text)
{
  static const char word[] = "Infinity", blank[] = "null";
  bool is_string = false;
  for (char *p = strstr (text, word) ? text : text + strlen (text); *p; p++) {
    if (is_string && *p == '\\' && p[1])
      p++;
    else if (*p == '"')
      is_string = !is_string;
    else if (!is_string && strncmp (p, word, sizeof word - 1) == 0) {
      char *from = p > text && p[-1] == '-' ? p - 1 : p;
      memset (from, ' ', (gsize) (p - from) + sizeof word - 1);
      memcpy (from, blank, 4);
      p += sizeof word - 2;
    }
  }
}
