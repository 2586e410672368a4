/* How much of each link a step uses. Trunks only: an HBM is shared like a link but is none. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/report.h"
#include "cluster/places.h"

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
  g_auto (LsHostNames) names = { 0 };
  double window_s = ls_time_to_s (t->window_end - t->window_start);
  g_array_set_clear_func (links, clear_link);
  for (uint32_t i = 0; i < MIN (c->n_trunks, t->n_resources); i++) {
    if (ls_timeline_bytes (t, i) <= 0)
      continue;
    LsLinkUse use = {
      .name = ls_cluster_resource_name_with (c, i, &names),
      .utilisation = ls_timeline_bytes (t, i) / (ls_cluster_resource_capacity (c, i) * window_s),
      .bytes = ls_timeline_bytes (t, i),
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

/* Links of a group that are used alike. Sums over a group are over these in one order, however links come. */
typedef struct {
  double utilisation, bytes;
  guint n;
} Level;

typedef struct {
  char *name; /* of all of them: see ls_link_merge(); NULL: of none yet */
  GArray *levels;
} Tally;

static void
tally_clear (gpointer tally)
{
  g_free (((Tally *) tally)->name);
  g_array_unref (((Tally *) tally)->levels);
}

static void
add_level (GArray *levels, double utilisation, double bytes, guint n)
{
  for (guint i = levels->len; i-- > 0;) {
    Level *l = &g_array_index (levels, Level, i);
    if (l->utilisation == utilisation && l->bytes == bytes) {
      l->n += n;
      return;
    }
  }
  const Level l = { utilisation, bytes, n };
  g_array_append_val (levels, l);
}

static int
compare_levels (const void *a, const void *b)
{
  const Level *x = a, *y = b;
  if (x->utilisation != y->utilisation)
    return x->utilisation > y->utilisation ? -1 : 1;
  return (x->bytes < y->bytes) - (x->bytes > y->bytes);
}

static void
add_name (Tally *tally, const char *name)
{
  char *merged = tally->name ? ls_link_merge (tally->name, name) : g_strdup (name);
  g_free (tally->name);
  tally->name = merged;
}

/* Takes the name. */
static LsLinkGroup
group_of (Tally *tally)
{
  LsLinkGroup g = { .name = g_steal_pointer (&tally->name) };
  g_array_sort (tally->levels, compare_levels);
  for (guint i = 0; i < tally->levels->len; i++) {
    const Level *l = &g_array_index (tally->levels, Level, i);
    g.n += l->n;
    g.mean_utilisation += l->n * l->utilisation;
    g.bytes += l->n * l->bytes;
    g.max_utilisation = fmax (g.max_utilisation, l->utilisation);
  }
  g.mean_utilisation = fmin (g.mean_utilisation / g.n, g.max_utilisation); /* a sum of equals is rounded */
  return g;
}

typedef struct {
  GArray *tallies;
  GHashTable *by_pattern; /* place + 1 */
} Groups;

static Groups
groups_new (void)
{
  Groups g = { g_array_new (FALSE, TRUE, sizeof (Tally)),
               g_hash_table_new_full (g_str_hash, g_str_equal, g_free, NULL) };
  g_array_set_clear_func (g.tallies, tally_clear);
  return g;
}

static Tally *
tally_of (Groups *g, const char *name, guint *ret_place)
{
  char *pattern = ls_link_pattern (name);
  guint at = GPOINTER_TO_UINT (g_hash_table_lookup (g->by_pattern, pattern));
  if (at > 0)
    g_free (pattern);
  else {
    g_array_set_size (g->tallies, at = g->tallies->len + 1);
    g_hash_table_insert (g->by_pattern, pattern, GUINT_TO_POINTER (at));
    g_array_index (g->tallies, Tally, at - 1).levels = g_array_new (FALSE, FALSE, sizeof (Level));
  }
  *ret_place = at - 1;
  return &g_array_index (g->tallies, Tally, at - 1);
}

/* Frees the tallies. */
static GArray *
groups_take (Groups *g)
{
  GArray *groups = g_array_new (FALSE, TRUE, sizeof (LsLinkGroup));
  for (guint i = 0; i < g->tallies->len; i++) {
    LsLinkGroup group = group_of (&g_array_index (g->tallies, Tally, i));
    g_array_append_val (groups, group);
  }
  g_array_sort (groups, compare_groups);
  g_array_unref (g->tallies);
  g_hash_table_unref (g->by_pattern);
  return groups;
}

