#include "analysis/report.h"

#include <math.h>
#include <string.h>

#include "analysis/conservation.h"
#include "base/list.h"
#include "base/order.h"
#include "cluster/places.h"
#include "strategy/shard.h"

/* --- memory that is to stay free: what takes it is in no category of what is simulated ----------- */

#define GIB 1073741824.0

void
ls_headroom_clear (LsHeadroom *h)
{
  if (!h)
    return;
  g_clear_pointer (&h->parts, g_array_unref);
  g_free (h->program);
  *h = (LsHeadroom) { 0 };
}

bool
ls_headroom_is_left (const LsHeadroom *h, uint64_t needed_bytes, uint64_t capacity_bytes)
{
  return needed_bytes <= capacity_bytes && h->bytes <= capacity_bytes - needed_bytes;
}

static void
append_gib (GString *out, uint64_t bytes)
{
  char text[G_ASCII_DTOSTR_BUF_SIZE];
  g_string_append (out, g_ascii_formatd (text, sizeof text, "%.2f", (double) bytes / GIB));
}

char *
ls_headroom_text (const LsHeadroom *h)
{
  GString *out = g_string_new (NULL);
  append_gib (out, h->bytes);
  g_string_append (out, " GiB");
  if (h->program)
    g_string_append_printf (out, " for %s", h->program);
  for (guint i = 0; h->parts && i < h->parts->len; i++) {
    const LsHeadroomPart *p = &g_array_index (h->parts, LsHeadroomPart, i);
    g_string_append_printf (out, "%s%s ", i == 0 ? ": " : ", ", p->what);
    append_gib (out, p->bytes);
  }
  return g_string_free (out, FALSE);
}

/* --- how much of each link a step uses, by where links lie -------------------------------------------- */

/* Trunks only: an HBM is shared like a link but is none. Those that differ in numbers alone are one row of a
 * table; sums over a group are over its levels in one order, however links come.
 *
 * Links of one number at places of a kind (cluster/places.h) have one pattern, and numbers in their names
 * rise with the place. Places of one class (exec/shortcuts/fold.h) are used alike: the first of them is
 * looked at. So what this takes grows with classes; names that are sought in their order are found without
 * the others. Where a cluster has no places, or some of it did not run, all of it is one host. */

/* Links that a report has by name. */
#define LS_N_BUSIEST 32

/* Links of a group that are used alike. */
typedef struct {
  double utilisation, bytes;
  guint n;
} LsLinkLevel;

typedef struct {
  char *name;     /* of all of them: see ls_link_merge(); NULL: of none yet */
  GArray *levels; /* LsLinkLevel */
} LsLinkTally;

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
  bool is_one;              /* the places are of no use */
  const uint32_t *class_of; /* of each place; NULL: not known */
  Tier tiers[3];
  double window_s;
  bool has_faults;
  GArray *tallies;        /* LsLinkTally */
  GHashTable *by_pattern; /* place + 1 */
  GArray *busiest;        /* LsLinkUse: LS_N_BUSIEST at most, in order */
  LsHostNames names;
} Places;

/* LsLinkUse; then by name */
static const LsSortKey busiest_first[]
    = { { LS_FALLING (LsLinkUse, utilisation) }, { LS_RISING (LsLinkUse, name) }, { 0 } };

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

static const LsSortKey busiest_groups_first[]
    = { { LS_FALLING (LsLinkGroup, max_utilisation) }, { LS_RISING (LsLinkGroup, name) }, { 0 } };

/* Orders: the busiest first. */
static const LsSortKey busiest_levels_first[]
    = { { LS_FALLING (LsLinkLevel, utilisation) }, { LS_FALLING (LsLinkLevel, bytes) }, { 0 } };

