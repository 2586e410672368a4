#include "cluster/layout.h"

#include "cluster/index.h"
#include "cluster/spec.h"

#include <string.h>

/* --- names: "node3/gpu5>nvswitch". printf would dominate the build. --- */

typedef struct {
  char text[2 * LS_MAX_VERTEX_NAME + 64];
  size_t n;
} Name;

static void
put (Name *name, const char *text)
{
  size_t n = strlen (text);
  g_assert (name->n + n < sizeof name->text);
  memcpy (name->text + name->n, text, n + 1);
  name->n += n;
}

static void
put_number (Name *name, uint32_t value)
{
  char digits[12];
  size_t i = sizeof digits;
  digits[--i] = '\0';
  do
    digits[--i] = (char) ('0' + value % 10);
  while (value /= 10);
  put (name, digits + i);
}

static void
put_end (Name *name, const LsEnd *end, uint32_t named_host)
{
  if (end->host != LS_NO_NUMBER && end->host != named_host) {
    put (name, "node");
    put_number (name, end->host);
    put (name, "/");
  }
  put (name, end->kind);
  if (end->number != LS_NO_NUMBER)
    put_number (name, end->number);
}

static Name
name_of (const LsEnd *from, const LsEnd *to)
{
  Name name = { .n = 0 };
  put_end (&name, from, LS_NO_NUMBER);
  put (&name, ">");
  put_end (&name, to, from->host);
  return name;
}

char *
ls_layout_name (LsEnd from, LsEnd to)
{
  const Name name = name_of (&from, &to);
  return g_strdup (name.text);
}

static char *
trunk_name (const LsCluster *c, const LsEnd *from, const LsEnd *to)
{
  const Name name = name_of (from, to);
  return g_string_chunk_insert_len (c->index->names, name.text, (gssize) name.n);
}

/* --- vertices, links, trunks --- */

void
ls_layout_vertices (LsCluster *c, LsNodeKind kind, uint32_t host, uint32_t n)
{
  guint first = c->nodes->len;
  g_array_set_size (c->nodes, first + n);
  LsTopoNode *nodes = &g_array_index (c->nodes, LsTopoNode, first);
  for (uint32_t i = 0; i < n; i++)
    nodes[i] = (LsTopoNode) { .kind = kind, .host = host, .index = i };
}

/* Those of the fabric come last. */
static LsNodeKind
kind_of (const LsCluster *c, uint32_t vertex)
{
  return vertex < c->nodes->len ? g_array_index (c->nodes, LsTopoNode, vertex).kind : LS_NODE_LEAF;
}

static void
add_link (LsCluster *c, uint32_t from, uint32_t to, uint32_t trunk, uint32_t n_physical,
          const LsLinkSpec *spec)
{
  LsLink link = { .from = from,
                  .to = to,
                  .trunk = trunk,
                  .n_physical = n_physical,
                  .capacity_bytes_per_s = n_physical * ls_link_capacity (spec),
                  .latency = spec->latency };
  LsTrunk *carrier = &g_array_index (c->trunks, LsTrunk, trunk);
  carrier->from = (uint8_t) kind_of (c, from);
  carrier->to = (uint8_t) kind_of (c, to);
  if (c->index->has_links)
    g_array_append_val (c->links, link);
}

void
ls_layout_trunks (LsCluster *c, LsEnd a, LsEnd b, const LsLinkSpec *spec)
{
  LsTrunk trunk = { .name = trunk_name (c, &a, &b), .latency = spec->latency, .link = spec };
  g_array_append_val (c->trunks, trunk);
  trunk.name = trunk_name (c, &b, &a);
  g_array_append_val (c->trunks, trunk);
}

void
ls_layout_links (LsCluster *c, uint32_t a, uint32_t b, uint32_t n_physical, const LsLinkSpec *spec)
{
  uint32_t outward = c->trunks->len - 2;
  add_link (c, a, b, outward, n_physical, spec);
  add_link (c, b, a, outward + 1, n_physical, spec);
  for (uint32_t t = outward; t < outward + 2; t++)
    g_array_index (c->trunks, LsTrunk, t).capacity_bytes_per_s += n_physical * ls_link_capacity (spec);
}

/* Where links are not kept, the first says between what they are. */
void
ls_layout_pair (LsCluster *c, LsEnd a, LsEnd b, uint32_t n, uint32_t n_physical, const LsLinkSpec *spec)
{
  uint32_t outward = c->trunks->len, n_seen = c->index->has_links ? n : MIN (n, 1);
  ls_layout_trunks (c, a, b, spec);
  for (uint32_t i = 0; i < n_seen; i++)
    ls_layout_links (c, a.vertex, b.vertex + i, n_physical / n + (i < n_physical % n), spec);
  for (uint32_t t = outward; t < outward + 2; t++) /* one product, not a rounded sum */
    g_array_index (c->trunks, LsTrunk, t).capacity_bytes_per_s = n_physical * ls_link_capacity (spec);
}

void
ls_layout_limit (LsCluster *c, double share, LsTime latency)
{
  uint32_t outward = c->trunks->len - 2;
  for (guint i = c->links->len; i-- > 0 && g_array_index (c->links, LsLink, i).trunk >= outward;) {
    g_array_index (c->links, LsLink, i).capacity_bytes_per_s *= share;
    g_array_index (c->links, LsLink, i).latency = latency;
  }
  for (uint32_t t = outward; t < outward + 2; t++) {
    g_array_index (c->trunks, LsTrunk, t).capacity_bytes_per_s *= share;
    g_array_index (c->trunks, LsTrunk, t).latency = latency;
  }
}

GStrv
ls_cluster_host_trunk_names (const LsCluster *c, uint32_t host)
{
  LsTopoIndex index = *c->index;
  LsCluster one = *c;
  index.names = g_string_chunk_new (4096);
  one.index = &index;
  one.nodes = g_array_new (FALSE, FALSE, sizeof (LsTopoNode));
  one.links = g_array_new (FALSE, FALSE, sizeof (LsLink));
  one.trunks = g_array_new (FALSE, FALSE, sizeof (LsTrunk));
  const LsInterior *interior = ls_interior_of (c, host);
  interior->kind->lay_out (interior, &one, host);
  index.fabric->kind->lay_out_node (index.fabric, &one, host);
  GStrv names = g_new0 (char *, one.trunks->len + 1);
  for (guint i = 0; i < one.trunks->len; i++)
    names[i] = g_strdup (g_array_index (one.trunks, LsTrunk, i).name);
  g_array_unref (one.nodes);
  g_array_unref (one.links);
  g_array_unref (one.trunks);
  g_string_chunk_free (index.names);
  return names;
}
