/* cluster/faults.c — links that are degraded or failed.
 *
 * A fault names a trunk as reports do ("node3/nic2>leaf4", "leaf1>spines") and says what
 * share of its capacity is left; by default both ways. Nothing left: no route takes it.
 *
 *   in the fabric  ideal spreading and hashing leave out what leads nowhere: fabric_X.c
 *   in a node      GPU to GPU and GPU to NIC by search over what works (route.h), so that a
 *                  GPU without NVLink is reached over PCIe
 *   a NIC          works if its port does, both ways; its GPUs take the nearest that works,
 *                  of equals the next after it
 *
 * Nodes with faults have tables of their own; all others stay arithmetic. What is cut off is
 * an error that names the two ends: two GPUs of a node, a GPU and all NICs, a GPU and the
 * memory of its CPU, two switches with NICs. A torus, and a node of more than 256 GPUs, has
 * no search: a failed link in one is an error unless no way needs it.
 *
 * Deviations. Nothing fails during a run. NCCL's choice of algorithm and its channels
 * (network/nccl/tuning.h) do not see a fault, except that NVLS needs all NVLinks of the node, and
 * rings of a mesh take those that work. */
#include "cluster/index.h"

#include <string.h>

#include "base/order.h"
#include "base/suggest.h"

#define MAX_SEARCHED_GPUS 256

uint32_t
ls_first_sound_node (const LsCluster *c, uint32_t kind)
{
  uint32_t n = c->spec.n_nodes, last = n;
  for (uint32_t host = 0; host < n; host++) {
    if (ls_cluster_kind_of (c, host) != kind)
      continue;
    if (!ls_faults_of_node (c, host))
      return host;
    last = host;
  }
  return last;
}

/* --- names --- */

static LsTrunk *
trunk_at (const LsCluster *c, guint t)
{
  return &g_array_index (c->trunks, LsTrunk, t);
}

/* Letters up to the slash behind a node. */
static size_t
node_part (const char *name)
{
  const char *slash = strchr (name, '/');
  return slash && g_str_has_prefix (name, "node") ? (size_t) (slash + 1 - name) : 0;
}

/* Of a trunk within it or at its NICs, by either end. */
uint32_t
ls_faults_node_named (const LsClusterSpec *s, const char *trunk)
{
  const char *end = g_str_has_prefix (trunk, "node") ? trunk : strchr (trunk, '>');
  end = end && *end == '>' ? end + 1 : end;
  if (!end || !g_str_has_prefix (end, "node") || node_part (end) == 0)
    return s->n_nodes;
  char *slash;
  guint64 host = g_ascii_isdigit (end[4]) ? g_ascii_strtoull (end + 4, &slash, 10) : s->n_nodes;
  return host < s->n_nodes && *slash == '/' ? (uint32_t) host : s->n_nodes;
}

/* Of the links of the same node, or of the fabric. */
static gboolean
complain_of_name (const LsCluster *c, const char *name, GError **error)
{
  g_autoptr (GPtrArray) near = g_ptr_array_new ();
  size_t n = node_part (name);
  if (strchr (name, '*'))
    return ls_spec_conflict (
        error,
        "faults: \"%s\": a star stands for several links in a report; expected the name of "
        "one, such as \"%s\"",
        name, trunk_at (c, 0)->name);
  for (guint t = 0; t < c->trunks->len; t++)
    if (node_part (trunk_at (c, t)->name) == n && strncmp (trunk_at (c, t)->name, name, n) == 0)
      g_ptr_array_add (near, trunk_at (c, t)->name);
  g_ptr_array_add (near, NULL);
  const char *hint = ls_suggest (name, (const char *const *) near->pdata);
  if (!hint && near->len > 1)
    return ls_spec_conflict (error, "faults: no link is named \"%s\"; expected one like \"%s\"", name,
                             (const char *) near->pdata[0]);
  return ls_spec_conflict (error, "faults: no link is named \"%s\" in a cluster of %u node%s%s%s%s", name,
                           c->spec.n_nodes, c->spec.n_nodes == 1 ? "" : "s", hint ? "; did you mean \"" : "",
                           hint ? hint : "", hint ? "\"?" : "");
}

/* --- what is left --- */

static uint32_t
n_physical_of (const LsCluster *c, guint trunk)
{
  uint32_t n = 0;
  for (guint i = 0; i < c->links->len; i++)
    if (g_array_index (c->links, LsLink, i).trunk == trunk)
      n += g_array_index (c->links, LsLink, i).n_physical;
  return n;
}