static GArray *
group_links (const GArray *links)
{
  Groups groups = groups_new ();
  for (guint i = 0; i < links->len; i++) {
    const LsLinkUse *use = &g_array_index (links, LsLinkUse, i);
    guint place;
    Tally *tally = tally_of (&groups, use->name, &place);
    add_name (tally, use->name);
    add_level (tally->levels, use->utilisation, use->bytes, 1);
  }
  return groups_take (&groups);
}

/* --- by places: links of one number at places of a kind have one pattern, and numbers in their names rise
 * with the place --- */

typedef struct {
  const LsTimeline *t;
  const LsCluster *c;
  LsPlaces at;
  double window_s;
  Groups groups;
  GArray *busiest; /* LsLinkUse: N_BUSIEST at most, in order */
  LsHostNames names;
} Places;

static double
utilisation_of (const Places *p, uint32_t trunk)
{
  return ls_timeline_bytes (p->t, trunk) / (ls_cluster_resource_capacity (p->c, trunk) * p->window_s);
}

/* Links of one number at places of a kind. */
typedef struct {
  guint tally, n; /* of the latest, n that are used so */
  uint32_t first, last;
  double bytes, utilisation;
} Column;

static void
end_row (Places *p, Column *column)
{
  if (column->n > 0)
    add_level (g_array_index (p->groups.tallies, Tally, column->tally).levels, column->utilisation,
               column->bytes, column->n);
  column->n = 0;
}

static void
add_name_of (Places *p, const Column *column, uint32_t trunk)
{
  g_autofree char *name = ls_cluster_resource_name_with (p->c, trunk, &p->names);
  add_name (&g_array_index (p->groups.tallies, Tally, column->tally), name);
}

static void
begin_column (Places *p, Column *column, uint32_t trunk)
{
  g_autofree char *name = ls_cluster_resource_name_with (p->c, trunk, &p->names);
  tally_of (&p->groups, name, &column->tally);
  column->first = trunk;
  add_name_of (p, column, trunk);
}

/* Places that are used alike, and how many. */
typedef struct {
  uint32_t first, last, n;
} Alike;

static void
tally_trunk (Places *p, Column *column, const Alike *alike, uint32_t local)
{
  uint32_t trunk = ls_places_resource (&p->at, alike->first, local);
  double bytes = ls_timeline_bytes (p->t, trunk), own = bytes > 0 ? utilisation_of (p, trunk) : 0;
  if (bytes <= 0)
    return;
  if (column->first == UINT32_MAX)
    begin_column (p, column, trunk);
  if (bytes != column->bytes || own != column->utilisation)
    end_row (p, column);
  column->bytes = bytes;
  column->utilisation = own;
  column->last = MAX (column->last, ls_places_resource (&p->at, alike->last, local));
  column->n += alike->n;
}

/* Alike: in the order of the first of each. Hosts with faults have other rates, and those above are few. */
static GArray *
alike_new (const Places *p, uint32_t from, uint32_t n)
{
  GArray *all = g_array_new (FALSE, FALSE, sizeof (Alike));
  const uint32_t *class_of = ls_timeline_places (p->t);
  g_autofree uint32_t *known = class_of ? g_new0 (uint32_t, ls_places_n (&p->at)) : NULL; /* + 1 */
  for (uint32_t place = from; place < from + n; place++) {
    bool may_be_alike = known && place < p->at.n_hosts && ls_places_is_sound (p->c, place);
    uint32_t *number = may_be_alike ? &known[class_of[place]] : NULL;
    Alike *alike = number && *number > 0 ? &g_array_index (all, Alike, *number - 1) : NULL,
          own = { place, place, 1 };
    if (alike)
      *alike = (Alike) { alike->first, place, alike->n + 1 };
    else
      g_array_append_val (all, own);
    if (number && !alike)
      *number = all->len;
  }
  return all;
}

