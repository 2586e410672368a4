#include "analysis/link_groups.h"

#include <math.h>
#include <string.h>

#include "cluster/places.h"

/* LsLinkUse; then by name */
static int
ls_link_compare_uses (const void *a, const void *b)
{
  const LsLinkUse *x = a, *y = b;
  if (x->utilisation != y->utilisation)
    return x->utilisation > y->utilisation ? -1 : 1;
  return strcmp (x->name, y->name);
}

/* LsLinkUse */
static void
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

static void
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

/* Orders: the busiest first. */
static int
ls_link_compare_levels (const void *a, const void *b)
{
  const LsLinkLevel *x = a, *y = b;
  if (x->utilisation != y->utilisation)
    return x->utilisation > y->utilisation ? -1 : 1;
  return (x->bytes < y->bytes) - (x->bytes > y->bytes);
}

static void
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

static LsLinkGroups
ls_link_groups_new (void)
{
  LsLinkGroups g = { g_array_new (FALSE, TRUE, sizeof (LsLinkTally)),
                     g_hash_table_new_full (g_str_hash, g_str_equal, g_free, NULL) };
  g_array_set_clear_func (g.tallies, tally_clear);
  return g;
}

/* Of links with a name of this pattern; *ret_place: which one it is. Valid up to the next call. */
static LsLinkTally *
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
/* LsLinkGroup, the busiest first, to be unref'ed. Frees the tallies. */
static GArray *
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

/* ---- link places ---- */

/* How much of each link a step uses, by where links lie.
 *
 * Links of one number at places of a kind (cluster/places.h) have one pattern, and numbers in their names
 * rise with the place. Places of one class (exec/shortcuts/fold.h) are used alike: the first of them is
 * looked at. So what this takes grows with classes; names that are sought in their order are found without
 * the others. */

/* Places that are used alike: the first, the last, and how many. */
typedef struct {
  uint32_t first, last, n;
} Alike;

/* Places of a kind: hosts, groups or pods. */
typedef struct {
  uint32_t first, n, n_trunks; /* n_trunks: of each */
  GArray *alike;               /* Alike, in the order of the first of each */
} Tier;

typedef struct {
  const LsTimeline *t;
  const LsCluster *c;
  LsPlaces at;
  Tier tiers[3];
  double window_s;
  bool has_faults;
  LsLinkGroups groups;
  GArray *busiest; /* LsLinkUse: LS_N_BUSIEST at most, in order */
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
    ls_link_add_level (g_array_index (p->groups.tallies, LsLinkTally, column->tally).levels,
                       column->utilisation, column->bytes, column->n);
  column->n = 0;
}

static void
add_name_of (Places *p, const Column *column, uint32_t trunk)
{
  g_autofree char *name = ls_cluster_resource_name_with (p->c, trunk, &p->names);
  ls_link_add_name (&g_array_index (p->groups.tallies, LsLinkTally, column->tally), name);
}

static void
begin_column (Places *p, Column *column, uint32_t trunk)
{
  g_autofree char *name = ls_cluster_resource_name_with (p->c, trunk, &p->names);
  ls_link_tally_of (&p->groups, name, &column->tally);
  column->first = trunk;
  add_name_of (p, column, trunk);
}

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

/* Hosts with faults have other rates. */
static bool
may_be_alike (const Places *p, uint32_t place)
{
  return !p->has_faults || place >= p->at.n_hosts || ls_places_is_sound (p->c, place);
}

/* Those of a tier from one place on, up to where another class begins or hosts have faults. */
static uint32_t
end_of_run (const Places *p, const uint32_t *class_of, uint32_t place, uint32_t end)
{
  uint32_t next = place + 1;
  while (class_of && next < end && class_of[next] == class_of[place] && may_be_alike (p, next))
    next++;
  return next;
}

/* known: by class, zeros before and after: which one of them stands for it, + 1; NULL: there are none. */
static void
find_alike (Places *p, Tier *tier, uint32_t *known)
{
  const uint32_t *class_of = ls_timeline_places (p->t);
  uint32_t end = tier->n_trunks > 0 ? tier->first + tier->n : tier->first;
  tier->alike = g_array_new (FALSE, FALSE, sizeof (Alike));
  for (uint32_t place = tier->first, next; place < end; place = next) {
    bool may_be = may_be_alike (p, place);
    uint32_t *number = known && may_be ? &known[class_of[place]] : NULL;
    next = may_be ? end_of_run (p, class_of, place, end) : place + 1;
    if (number && *number > 0) {
      Alike *alike = &((Alike *) tier->alike->data)[*number - 1];
      alike->last = next - 1;
      alike->n += next - place;
      continue;
    }
    const Alike own = { place, next - 1, next - place };
    g_array_append_val (tier->alike, own);
    if (number)
      *number = tier->alike->len;
  }
  for (guint i = 0; i < tier->alike->len && known; i++)
    known[class_of[g_array_index (tier->alike, Alike, i).first]] = 0;
}

