#include "analysis/link_groups.h"

#include <math.h>
#include <string.h>

int
ls_link_compare_uses (const void *a, const void *b)
{
  const LsLinkUse *x = a, *y = b;
  if (x->utilisation != y->utilisation)
    return x->utilisation > y->utilisation ? -1 : 1;
  return strcmp (x->name, y->name);
}

void
ls_link_clear_use (gpointer link)
{
  g_free (((LsLinkUse *) link)->name);
}

char *
ls_link_pattern (const char *name)
{
  GString *out = g_string_new (NULL);
  for (const char *c = name; *c; c++)
    if (!g_ascii_isdigit (*c))
      g_string_append_c (out, *c);
    else if (c == name || !g_ascii_isdigit (c[-1]))
      g_string_append_c (out, '*');
  return g_string_free (out, FALSE);
}

char *
ls_link_merge (const char *own, const char *other)
{
  GString *out = g_string_new (NULL);
  while (*own) {
    if (!g_ascii_isdigit (*own) && *own != '*') {
      g_string_append_c (out, *own++);
      other++;
      continue;
    }
    size_t n = *own == '*' ? 1 : strspn (own, "0123456789"), m = strspn (other, "0123456789");
    if (n == m && memcmp (own, other, n) == 0)
      g_string_append_len (out, own, (gssize) n);
    else
      g_string_append_c (out, '*');
    own += n;
    other += m;
  }
  return g_string_free (out, FALSE);
}

static int
compare_groups (const void *a, const void *b)
{
  const LsLinkGroup *x = a, *y = b;
  if (x->max_utilisation != y->max_utilisation)
    return x->max_utilisation > y->max_utilisation ? -1 : 1;
  return strcmp (x->name, y->name);
}

static void
tally_clear (gpointer tally)
{
  g_free (((LsLinkTally *) tally)->name);
  g_array_unref (((LsLinkTally *) tally)->levels);
}

void
ls_link_add_level (GArray *levels, double utilisation, double bytes, guint n)
{
  for (guint i = levels->len; i-- > 0;) {
    LsLinkLevel *l = &g_array_index (levels, LsLinkLevel, i);
    if (l->utilisation == utilisation && l->bytes == bytes) {
      l->n += n;
      return;
    }
  }
  const LsLinkLevel l = { utilisation, bytes, n };
  g_array_append_val (levels, l);
}

int
ls_link_compare_levels (const void *a, const void *b)
{
  const LsLinkLevel *x = a, *y = b;
  if (x->utilisation != y->utilisation)
    return x->utilisation > y->utilisation ? -1 : 1;
  return (x->bytes < y->bytes) - (x->bytes > y->bytes);
}

void
ls_link_add_name (LsLinkTally *tally, const char *name)
{
  char *merged = tally->name ? ls_link_merge (tally->name, name) : g_strdup (name);
  g_free (tally->name);
  tally->name = merged;
}

/* Takes the name. */
static LsLinkGroup
group_of (LsLinkTally *tally)
{
  LsLinkGroup g = { .name = g_steal_pointer (&tally->name) };
  g_array_sort (tally->levels, ls_link_compare_levels);
  for (guint i = 0; i < tally->levels->len; i++) {
    const LsLinkLevel *l = &g_array_index (tally->levels, LsLinkLevel, i);
    g.n += l->n;
    g.mean_utilisation += l->n * l->utilisation;
    g.bytes += l->n * l->bytes;
    g.max_utilisation = fmax (g.max_utilisation, l->utilisation);
  }
  g.mean_utilisation = fmin (g.mean_utilisation / g.n, g.max_utilisation); /* a sum of equals is rounded */
  return g;
}

LsLinkGroups
ls_link_groups_new (void)
{
  LsLinkGroups g = { g_array_new (FALSE, TRUE, sizeof (LsLinkTally)),
                     g_hash_table_new_full (g_str_hash, g_str_equal, g_free, NULL) };
  g_array_set_clear_func (g.tallies, tally_clear);
  return g;
}

LsLinkTally *
ls_link_tally_of (LsLinkGroups *g, const char *name, guint *ret_place)
{
  char *pattern = ls_link_pattern (name);
  guint at = GPOINTER_TO_UINT (g_hash_table_lookup (g->by_pattern, pattern));
  if (at > 0)
    g_free (pattern);
  else {
    g_array_set_size (g->tallies, at = g->tallies->len + 1);
    g_hash_table_insert (g->by_pattern, pattern, GUINT_TO_POINTER (at));
    g_array_index (g->tallies, LsLinkTally, at - 1).levels = g_array_new (FALSE, FALSE, sizeof (LsLinkLevel));
  }
  *ret_place = at - 1;
  return &g_array_index (g->tallies, LsLinkTally, at - 1);
}

/* Frees the tallies. */
GArray *
ls_link_groups_take (LsLinkGroups *g)
{
  GArray *groups = g_array_new (FALSE, TRUE, sizeof (LsLinkGroup));
  for (guint i = 0; i < g->tallies->len; i++) {
    LsLinkGroup group = group_of (&g_array_index (g->tallies, LsLinkTally, i));
    g_array_append_val (groups, group);
  }
  g_array_sort (groups, compare_groups);
  g_array_unref (g->tallies);
  g_hash_table_unref (g->by_pattern);
  return groups;
}