static void
tally_places (Places *p, uint32_t from, uint32_t n, uint32_t n_trunks)
{
  g_autofree Column *columns = g_new (Column, n_trunks + 1);
  g_autoptr (GArray) all = alike_new (p, from, n_trunks > 0 ? n : 0);
  for (uint32_t i = 0; i < n_trunks; i++)
    columns[i] = (Column) { .first = UINT32_MAX };
  for (guint k = 0; k < all->len; k++)
    for (uint32_t i = 0; i < n_trunks; i++)
      tally_trunk (p, &columns[i], &g_array_index (all, Alike, k), i);
  for (uint32_t i = 0; i < n_trunks; i++) {
    end_row (p, &columns[i]);
    if (columns[i].first != UINT32_MAX && columns[i].last != columns[i].first)
      add_name_of (p, &columns[i], columns[i].last);
  }
}

/* The least use that the N_BUSIEST busiest have, and how many have more. */
static double
find_least (const Places *p, guint *ret_n_above)
{
  g_autoptr (GArray) all = g_array_new (FALSE, FALSE, sizeof (Level));
  for (guint i = 0; i < p->groups.tallies->len; i++) {
    const GArray *levels = g_array_index (p->groups.tallies, Tally, i).levels;
    g_array_append_vals (all, levels->data, levels->len);
  }
  g_array_sort (all, compare_levels);
  guint n = 0, n_above = 0;
  double least = 0;
  for (guint i = 0; i < all->len && (n < N_BUSIEST || least == g_array_index (all, Level, i).utilisation);
       i++) {
    const Level *l = &g_array_index (all, Level, i);
    if (l->utilisation != least)
      n_above = n;
    least = l->utilisation;
    n += l->n;
  }
  *ret_n_above = n_above;
  return least;
}

static int
compare_names (const void *a, const void *b)
{
  return strcmp (((const LsLinkUse *) a)->name, ((const LsLinkUse *) b)->name);
}

/* Keeps the first n by name. */
static void
offer (Places *p, GArray *best, guint n, uint32_t trunk, char *name)
{
  LsLinkUse use
      = { .name = name, .utilisation = utilisation_of (p, trunk), .bytes = ls_timeline_bytes (p->t, trunk) };
  if (best->len == n && compare_names (&use, &g_array_index (best, LsLinkUse, n - 1)) > 0) {
    g_free (name);
    return;
  }
  if (best->len == n) {
    clear_link (&g_array_index (best, LsLinkUse, n - 1));
    g_array_set_size (best, n - 1);
  }
  guint at = 0;
  while (at < best->len && compare_names (&g_array_index (best, LsLinkUse, at), &use) < 0)
    at++;
  g_array_insert_val (best, at, use);
}

/* Whether names that begin so come behind all that are kept. */
static bool
is_behind (const GArray *best, guint n, const char *begin)
{
  return best->len == n && strncmp (begin, g_array_index (best, LsLinkUse, n - 1).name, strlen (begin)) > 0;
}

/* Number `local` of a host, if it is used so much. */
static void
offer_at (Places *p, GArray *best, guint n, uint32_t host, uint32_t local, double use)
{
  uint32_t trunk = ls_places_resource (&p->at, host, local);
  if (ls_timeline_bytes (p->t, trunk) > 0 && utilisation_of (p, trunk) == use)
    offer (p, best, n, trunk, ls_cluster_resource_name_with (p->c, trunk, &p->names));
}

/* The number behind it in the order of decimal digits as text, of those below n; n: none. */
static uint32_t
next_as_text (uint32_t number, uint32_t n)
{
  if (number > 0 && number < n && 10 * (uint64_t) number < n)
    return 10 * number;
  while (number % 10 == 9 || number + 1 >= n) {
    number /= 10;
    if (number == 0)
      return n;
  }
  return number + 1;
}

/* Names that begin with the host, host by host in the order of names. */
static void
offer_hosts (Places *p, GArray *best, guint n, double use)
{
  for (uint32_t host = 0; host < p->at.n_hosts; host = next_as_text (host, p->at.n_hosts)) {
    char begin[32];
    g_snprintf (begin, sizeof begin, "node%u/", host);
    if (is_behind (best, n, begin))
      return;
    for (uint32_t i = 0; i < p->at.trunks_per_host; i++)
      if (ls_cluster_trunk (p->c, ls_places_resource (&p->at, host, i))->from != LS_NODE_LEAF)
        offer_at (p, best, n, host, i, use);
  }
}