/* Of n links that work, of which some are slow. A failed one is gone around. */
static double
share_of_links (const LsCluster *c, const LsFault *fault, guint trunk, uint32_t n)
{
  bool is_sprayed
      = c->spec.network.routing == LS_ROUTING_SPRAY && trunk >= ls_first_trunk_slot (c, c->spec.n_nodes);
  if (is_sprayed && fault->capacity > 0)
    return fault->capacity;
  return 1 - (1 - fault->capacity) * fault->n_links / n;
}

static gboolean
share_left (const LsCluster *c, const LsFault *fault, guint trunk, double *ret_share, GError **error)
{
  uint32_t n = fault->failed_links > 0 || fault->n_links > 0 ? n_physical_of (c, trunk) : 0;
  *ret_share = fault->capacity;
  if (!(fault->capacity >= 0 && fault->capacity <= 1))
    return ls_spec_conflict (error, "faults: \"%s\": expected a share of capacity from 0 to 1; got %g",
                             fault->link, fault->capacity);
  if (fault->failed_links + (uint64_t) fault->n_links > n)
    return ls_spec_conflict (error, "faults: \"%s\" has %u links; %u cannot fail", fault->link, n,
                             MAX (fault->failed_links, fault->n_links));
  if (fault->n_links > 0)
    *ret_share = share_of_links (c, fault, trunk, n - fault->failed_links);
  if (fault->failed_links > 0)
    *ret_share *= 1 - (double) fault->failed_links / n;
  return TRUE;
}

/* + 1; 0: there is none. */
static guint
find_trunk (const LsCluster *c, GHashTable *by_name, const char *name)
{
  if (by_name)
    return GPOINTER_TO_UINT (g_hash_table_lookup (by_name, name));
  guint t = 0;
  while (t < c->trunks->len && strcmp (trunk_at (c, t)->name, name) != 0)
    t++;
  return t < c->trunks->len ? t + 1 : 0;
}

/* Newly allocated; NULL: so few are looked for that a table takes longer. */
static GHashTable *
index_names (const LsCluster *c, guint n_faults)
{
  if (n_faults < 32)
    return NULL;
  GHashTable *by_name = g_hash_table_new (g_str_hash, g_str_equal);
  for (guint t = 0; t < c->trunks->len; t++)
    g_hash_table_insert (by_name, trunk_at (c, t)->name, GUINT_TO_POINTER (t + 1));
  return by_name;
}

static gboolean
apply_one (LsCluster *c, const LsFault *fault, GHashTable *by_name, double *left, GError **error)
{
  guint found = find_trunk (c, by_name, fault->link);
  if (found == 0)
    return complain_of_name (c, fault->link, error);
  guint t = found - 1;
  double share;
  if (!share_left (c, fault, t, &share, error))
    return FALSE;
  left[t] = MIN (left[t], share);
  if (!fault->one_way)
    left[t ^ 1] = MIN (left[t ^ 1], share);
  return TRUE;
}

static void
degrade (LsCluster *c, const double *left)
{
  const LsTopoIndex *x = c->index;
  for (guint i = 0; i < c->links->len; i++) {
    LsLink *link = &g_array_index (c->links, LsLink, i);
    double share = left[link->trunk];
    if (share == 1)
      continue;
    bool is_failed = share == 0;
    link->capacity_bytes_per_s *= is_failed ? 1 : share;
    if (i < ls_first_link (c, c->spec.n_nodes)) {
      uint32_t host = MIN (g_array_index (c->nodes, LsTopoNode, link->from).host,
                           g_array_index (c->nodes, LsTopoNode, link->to).host);
      if (!ls_faults_of_node (c, host))
        g_hash_table_insert (x->faulty_nodes, GUINT_TO_POINTER (host),
                             ls_arena_new_array (x->arena, LsNodeFaults, 1));
      LsNodeFaults *node = g_hash_table_lookup (x->faulty_nodes, GUINT_TO_POINTER (host));
      node->has_nvlink_fault |= is_failed && ls_link_is_nvlink (c, link);
    } else
      c->index->has_failed_switch_links |= is_failed;
  }
  for (guint t = 0; t < c->trunks->len; t++) {
    trunk_at (c, t)->is_failed = left[t] == 0;
    trunk_at (c, t)->capacity_bytes_per_s *= left[t] == 0 ? 1 : left[t];
  }
}

gboolean
ls_faults_apply (LsCluster *c, GError **error)
{
  const GArray *faults = c->spec.network.faults;
  if (!faults || faults->len == 0)
    return TRUE;
  g_autoptr (GHashTable) by_name = index_names (c, faults->len);
  g_autofree double *left = g_new (double, c->trunks->len);
  for (guint t = 0; t < c->trunks->len; t++)
    left[t] = 1;
  for (guint i = 0; i < faults->len; i++)
    if (!apply_one (c, &g_array_index (faults, LsFault, i), by_name, left, error))
      return FALSE;
  c->index->faulty_nodes = ls_arena_table (c->index->arena, NULL, NULL);
  degrade (c, left);
  return TRUE;
}

