/* How much of each link a step uses. Trunks only: an HBM is shared like a link but is
 * none. */
#include <math.h>
#include <string.h>

#include "analysis/report.h"

#define N_BUSIEST 32

static int
compare_links (const void *a, const void *b)
{
  const LsLinkUse *x = a, *y = b;
  if (x->utilisation != y->utilisation)
    return x->utilisation > y->utilisation ? -1 : 1;
  return strcmp (x->name, y->name);
}

static void
clear_link (gpointer link)
{
  g_free (((LsLinkUse *) link)->name);
}

GArray *
ls_link_use_new (const LsTimeline *t, const LsCluster *c)
{
  GArray *links = g_array_new (FALSE, FALSE, sizeof (LsLinkUse));
  double window_s = ls_time_to_s (t->window_end - t->window_start);
  g_array_set_clear_func (links, clear_link);
  for (uint32_t i = 0; i < MIN (c->trunks->len, t->n_resources); i++) {
    if (t->resource_bytes[i] <= 0)
      continue;
    LsLinkUse use = {
      .name = ls_cluster_resource_name (c, i),
      .utilisation = t->resource_bytes[i] / (ls_cluster_resource_capacity (c, i) * window_s),
      .bytes = t->resource_bytes[i],
    };
    g_array_append_val (links, use);
  }
  g_array_sort (links, compare_links);
  return links;
}

/* --- groups --- */

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
add_to_group (LsLinkGroup *group, const LsLinkUse *use)
{
  char *name = group->name ? ls_link_merge (group->name, use->name) : g_strdup (use->name);
  g_free (group->name);
  group->name = name;
  group->n++;
  group->mean_utilisation += use->utilisation; /* a sum until all are there */
  group->max_utilisation = fmax (group->max_utilisation, use->utilisation);
  group->bytes += use->bytes;
}

static GArray *
group_links (const GArray *links)
{
  GArray *groups = g_array_new (FALSE, TRUE, sizeof (LsLinkGroup));
  g_autoptr (GHashTable) index
      = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, NULL); /* pattern > place + 1 */
  for (guint i = 0; i < links->len; i++) {
    const LsLinkUse *use = &g_array_index (links, LsLinkUse, i);
    char *pattern = ls_link_pattern (use->name);
    guint at = GPOINTER_TO_UINT (g_hash_table_lookup (index, pattern));
    if (at == 0) {
      at = groups->len + 1;
      g_array_set_size (groups, at);
      g_hash_table_insert (index, pattern, GUINT_TO_POINTER (at));
    } else {
      g_free (pattern);
    }
    add_to_group (&g_array_index (groups, LsLinkGroup, at - 1), use);
  }
  for (guint i = 0; i < groups->len; i++) {
    LsLinkGroup *g = &g_array_index (groups, LsLinkGroup, i);
    g->mean_utilisation
        = fmin (g->mean_utilisation / g->n, g->max_utilisation); /* a sum of equals is rounded */
  }
  g_array_sort (groups, compare_groups);
  return groups;
}

void
ls_link_use_report (LsReport *r, const LsTimeline *t, const LsCluster *c)
{
  GArray *links = ls_link_use_new (t, c), *groups = group_links (links);
  r->n_link_groups = groups->len;
  r->link_groups = (LsLinkGroup *) g_array_free (groups, FALSE);
  if (links->len > N_BUSIEST)
    g_array_set_size (links, N_BUSIEST);
  r->n_links = links->len;
  r->links = (LsLinkUse *) g_array_free (links, FALSE);
}