/* Names that begin with the leaf: one for the hosts of a group. */
static void
offer_from_leaves (Places *p, GArray *best, guint n, uint32_t local, double use)
{
  for (uint32_t first = 0; first < p->at.n_hosts; first += p->at.hosts_per_group) {
    char begin[32];
    g_snprintf (begin, sizeof begin, "leaf%u>",
                ls_cluster_edge_of_trunk (p->c, ls_places_resource (&p->at, first, local)));
    uint32_t end = MIN (p->at.n_hosts, first + p->at.hosts_per_group);
    for (uint32_t host = first; host < end && !is_behind (best, n, begin); host++)
      offer_at (p, best, n, host, local, use);
  }
}

static void
find_busiest (Places *p)
{
  guint n_above;
  double least = find_least (p, &n_above);
  g_autoptr (GArray) best = g_array_new (FALSE, FALSE, sizeof (LsLinkUse));
  offer_hosts (p, best, N_BUSIEST - n_above, least);
  for (uint32_t i = 0; i < p->at.trunks_per_host; i++)
    if (ls_cluster_trunk (p->c, i)->from == LS_NODE_LEAF)
      offer_from_leaves (p, best, N_BUSIEST - n_above, i, least);
  for (uint32_t t = p->at.first_of_groups; t < p->at.n_trunks; t++)
    if (ls_timeline_bytes (p->t, t) > 0 && utilisation_of (p, t) == least)
      offer (p, best, N_BUSIEST - n_above, t, ls_cluster_resource_name_with (p->c, t, &p->names));
  for (uint32_t t = 0; t < p->at.n_trunks && n_above > 0; t++)
    if (ls_timeline_bytes (p->t, t) > 0 && utilisation_of (p, t) > least) {
      const LsLinkUse use = { ls_cluster_resource_name_with (p->c, t, &p->names), utilisation_of (p, t),
                              ls_timeline_bytes (p->t, t) };
      g_array_append_val (p->busiest, use);
    }
  g_array_append_vals (p->busiest, best->data, best->len);
  g_array_sort (p->busiest, compare_links);
}

/* False: the cluster has no places, or some of it did not run. */
static bool
report_by_places (LsReport *r, const LsTimeline *t, const LsCluster *c)
{
  Places p = { .t = t, .c = c, .window_s = ls_time_to_s (t->window_end - t->window_start) };
  if (!ls_places_init (&p.at, c) || t->n_resources < p.at.n_trunks)
    return false;
  p.groups = groups_new ();
  p.busiest = g_array_new (FALSE, FALSE, sizeof (LsLinkUse));
  tally_places (&p, 0, p.at.n_hosts, p.at.trunks_per_host);
  tally_places (&p, p.at.n_hosts, p.at.n_groups, p.at.trunks_per_group);
  tally_places (&p, p.at.n_hosts + p.at.n_groups, p.at.n_pods, p.at.trunks_per_pod);
  if (p.groups.tallies->len > 0)
    find_busiest (&p);
  GArray *groups = groups_take (&p.groups);
  r->n_link_groups = groups->len;
  r->link_groups = (LsLinkGroup *) g_array_free (groups, FALSE);
  r->n_links = p.busiest->len;
  r->links = (LsLinkUse *) g_array_free (p.busiest, FALSE);
  ls_host_names_clear (&p.names);
  return true;
}

void
ls_link_use_report (LsReport *r, const LsTimeline *t, const LsCluster *c)
{
  if (!report_by_places (r, t, c))
    ls_link_use_report_each (r, t, c);
}

void
ls_link_use_report_each (LsReport *r, const LsTimeline *t, const LsCluster *c)
{
  GArray *links = ls_link_use_new (t, c), *groups = group_links (links);
  r->n_link_groups = groups->len;
  r->link_groups = (LsLinkGroup *) g_array_free (groups, FALSE);
  if (links->len > N_BUSIEST)
    g_array_set_size (links, N_BUSIEST);
  r->n_links = links->len;
  r->links = (LsLinkUse *) g_array_free (links, FALSE);
}