/* --- ways in a node --- */

GArray *
ls_working_links (const LsCluster *c, guint first, guint end, uint32_t vertex, uint32_t trunk)
{
  GArray *links = g_array_new (FALSE, FALSE, sizeof (LsLink));
  for (guint i = first; i < end; i++) {
    LsLink link = g_array_index (c->links, LsLink, i);
    if (trunk_at (c, link.trunk)->is_failed)
      continue;
    link.from -= vertex;
    link.to -= vertex;
    link.trunk -= trunk;
    g_array_append_val (links, link);
  }
  return links;
}

static void
find_ways (const LsCluster *c, uint32_t host, LsNodeFaults *node)
{
  const LsInterior *in = ls_interior_of (c, host);
  uint32_t n_gpus = ls_cluster_gpus_of (c, host), n_nics = ls_cluster_node_spec (c, host)->nics.n;
  if (in->kind->traits.is_slice || n_gpus > MAX_SEARCHED_GPUS || n_nics > MAX_SEARCHED_GPUS)
    return;
  guint first = ls_first_link (c, host);
  g_autoptr (GArray) links = ls_working_links (c, first, first + ls_layout_of (c, host)->interior_links,
                                               ls_first_vertex (c, host), ls_first_trunk_slot (c, host));
  const LsLink *link = (const LsLink *) (gconstpointer) links->data;
  g_autofree LsNodeKind *kinds = g_new (LsNodeKind, in->n_vertices);
  for (uint32_t v = 0; v < in->n_vertices; v++)
    kinds[v] = g_array_index (c->nodes, LsTopoNode, ls_first_vertex (c, host) + v).kind;
  const LsVertices gpus = { in->v_gpu, n_gpus }, nics = { in->v_nic, n_nics };
  for (LsLeg leg = 0; leg < G_N_ELEMENTS (node->ways); leg++)
    node->ways[leg]
        = ls_ways_new (kinds, in->n_vertices, link, links->len, leg == LS_LEG_FROM_NIC ? nics : gpus,
                       leg == LS_LEG_TO_NIC ? nics : gpus, c->index->arena);
}

/* Both ways, port included. */
static bool
nic_serves (const LsCluster *c, uint32_t host, uint32_t gpu, uint32_t nic)
{
  LsRoute r = { .n_hops = 0 };
  return !ls_trunk_is_failed (c, ls_node_trunk (c, host, 2 * nic))
      && !ls_trunk_is_failed (c, ls_node_trunk (c, host, 2 * nic + 1))
      && ls_route_leg (c, host, LS_LEG_TO_NIC, gpu, nic, &r)
      && ls_route_leg (c, host, LS_LEG_FROM_NIC, nic, gpu, &r);
}

/* Its own; else the nearest that serves; nics if none does. */
static uint32_t
nic_for (const LsCluster *c, uint32_t host, const LsNodeFaults *node, uint32_t gpu)
{
  const LsInterior *in = ls_interior_of (c, host);
  uint32_t n = ls_cluster_node_spec (c, host)->nics.n, own = in->kind->nic_of_gpu (in, gpu), best = n,
           nearest = UINT32_MAX;
  for (uint32_t k = 0; k < n; k++) {
    uint32_t nic = (own + k) % n;
    if (!nic_serves (c, host, gpu, nic))
      continue;
    if (k == 0)
      return own;
    const LsWays *ways = node->ways[LS_LEG_TO_NIC];
    uint32_t length = ways ? ls_ways_length (ways, gpu, nic) : 0;
    if (best == n || length < nearest) {
      best = nic;
      nearest = length;
    }
  }
  return best;
}

static gboolean
cut_off (uint32_t host, const char *from_kind, uint32_t from, const char *to, GError **error)
{
  return ls_spec_conflict (error, "faults: no way from node%u/%s%u to %s is left", host, from_kind, from, to);
}

static gboolean
check_node (const LsCluster *c, uint32_t host, LsNodeFaults *node, GError **error)
{
  uint32_t n_gpus = ls_cluster_gpus_of (c, host);
  for (uint32_t from = 0; from < n_gpus; from++) {
    for (uint32_t to = 0; to < n_gpus; to++) {
      LsRoute r = { .n_hops = 0 };
      g_autofree char *name = g_strdup_printf ("node%u/gpu%u", host, to);
      if (from != to && !ls_route_leg (c, host, LS_LEG_WITHIN, from, to, &r))
        return cut_off (host, "gpu", from, name, error);
    }
    if (node->nic_of_gpu && node->nic_of_gpu[from] == ls_cluster_node_spec (c, host)->nics.n)
      return cut_off (host, "gpu", from, "any NIC of its node", error);
    for (int is_to_host = 0; is_to_host < 2; is_to_host++) {
      LsRoute r;
      ls_route_host_memory (c, ls_cluster_gpu_at (c, host, from), is_to_host, &r);
      for (uint32_t i = 0; i < r.n_hops; i++)
        if (ls_trunk_is_failed (c, r.hop[i].trunk))
          return cut_off (host, "gpu", from, "the memory of its CPU", error);
    }
  }
  return TRUE;
}