/* Takes the name. */
static LsLinkGroup
group_of (LsLinkTally *tally)
{
  LsLinkGroup g = { .name = g_steal_pointer (&tally->name) };
  ls_sort_by (tally->levels, busiest_levels_first);
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

/* Which tally is of links with a name of this pattern. */
static guint
tally_of (Places *p, const char *name)
{
  char *pattern = ls_link_pattern (name);
  guint at = GPOINTER_TO_UINT (g_hash_table_lookup (p->by_pattern, pattern));
  if (at > 0)
    g_free (pattern);
  else {
    g_array_set_size (p->tallies, at = p->tallies->len + 1);
    g_hash_table_insert (p->by_pattern, pattern, GUINT_TO_POINTER (at));
    g_array_index (p->tallies, LsLinkTally, at - 1).levels = g_array_new (FALSE, FALSE, sizeof (LsLinkLevel));
  }
  return at - 1;
}

/* 0: nothing travels there. */
static double
utilisation_of (const Places *p, uint32_t trunk)
{
  double bytes = ls_timeline_bytes (p->t, trunk);
  return bytes > 0 ? bytes / (ls_cluster_resource_capacity (p->c, trunk) * p->window_s) : 0;
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
  if (column->n == 0)
    return;
  LsLinkLevel *level
      = ls_list_like (g_array_index (p->tallies, LsLinkTally, column->tally).levels, busiest_levels_first,
                      &(LsLinkLevel) { column->utilisation, column->bytes, 0 });
  level->n += column->n;
  column->n = 0;
}

/* Of the first trunk of a column the tally is found, too. */
static void
add_name_of (Places *p, Column *column, uint32_t trunk)
{
  g_autofree char *name = ls_cluster_resource_name_with (p->c, trunk, &p->names);
  if (column->first == UINT32_MAX) {
    column->tally = tally_of (p, name);
    column->first = trunk;
  }
  LsLinkTally *tally = &g_array_index (p->tallies, LsLinkTally, column->tally);
  g_autofree char *before = tally->name;
  tally->name = before ? ls_link_merge (before, name) : g_strdup (name);
}

static void
tally_trunk (Places *p, Column *column, const Alike *alike, uint32_t local)
{
  uint32_t trunk = ls_places_resource (&p->at, alike->first, local);
  double bytes = ls_timeline_bytes (p->t, trunk), own = utilisation_of (p, trunk);
  if (bytes <= 0)
    return;
  if (column->first == UINT32_MAX)
    add_name_of (p, column, trunk);
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

/* known: by class, zeros before and after: which one of them stands for it, + 1; NULL: there are none. */
static void
find_alike (Places *p, Tier *tier, uint32_t *known)
{
  uint32_t end = tier->n_trunks > 0 ? tier->first + tier->n : tier->first;
  tier->alike = g_array_new (FALSE, FALSE, sizeof (Alike));
  for (uint32_t place = tier->first, next; place < end; place = next) {
    bool may_be = may_be_alike (p, place);
    uint32_t *number = known && may_be ? &known[p->class_of[place]] : NULL;
    next = place + 1; /* up to where another class begins or hosts have faults */
    while (may_be && p->class_of && next < end && p->class_of[next] == p->class_of[place]
           && may_be_alike (p, next))
      next++;
    if (number && *number > 0) {
      Alike *alike = &((Alike *) tier->alike->data)[*number - 1];
      alike->last = next - 1;
      alike->n += next - place;
      continue;
    }
    ls_list_add (tier->alike, &(Alike) { place, next - 1, next - place });
    if (number)
      *number = tier->alike->len;
  }
  for (guint i = 0; i < tier->alike->len && known; i++)
    known[p->class_of[g_array_index (tier->alike, Alike, i).first]] = 0;
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
  for (guint i = 0; i < p->tallies->len; i++) {
    const GArray *levels = g_array_index (p->tallies, LsLinkTally, i).levels;
    g_array_append_vals (all, levels->data, levels->len);
  }
  ls_sort_by (all, busiest_levels_first);
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

/* Keeps the first n by name. */
static void
offer (Places *p, GArray *best, guint n, uint32_t trunk, char *name)
{
  LsLinkUse use
      = { .name = name, .utilisation = utilisation_of (p, trunk), .bytes = ls_timeline_bytes (p->t, trunk) };
  if (best->len == n && strcmp (name, g_array_index (best, LsLinkUse, n - 1).name) > 0) {
    g_free (name);
    return;
  }
  if (best->len == n) {
    ls_clear_text (&g_array_index (best, LsLinkUse, n - 1));
    g_array_set_size (best, n - 1);
  }
  guint at = 0;
  while (at < best->len && strcmp (g_array_index (best, LsLinkUse, at).name, name) < 0)
    at++;
  g_array_insert_val (best, at, use);
}

/* Number `local` of a host, if it is used so much. */
static void
offer_at (Places *p, GArray *best, guint n, uint32_t host, uint32_t local, double use)
{
  uint32_t trunk = ls_places_resource (&p->at, host, local);
  if (utilisation_of (p, trunk) == use)
    offer (p, best, n, trunk, ls_cluster_resource_name_with (p->c, trunk, &p->names));
}

/* Numbers of a host's trunks, those from a leaf or all others, that some host uses so much. */
static GArray *
locals_used (const Places *p, bool is_from_leaf, double use)
{
  GArray *locals = g_array_new (FALSE, FALSE, sizeof (uint32_t));
  for (uint32_t i = 0; i < p->at.trunks_per_host; i++) {
    bool is_used = false;
    for (guint k = 0; k < p->tiers[0].alike->len && !is_used; k++) {
      uint32_t host = g_array_index (p->tiers[0].alike, Alike, k).first,
               trunk = ls_places_resource (&p->at, host, i);
      is_used = utilisation_of (p, trunk) == use
          && (ls_cluster_trunk (p->c, trunk)->from == LS_NODE_LEAF) == is_from_leaf;
    }
    if (is_used)
      g_array_append_val (locals, i);
  }
  return locals;
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

/* Links to NICs of these hosts from the leaf. */
static void
offer_from_leaf (Places *p, GArray *best, guint n, uint32_t leaf, const GArray *locals, double use)
{
  uint32_t per_group = ls_cluster_n_edges (p->c) / p->at.n_groups,
           first = leaf / per_group * p->at.hosts_per_group,
           end = MIN (p->at.n_hosts, first + p->at.hosts_per_group);
  for (guint i = 0; i < locals->len; i++) {
    uint32_t local = g_array_index (locals, uint32_t, i);
    bool is_of_leaf = ls_cluster_edge_of_trunk (p->c, ls_places_resource (&p->at, first, local)) == leaf;
    for (uint32_t host = first; host < end && is_of_leaf; host++)
      offer_at (p, best, n, host, local, use);
  }
}

/* Links whose names begin with a leaf, or with a host: one after the other in the order of names. */
static void
offer_in_order (Places *p, GArray *best, guint n, bool is_from_leaf, double use)
{
  g_autoptr (GArray) locals = locals_used (p, is_from_leaf, use);
  uint32_t n_beginnings = locals->len == 0 ? 0 : is_from_leaf ? ls_cluster_n_edges (p->c) : p->at.n_hosts;
  for (uint32_t number = 0; number < n_beginnings; number = next_as_text (number, n_beginnings)) {
    char begin[32];
    g_snprintf (begin, sizeof begin, is_from_leaf ? "leaf%u>" : "node%u/", number);
    if (best->len == n && strncmp (begin, g_array_index (best, LsLinkUse, n - 1).name, strlen (begin)) > 0)
      return; /* it comes after all that are kept */
    if (is_from_leaf)
      offer_from_leaf (p, best, n, number, locals, use);
    for (guint i = 0; i < locals->len && !is_from_leaf; i++)
      offer_at (p, best, n, number, g_array_index (locals, uint32_t, i), use);
  }
}

/* Links of one number at places that are alike: those that are used more are kept; so much, offered. */
static void
take (Places *p, const Alike *alike, uint32_t local, GArray *best, guint n, double least)
{
  double use = utilisation_of (p, ls_places_resource (&p->at, alike->first, local));
  bool is_offered = use == least && (p->is_one || alike->first >= p->at.n_hosts);
  if (use == 0 || (use <= least && !is_offered))
    return;
  for (uint32_t place = alike->first; place <= alike->last; place++) {
    uint32_t trunk = ls_places_resource (&p->at, place, local);
    if (alike->n > 1 && (p->class_of[place] != p->class_of[alike->first] || !may_be_alike (p, place)))
      continue;
    char *name = ls_cluster_resource_name_with (p->c, trunk, &p->names);
    const LsLinkUse own = { name, utilisation_of (p, trunk), ls_timeline_bytes (p->t, trunk) };
    if (is_offered)
      offer (p, best, n, trunk, name);
    else
      g_array_append_val (p->busiest, own);
  }
}

static void
find_busiest (Places *p)
{
  guint n_above;
  double least = find_least (p, &n_above);
  g_autoptr (GArray) best = g_array_new (FALSE, FALSE, sizeof (LsLinkUse));
  if (!p->is_one) {
    offer_in_order (p, best, LS_N_BUSIEST - n_above, false, least);
    offer_in_order (p, best, LS_N_BUSIEST - n_above, true, least);
  }
  for (guint k = 0; k < G_N_ELEMENTS (p->tiers); k++)
    for (guint i = 0; i < p->tiers[k].alike->len; i++)
      for (uint32_t local = 0; local < p->tiers[k].n_trunks; local++)
        take (p, &g_array_index (p->tiers[k].alike, Alike, i), local, best, LS_N_BUSIEST - n_above, least);
  g_array_append_vals (p->busiest, best->data, best->len);
  ls_sort_by (p->busiest, busiest_first);
}

static void
find_tiers (Places *p)
{
  const LsPlaces *at = &p->at;
  p->tiers[0] = (Tier) { 0, at->n_hosts, MIN (at->trunks_per_host, p->t->n_resources), NULL };
  p->tiers[1] = (Tier) { at->n_hosts, at->n_groups, at->trunks_per_group, NULL };
  p->tiers[2] = (Tier) { at->n_hosts + at->n_groups, at->n_pods, at->trunks_per_pod, NULL };
  g_autofree uint32_t *known = p->class_of ? g_new0 (uint32_t, ls_places_n (at)) : NULL;
  for (guint k = 0; k < G_N_ELEMENTS (p->tiers); k++)
    find_alike (p, &p->tiers[k], known);
}

void
ls_link_use_report (LsReport *r, const LsTimeline *t, const LsCluster *c)
{
  Places p = { .t = t,
               .c = c,
               .window_s = ls_time_to_s (t->window_end - t->window_start),
               .has_faults = ls_cluster_has_faults (&c->spec),
               .tallies = g_array_new (FALSE, TRUE, sizeof (LsLinkTally)),
               .by_pattern = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, NULL),
               .busiest = g_array_new (FALSE, FALSE, sizeof (LsLinkUse)) };
  p.is_one = !ls_places_init (&p.at, c) || t->n_resources < p.at.n_trunks;
  if (p.is_one)
    p.at = ls_places_one (c);
  else
    p.class_of = ls_timeline_places (t);
  find_tiers (&p);
  for (guint k = 0; k < G_N_ELEMENTS (p.tiers); k++)
    tally_tier (&p, &p.tiers[k]);
  if (p.tallies->len > 0)
    find_busiest (&p);
  for (guint k = 0; k < G_N_ELEMENTS (p.tiers); k++)
    g_array_unref (p.tiers[k].alike);
  r->n_link_groups = p.tallies->len;
  r->link_groups = g_new (LsLinkGroup, p.tallies->len);
  for (guint i = 0; i < p.tallies->len; i++) {
    LsLinkTally *tally = &g_array_index (p.tallies, LsLinkTally, i);
    r->link_groups[i] = group_of (tally);
    g_array_unref (tally->levels);
  }
  if (r->n_link_groups > 0)
    g_qsort_with_data (r->link_groups, r->n_link_groups, sizeof *r->link_groups, ls_compare_by,
                       (gpointer) busiest_groups_first);
  r->n_links = p.busiest->len;
  r->links = (LsLinkUse *) g_array_free (p.busiest, FALSE);
  g_array_unref (p.tallies);
  g_hash_table_unref (p.by_pattern);
  ls_host_names_clear (&p.names);
}

/* --- every number of a run's result, computed from its timeline ---------------------------------- */

static uint32_t
sequence (const LsModel *m, const LsStrategy *s)
{
  return s->seq ? s->seq : m->seq;
}

/* The vocabulary counts padded, as in Megatron-LM's own figure. */
static double
step_flops (const LsModel *m, const LsStrategy *s, bool is_causal)
{
  uint32_t seq = sequence (m, s);
  return ls_trained_flops (m, s, seq, is_causal) - ls_dropped_flops (m, s, seq);
}

/* GPUs of each kind: of these, [n]; NULL: of the cluster's, which are n. */
static void
count_kinds (const LsCluster *c, const LsPlan *plan, uint32_t n, uint32_t ret_n[LS_MAX_NODE_KINDS])
{
  if (!c->kind_of_host) {
    ret_n[0] = n;
    return;
  }
  for (uint32_t i = 0; i < n && plan; i++)
    ret_n[ls_cluster_kind_of (c, ls_cluster_host_of (c, ls_plan_gpu (plan, i)))]++;
  for (uint32_t host = 0; host < c->spec.n_nodes && !plan; host++)
    ret_n[ls_cluster_kind_of (c, host)] += ls_cluster_gpus_of (c, host);
}

/* Of the GPUs of all ranks over a step; no plan: the mean of the cluster's GPUs for each. */
static double
peak_flops (const LsStrategy *s, const LsCluster *c, const LsPlan *plan, uint32_t n_ranks, double step_s)
{
  uint32_t n_of_kind[LS_MAX_NODE_KINDS] = { 0 }, n = plan ? n_ranks : c->n_gpus;
  count_kinds (c, plan, n, n_of_kind);
  double peak = 0;
  for (uint32_t k = 0; k < ls_cluster_spec_n_kinds (&c->spec); k++)
    peak += ls_cluster_spec_of_kind (&c->spec, k)->gpu.peak_flops[s->dtype] * ((double) n_of_kind[k] / n)
        * n_ranks * step_s;
  g_assert_cmpfloat (peak, >, 0);
  return peak;
}

double
ls_mfu (const LsModel *m, const LsStrategy *s, const LsCluster *c, const LsPlan *plan, uint32_t n_ranks,
        double step_s, bool is_causal)
{
  return step_flops (m, s, is_causal) / peak_flops (s, c, plan, n_ranks, step_s);
}

static void
fill_speed (LsReport *r, const LsTimeline *t, const LsModel *m, const LsStrategy *s, const LsCluster *c)
{
  double peak = peak_flops (s, c, t->plan, t->n_ranks, r->step_time_s);
  r->tokens_per_s = (double) s->global_batch * sequence (m, s) / r->step_time_s;
  r->mfu = step_flops (m, s, true) / peak;
  r->hfu = r->mfu + ls_plan_model_flops (t->plan, true, true) / peak;
  r->mfu_all_pairs = step_flops (m, s, false) / peak;
  r->hfu_all_pairs = r->mfu_all_pairs + ls_plan_model_flops (t->plan, true, false) / peak;
  r->flops_per_gpu = step_flops (m, s, false) / (t->n_ranks * r->step_time_s);
  r->tokens_per_s_per_gpu = r->tokens_per_s / t->n_ranks;
  r->n_params = ls_model_params (m, m->vocab);
  r->n_active_params = ls_model_active_params (m, m->vocab);
  const LsLora lora = ls_strategy_lora (s, m);
  r->n_adapter_params = ls_lora_params (m, &lora);
}

static void
fill_breakdown (LsReport *r, const LsTimeline *t)
{
  LsTime sum[LS_N_PARTS], bubbles[LS_N_BUBBLES];
  ls_breakdown (t, sum, bubbles);
  for (int part = 0; part < LS_N_PARTS; part++)
    r->breakdown_s[part] = ls_time_to_s (sum[part]) / t->n_ranks;
  for (int b = 0; b < LS_N_BUBBLES; b++)
    r->bubbles_s[b] = ls_time_to_s (bubbles[b]) / t->n_ranks;
  r->bubble_frac = r->breakdown_s[LS_PART_BUBBLE] / r->step_time_s;
}

static void
fill_memory (LsReport *r, const LsMemory *memory, const LsTimeline *t, const LsCluster *c)
{
  const LsClassMemory *fullest = ls_memory_fullest (memory);
  g_assert (fullest);
  const LsGpu *gpu = ls_cluster_gpu_spec (c, ls_plan_gpu (t->plan, fullest->rank));
  r->peak_rank = fullest->rank;
  r->peak_bytes = fullest->peak_bytes;
  r->needed_bytes = fullest->needed_bytes;
  r->capacity_bytes = ls_memory_capacity (gpu);
  r->context_bytes = MIN (gpu->reserved_bytes, gpu->hbm_bytes);
  r->fits = r->needed_bytes <= r->capacity_bytes;
  memcpy (r->by_category, fullest->category_peak, sizeof r->by_category);
  memcpy (r->at_peak, fullest->at_peak, sizeof r->at_peak);
}

void
ls_report_init (LsReport *r, const LsTimeline *t, const LsMemory *memory, const LsModel *m,
                const LsStrategy *s, const LsCluster *c, const double cost_share[LS_N_COST_SHARES])
{
  *r = (LsReport) {
    .step_time_s = ls_time_to_s (t->window_end - t->window_start),
    .first_step_s = ls_time_to_s (t->first_step),
    .n_ranks = t->n_ranks,
    .n_steps = t->n_steps,
    .n_op_instances = ls_plan_n_op_instances (t->plan),
    .digest = t->digest,
    .chip = ls_cluster_chip_word (&c->spec, 1),
    .n_segments = t->n_segments,
    .n_coarse = t->n_coarse,
  };
  for (uint32_t row = 0; row < t->n_rows; row++)
    r->n_classes += t->multiplicity[row] > 0;
  if (t->is_sampled) /* one of each role is recorded, all classes were simulated */
    r->n_classes = t->n_classes;
  r->tokens_per_s = r->flops_per_gpu = r->tokens_per_s_per_gpu = NAN;
  r->mfu = r->hfu = r->mfu_all_pairs = r->hfu_all_pairs = NAN;
  if (m) /* else what is trained is not known: neither are these */
    fill_speed (r, t, m, s, c);
  fill_breakdown (r, t);
  fill_memory (r, memory, t, c);
  ls_link_use_report (r, t, c);
  double *const shares[] = { &r->share_measured, &r->share_fitted, &r->share_roofline, &r->share_extrapolated,
                             &r->share_unknown };
  double all = cost_share[0] + cost_share[1] + cost_share[2];
  for (guint i = 0; i < G_N_ELEMENTS (shares) && all > 0; i++)
    *shares[i] = cost_share[i] / all;
}

void
ls_report_clear (LsReport *r)
{
  for (guint i = 0; i < r->n_links; i++)
    g_free (r->links[i].name);
  g_free (r->links);
  for (guint i = 0; i < r->n_link_groups; i++)
    g_free (r->link_groups[i].name);
  g_free (r->link_groups);
  for (guint i = 0; i < r->n_networks; i++)
    g_free (r->networks[i].refused);
  g_free (r->networks);
  ls_headroom_clear (&r->headroom);
  *r = (LsReport) { 0 };
}

/* --- what a log says of a step that was run, next to what is predicted ------------------------------- */

void
ls_measured_clear (LsMeasured *m)
{
  if (!m)
    return;
  g_free (m->source);
  *m = (LsMeasured) { 0 };
}

void
ls_measured_copy (LsMeasured *dest, const LsMeasured *source)
{
  *dest = *source;
  dest->source = g_strdup (source->source);
}

static bool
agree (double a, double b)
{
  return fabs (a / b - 1) <= LS_MEASURED_AGREES;
}

/* --- FLOPs --- */

#define MAX_WAYS 6

/* A way to count the FLOPs of a step. */
typedef struct {
  const char *words;
  double flops;
} Way;

/* [MAX_WAYS]; the first is that of logs of Megatron-LM. */
static void
list_ways (const LsReport *r, const LsModel *m, const LsStrategy *s, Way ways[MAX_WAYS])
{
  double tokens = (double) s->global_batch * s->seq, whole = ls_trained_flops (m, s, s->seq, false);
  double weights = (double) r->n_active_params * tokens;
  const Way all[MAX_WAYS] = {
    { "with attention whole and nothing computed again, as Megatron-LM prints and as here", whole },
    { "with the causal half of attention", ls_trained_flops (m, s, s->seq, true) },
    { "with what is computed again", whole * r->hfu_all_pairs / r->mfu_all_pairs },
    { "without the product with the vocabulary", ls_model_flops (m, 0, s->seq, s->global_batch, false) },
    { "as 6 FLOPs a parameter and token", 6 * weights },
    { "as 8 FLOPs a parameter and token, which counts full recomputation", 8 * weights },
  };
  memcpy (ways, all, sizeof all);
}

/* The way that comes nearest; of equally near ones the first. */
static const Way *
nearest_way (const Way *ways, double flops)
{
  const Way *best = ways;
  for (guint i = 1; i < MAX_WAYS; i++)
    if (fabs (log (ways[i].flops / flops)) < fabs (log (best->flops / flops)))
      best = &ways[i];
  return best;
}

static char *
explain_flops (const LsMeasured *l, const LsReport *r, const LsModel *m, const LsStrategy *s)
{
  Way ways[MAX_WAYS];
  list_ways (r, m, s, ways);
  double flops = l->flops_per_gpu * r->n_ranks * l->step_s, off = 100 * (flops / ways[0].flops - 1);
  if (agree (flops, ways[0].flops))
    return g_strdup_printf ("TFLOP/s: agree with the time and this job (%+.1f %%), counted %s", off,
                            ways[0].words);
  const Way *best = nearest_way (ways, flops);
  if (agree (flops, best->flops))
    return g_strdup_printf ("TFLOP/s: fit this job (%+.1f %%) if the log counts %s; counted as here they "
                            "would be %.4g",
                            100 * (flops / best->flops - 1), best->words,
                            ways[0].flops / (r->n_ranks * l->step_s) / 1e12);
  return g_strdup_printf ("TFLOP/s: a step of the log has %.3g times this job's FLOPs (%.4g TFLOP/s as "
                          "counted here), which no known"
                          " way to count explains: another model, batch, sequence or number of %ss",
                          flops / ways[0].flops, ways[0].flops / (r->n_ranks * l->step_s) / 1e12, r->chip);
}

/* --- tokens --- */

/* Tokens of a step of the log over those of this job; NAN: it does not say. */
static double
token_ratio (const LsMeasured *l, const LsReport *r, const LsStrategy *s)
{
  double rate = l->tokens_per_s > 0 ? l->tokens_per_s : l->tokens_per_s_per_gpu * r->n_ranks;
  return rate > 0 ? rate * l->step_s / ((double) s->global_batch * s->seq) : NAN;
}

static char *
explain_tokens (const LsMeasured *l, const LsReport *r, const LsStrategy *s, double ratio)
{
  double tokens = (double) s->global_batch * s->seq;
  if (agree (ratio, 1))
    return g_strdup_printf ("tokens/s: agree with the time and this job's %.4g tokens a step (%+.1f %%)",
                            tokens, 100 * (ratio - 1));
  double error = r->step_time_s * ratio / l->step_s - 1;
  return g_strdup_printf ("tokens/s: a step of the log has %.4g tokens, this job %.4g: another batch (%.4g "
                          "sequences of %u) or sequence length;"
                          " at its speed this job would take %.4g s, and the error would be %+.1f %%",
                          ratio * tokens, tokens, ratio * s->global_batch, s->seq, l->step_s / ratio,
                          100 * error);
}

/* --- memory --- */

#define MAX_CAUSES 5

/* What the log may count, or the job may do, otherwise. */
typedef struct {
  const char *words;
  double bytes; /* more than is predicted */
} Cause;

static guint
list_causes (const LsReport *r, const LsStrategy *s, Cause causes[MAX_CAUSES])
{
  guint n = 0;
  double gradients = (double) r->at_peak[LS_MEM_GRADIENTS];
  causes[n++] = (Cause) { "the CUDA context, which nvidia-smi counts", (double) r->context_bytes };
  causes[n++] = (Cause) { "communication buffers and workspaces, which PyTorch's counters leave out",
                          -(double) (r->at_peak[LS_MEM_COMM_BUFFERS] + r->at_peak[LS_MEM_WORKSPACE]) };
  if (s->opt.grad_dtype != LS_DTYPE_FP32)
    causes[n++] = (Cause) { "gradients in fp32", gradients };
  else
    causes[n++] = (Cause) { "gradients in 16 bits", -gradients / 2 };
  if (s->zero_stage == 0 && s->dp > 1)
    causes[n++] = (Cause) { "an optimizer that is cut over data parallelism",
                            -(1 - 1.0 / s->dp) * (double) r->at_peak[LS_MEM_OPTIMIZER] };
  else if (s->zero_stage > 0 && s->dp > 1)
    causes[n++]
        = (Cause) { "an optimizer that is not cut", (s->dp - 1.0) * (double) r->at_peak[LS_MEM_OPTIMIZER] };
  if (s->recompute == LS_RECOMPUTE_NONE)
    causes[n++] = (Cause) { "at least most of the activations computed again",
                            -(double) r->at_peak[LS_MEM_ACTIVATIONS] };
  return n;
}

static char *
explain_memory (const LsMeasured *l, const LsReport *r, const LsStrategy *s)
{
  double predicted = (double) r->needed_bytes, more = l->memory_bytes - predicted;
  if (agree (l->memory_bytes, predicted))
    return g_strdup_printf ("memory: agrees with the %.2f GiB predicted (%+.1f %%)", predicted / GIB,
                            100 * (predicted / l->memory_bytes - 1));
  Cause causes[MAX_CAUSES];
  guint n = list_causes (r, s, causes);
  g_autoptr (GString) text = g_string_new (NULL);
  g_string_append_printf (text, "memory: %.2f GiB %s than the %.2f GiB predicted", fabs (more) / GIB,
                          more > 0 ? "more" : "less", predicted / GIB);
  for (guint i = 0, n_found = 0; i < n; i++)
    if (causes[i].bytes != 0 && agree (predicted + causes[i].bytes, l->memory_bytes))
      g_string_append_printf (text, "%s%s", n_found++ == 0 ? "; would be explained by " : ", or by ",
                              causes[i].words);
  return g_string_free (g_steal_pointer (&text), FALSE);
}

GPtrArray *
ls_measured_explain (const LsMeasured *m, const LsReport *r, const LsModel *model, const LsStrategy *s)
{
  GPtrArray *words = g_ptr_array_new_with_free_func (g_free);
  if (!model && (m->flops_per_gpu > 0 || m->memory_bytes > 0))
    ls_note (words, "TFLOP/s and memory are held against nothing: what is trained is not known");
  if (!model)
    return words;
  double ratio = token_ratio (m, r, s);
  if (m->flops_per_gpu > 0)
    g_ptr_array_add (words, explain_flops (m, r, model, s));
  if (!isnan (ratio))
    g_ptr_array_add (words, explain_tokens (m, r, s, ratio));
  if (m->memory_bytes > 0)
    g_ptr_array_add (words, explain_memory (m, r, s));
  return words;
}

/* --- what contradicts the job --- */

#define FAR         0.10 /* of FLOPs and tokens: programs round what they count              */
#define MEMORY_FAR  0.25 /* what is predicted of allocated memory is mostly nearer               */
#define MAX_RESERVE 1.60 /* of what is allocated: segments that are not in use come on top       */

GPtrArray *
ls_measured_contradictions (const LsMeasured *m, const LsReport *r, const LsModel *model, const LsStrategy *s)
{
  GPtrArray *words = g_ptr_array_new_with_free_func (g_free);
  Way ways[MAX_WAYS];
  if (!model)
    return words;
  double ratio = token_ratio (m, r, s), logged = m->flops_per_gpu * r->n_ranks * m->step_s;
  list_ways (r, model, s, ways);
  const Way *near = nearest_way (ways, logged > 0 ? logged : 1);
  if (logged > 0 && fabs (logged / near->flops - 1) > FAR)
    ls_note (words, "%.4g TFLOP/s of a %s where this job has %.4g in its time", m->flops_per_gpu / 1e12,
             r->chip, ways[0].flops / (r->n_ranks * m->step_s) / 1e12);
  if (fabs (ratio - 1) > FAR) /* not of NAN */
    ls_note (words, "%.4g tokens a step where this job has %.4g", ratio * s->global_batch * s->seq,
             (double) s->global_batch * s->seq);
  double predicted = (double) r->needed_bytes, more = m->memory_bytes / predicted - 1,
         reserve = m->reserved_bytes / predicted; /* which holds what is allocated */
  if (m->memory_bytes > 0 && fabs (more) > MEMORY_FAR)
    ls_note (words, "%.2f GiB allocated where %.2f are predicted", m->memory_bytes / GIB, predicted / GIB);
  else if (m->memory_bytes == 0 && reserve > 0 && (reserve < 1 - FAR || reserve > MAX_RESERVE))
    ls_note (words, "%.2f GiB reserved where %.2f are predicted as allocated", m->reserved_bytes / GIB,
             predicted / GIB);
  return words;
}
