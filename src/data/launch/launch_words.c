#include "data/launch/launch_words.h"

#include <string.h>

static void
option_free (gpointer option)
{
  LaunchOption *o = option;
  g_free (o->name);
  g_ptr_array_unref (o->values);
  g_free (o);
}

LaunchWords *
launch_words_new (void)
{
  LaunchWords *w = g_new (LaunchWords, 1);
  w->options = g_ptr_array_new_with_free_func (option_free);
  w->by_name = g_hash_table_new (g_str_hash, g_str_equal);
  w->off = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, NULL);
  w->others = g_ptr_array_new_with_free_func (g_free);
  return w;
}

void
launch_words_free (LaunchWords *w)
{
  if (!w)
    return;
  g_hash_table_unref (w->by_name);
  g_hash_table_unref (w->off);
  g_ptr_array_unref (w->options);
  g_ptr_array_unref (w->others);
  g_free (w);
}

static LaunchOption *
add_option (LaunchWords *w, const char *name, gsize n)
{
  LaunchOption *o = g_new0 (LaunchOption, 1);
  o->name = g_strdelimit (g_strndup (name, n), "_", '-');
  o->values = g_ptr_array_new_with_free_func (g_free);
  g_ptr_array_add (w->options, o);
  g_hash_table_replace (w->by_name, o->name, o);
  return o;
}

static bool
is_option (const char *word)
{
  return word[0] == '-' && (g_ascii_isalpha (word[1]) || (word[1] == '-' && g_ascii_isalpha (word[2])));
}

/* Without the quotes around all of it. */
static char *
bare (const char *word)
{
  gsize n = strlen (word);
  bool is_quoted = n >= 2 && (word[0] == '\'' || word[0] == '"') && word[n - 1] == word[0];
  return is_quoted ? g_strndup (word + 1, n - 2) : g_strdup (word);
}

void
launch_words_add (LaunchWords *w, char *const *words, guint n)
{
  LaunchOption *last = NULL;
  for (guint i = 0; i < n; i++) {
    const char *word = words[i], *equals = strchr (word, '=');
    if (!is_option (word)) {
      g_ptr_array_add (last ? last->values : w->others, bare (word));
      continue;
    }
    word += word[1] == '-' ? 2 : 1;
    last = add_option (w, word, equals ? (gsize) (equals - word) : strlen (word));
    if (equals)
      g_ptr_array_add (last->values, bare (equals + 1));
  }
}

void
launch_words_add_value (LaunchWords *w, const char *name, const char *value)
{
  static const char *const absent[] = { "None", "False", "[]", "false", "null", "{}", "", NULL };
  if (value && g_strv_contains (absent, value)) {
    g_hash_table_add (w->off, g_strdelimit (g_strdup (name), "_", '-'));
    return;
  }
  LaunchOption *o = add_option (w, name, strlen (name));
  bool is_flag = !value || strcmp (value, "True") == 0 || strcmp (value, "true") == 0;
  if (!is_flag)
    g_ptr_array_add (o->values, bare (value));
}

LaunchOption *
launch_words_find (const LaunchWords *w, const char *name)
{
  return g_hash_table_lookup (w->by_name, name);
}