static gboolean
finish_node (LsCluster *c, uint32_t host, LsNodeFaults *node, GError **error)
{
  find_ways (c, host, node);
  if (c->spec.nics.n > 0) {
    node->nic_of_gpu = ls_arena_new_array (c->index->arena, uint32_t, ls_cluster_gpus_of (c, host));
    for (uint32_t gpu = 0; gpu < ls_cluster_gpus_of (c, host); gpu++)
      node->nic_of_gpu[gpu] = nic_for (c, host, node, gpu);
  }
  if (!check_node (c, host, node, error))
    return FALSE;
  node->proxies = ls_proxies_new (c, host);
  return TRUE;
}

/* --- ways in the fabric --- */

/* "leaf4 (node32/nic0)": a switch, and the first NIC at it. */
static char *
describe_edge (const LsCluster *c, uint32_t edge)
{
  const LsFabric *fabric = c->index->fabric;
  uint32_t v = fabric->first_vertex + edge;
  for (guint i = 0; i < ls_first_link (c, c->spec.n_nodes); i++) {
    const LsLink *link = &g_array_index (c->links, LsLink, i);
    const LsTopoNode *nic = &g_array_index (c->nodes, LsTopoNode, link->from);
    if (link->to != v)
      continue;
    const char *name = strchr (trunk_at (c, link->trunk)->name, '>') + 1;
    return g_strdup_printf ("%s (node%u/nic%u)", name, nic->host, nic->index);
  }
  return g_strdup_printf ("switch %u", edge);
}

/* Whether PXN needs no way between rails. */
static bool
keeps_rails (const LsCluster *c)
{
  const uint32_t *proxies = c->index->layouts[0].proxies;
  uint32_t n_rails = c->spec.network.rails;
  if (!proxies || c->spec.others
      || (c->index->faulty_nodes && g_hash_table_size (c->index->faulty_nodes) > 0))
    return false;
  for (uint32_t gpu = 0; gpu < c->spec.gpus_per_node; gpu++)
    for (uint32_t rail = 0; rail < n_rails; rail++)
      if (ls_nic_of_gpu (c, proxies[gpu * n_rails + rail]) % n_rails != rail)
        return false;
  return true;
}

static gboolean
check_edges (const LsCluster *c, GError **error)
{
  const LsFabric *fabric = c->index->fabric;
  uint32_t n = fabric->n_edges;
  bool is_by_rail = keeps_rails (c);
  g_autofree uint32_t *rail = g_new0 (uint32_t, n);
  for (uint32_t host = 0; host < c->spec.n_nodes; host++)
    for (uint32_t i = 0; i < c->spec.network.rails && i < c->spec.nics.n; i++)
      rail[fabric->kind->edge (fabric, host, i)] = i;
  for (uint32_t from = 0; from < n; from++)
    for (uint32_t to = 0; to < n; to++) {
      if ((is_by_rail && rail[from] != rail[to]) || fabric->kind->reaches (fabric, c, from, to))
        continue;
      g_autofree char *a = describe_edge (c, from), *b = describe_edge (c, to);
      return ls_spec_conflict (error, "%s: no way from %s to %s",
                               c->index->faulty_nodes ? "faults" : "fabric", a, b);
    }
  return TRUE;
}

static gint
by_number (gconstpointer a, gconstpointer b)
{
  return LS_ORDER (GPOINTER_TO_UINT (a), GPOINTER_TO_UINT (b));
}

gboolean
ls_faults_finish (LsCluster *c, GError **error)
{
  if (c->index->faulty_nodes) {
    g_autoptr (GList) hosts = g_list_sort (g_hash_table_get_keys (c->index->faulty_nodes), by_number);
    for (GList *i = hosts; i; i = i->next)
      if (!finish_node (c, GPOINTER_TO_UINT (i->data), g_hash_table_lookup (c->index->faulty_nodes, i->data),
                        error))
        return FALSE;
  }
  /* Trees are whole without faults; lists need not be. */
  bool may_be_cut = c->index->has_failed_switch_links || c->index->fabric->kind->finish;
  return !may_be_cut || check_edges (c, error);
}