static void
tally_tier (Places *p, const Tier *tier)
{
  g_autofree Column *columns = g_new (Column, tier->n_trunks + 1);
  for (uint32_t i = 0; i < tier->n_trunks; i++)
    columns[i] = (Column) { .first = UINT32_MAX };
  for (guint k = 0; k < tier->alike->len; k++)
    for (uint32_t i = 0; i < tier->n_trunks; i++)
      tally_trunk (p, &columns[i], &g_array_index (tier->alike, Alike, k), i);
  for (uint32_t i = 0; i < tier->n_trunks; i++) {
    end_row (p, &columns[i]);
    if (columns[i].first != UINT32_MAX && columns[i].last != columns[i].first)
      add_name_of (p, &columns[i], columns[i].last);
  }
}

/* The least use that the LS_N_BUSIEST busiest have, and how many have more. */
static double
find_least (const Places *p, guint *ret_n_above)
{
  g_autoptr (GArray) all = g_array_new (FALSE, FALSE, sizeof (LsLinkLevel));
  for (guint i = 0; i < p->groups.tallies->len; i++) {
    const GArray *levels = g_array_index (p->groups.tallies, LsLinkTally, i).levels;
    g_array_append_vals (all, levels->data, levels->len);
  }
  g_array_sort (all, ls_link_compare_levels);
  guint n = 0, n_above = 0;
  double least = 0;
  for (guint i = 0;
       i < all->len && (n < LS_N_BUSIEST || least == g_array_index (all, LsLinkLevel, i).utilisation); i++) {
    const LsLinkLevel *l = &g_array_index (all, LsLinkLevel, i);
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
    ls_link_clear_use (&g_array_index (best, LsLinkUse, n - 1));
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

/* Links to a host's NICs from the leaf of this number in its group: names begin with the leaf. */
static void
offer_from_leaf (Places *p, GArray *best, guint n, uint32_t leaf, double use)
{
  uint32_t per_group = ls_cluster_n_edges (p->c) / p->at.n_groups,
           first = leaf / per_group * p->at.hosts_per_group,
           end = MIN (p->at.n_hosts, first + p->at.hosts_per_group);
  for (uint32_t i = 0; i < p->at.trunks_per_host; i++) {
    uint32_t trunk = ls_places_resource (&p->at, first, i);
    bool is_of_leaf = ls_cluster_trunk (p->c, trunk)->from == LS_NODE_LEAF
        && ls_cluster_edge_of_trunk (p->c, trunk) == leaf;
    for (uint32_t host = first; host < end && is_of_leaf; host++)
      offer_at (p, best, n, host, i, use);
  }
}

/* Leaf by leaf in the order of names. */
static void
offer_from_leaves (Places *p, GArray *best, guint n, double use)
{
  uint32_t n_leaves = ls_cluster_n_edges (p->c);
  for (uint32_t leaf = 0; leaf < n_leaves; leaf = next_as_text (leaf, n_leaves)) {
    char begin[32];
    g_snprintf (begin, sizeof begin, "leaf%u>", leaf);
    if (is_behind (best, n, begin))
      return;
    offer_from_leaf (p, best, n, leaf, use);
  }
}

static void
keep (Places *p, uint32_t trunk)
{
  const LsLinkUse use = { ls_cluster_resource_name_with (p->c, trunk, &p->names), utilisation_of (p, trunk),
                          ls_timeline_bytes (p->t, trunk) };
  g_array_append_val (p->busiest, use);
}

/* Links of one number at places that are alike: those that are used more are kept; so much, offered. */
static void
take (Places *p, const Alike *alike, uint32_t local, GArray *best, guint n, double least)
{
  const uint32_t *class_of = ls_timeline_places (p->t);
  uint32_t first = ls_places_resource (&p->at, alike->first, local);
  double use = ls_timeline_bytes (p->t, first) > 0 ? utilisation_of (p, first) : 0;
  bool is_offered = use == least && alike->first >= p->at.n_hosts;
  if (use == 0 || (use <= least && !is_offered))
    return;
  for (uint32_t place = alike->first; place <= alike->last; place++) {
    uint32_t trunk = ls_places_resource (&p->at, place, local);
    if (alike->n > 1 && (class_of[place] != class_of[alike->first] || !may_be_alike (p, place)))
      continue;
    if (is_offered)
      offer (p, best, n, trunk, ls_cluster_resource_name_with (p->c, trunk, &p->names));
    else
      keep (p, trunk);
  }
}

static void
find_busiest (Places *p)
{
  guint n_above;
  double least = find_least (p, &n_above);
  g_autoptr (GArray) best = g_array_new (FALSE, FALSE, sizeof (LsLinkUse));
  offer_hosts (p, best, LS_N_BUSIEST - n_above, least);
  offer_from_leaves (p, best, LS_N_BUSIEST - n_above, least);
  for (guint k = 0; k < G_N_ELEMENTS (p->tiers); k++)
    for (guint i = 0; i < p->tiers[k].alike->len; i++)
      for (uint32_t local = 0; local < p->tiers[k].n_trunks; local++)
        take (p, &g_array_index (p->tiers[k].alike, Alike, i), local, best, LS_N_BUSIEST - n_above, least);
  g_array_append_vals (p->busiest, best->data, best->len);
  g_array_sort (p->busiest, ls_link_compare_uses);
}

static void
begin (Places *p)
{
  p->groups = ls_link_groups_new ();
  p->busiest = g_array_new (FALSE, FALSE, sizeof (LsLinkUse));
  p->tiers[0] = (Tier) { 0, p->at.n_hosts, p->at.trunks_per_host, NULL };
  p->tiers[1] = (Tier) { p->at.n_hosts, p->at.n_groups, p->at.trunks_per_group, NULL };
  p->tiers[2] = (Tier) { p->at.n_hosts + p->at.n_groups, p->at.n_pods, p->at.trunks_per_pod, NULL };
  g_autofree uint32_t *known = ls_timeline_places (p->t) ? g_new0 (uint32_t, ls_places_n (&p->at)) : NULL;
  for (guint k = 0; k < G_N_ELEMENTS (p->tiers); k++)
    find_alike (p, &p->tiers[k], known);
}

/* The report by places; false: the cluster has none, or some of it did not run. */
static bool
ls_link_use_by_places (LsReport *r, const LsTimeline *t, const LsCluster *c)
{
  Places p = { .t = t,
               .c = c,
               .window_s = ls_time_to_s (t->window_end - t->window_start),
               .has_faults = ls_cluster_has_faults (&c->spec) };
  if (!ls_places_init (&p.at, c) || t->n_resources < p.at.n_trunks)
    return false;
  begin (&p);
  for (guint k = 0; k < G_N_ELEMENTS (p.tiers); k++)
    tally_tier (&p, &p.tiers[k]);
  if (p.groups.tallies->len > 0)
    find_busiest (&p);
  for (guint k = 0; k < G_N_ELEMENTS (p.tiers); k++)
    g_array_unref (p.tiers[k].alike);
  GArray *groups = ls_link_groups_take (&p.groups);
  r->n_link_groups = groups->len;
  r->link_groups = (LsLinkGroup *) g_array_free (groups, FALSE);
  r->n_links = p.busiest->len;
  r->links = (LsLinkUse *) g_array_free (p.busiest, FALSE);
  ls_host_names_clear (&p.names);
  return true;
}

/* ---- link use ---- */

/* How much of each link a step uses. Trunks only: an HBM is shared like a link but is none. */

/* All links that carry something, most used first; how it fills links and link_groups. */
/* LsLinkUse, to be unref'ed */
static GArray *
ls_link_use_new (const LsTimeline *t, const LsCluster *c)
{
  GArray *links = g_array_new (FALSE, FALSE, sizeof (LsLinkUse));
  g_auto (LsHostNames) names = { 0 };
  double window_s = ls_time_to_s (t->window_end - t->window_start);
  g_array_set_clear_func (links, ls_link_clear_use);
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
  g_array_sort (links, ls_link_compare_uses);
  return links;
}

static GArray *
group_links (const GArray *links)
{
  LsLinkGroups groups = ls_link_groups_new ();
  for (guint i = 0; i < links->len; i++) {
    const LsLinkUse *use = &g_array_index (links, LsLinkUse, i);
    guint place;
    LsLinkTally *tally = ls_link_tally_of (&groups, use->name, &place);
    ls_link_add_name (tally, use->name);
    ls_link_add_level (tally->levels, use->utilisation, use->bytes, 1);
  }
  return ls_link_groups_take (&groups);
}

void
ls_link_use_report (LsReport *r, const LsTimeline *t, const LsCluster *c)
{
  if (!ls_link_use_by_places (r, t, c))
    ls_link_use_report_each (r, t, c);
}

void
ls_link_use_report_each (LsReport *r, const LsTimeline *t, const LsCluster *c)
{
  GArray *links = ls_link_use_new (t, c), *groups = group_links (links);
  r->n_link_groups = groups->len;
  r->link_groups = (LsLinkGroup *) g_array_free (groups, FALSE);
  if (links->len > LS_N_BUSIEST)
    g_array_set_size (links, LS_N_BUSIEST);
  r->n_links = links->len;
  r->links = (LsLinkUse *) g_array_free (links, FALSE);
}
