#include <math.h>

#include "data/text/json_out.h"
#include "show/write_topology.h"

/* Infinity has no number in JSON: with one part nothing limits, as nothing moves. */
static void
add_both (LsJsonOut *w, const char *key, LsBandwidth b)
{
  ls_json_out_begin_object (w, key);
  ls_json_out_double (w, "data_sheet_bytes_per_s", b.data_sheet);
  ls_json_out_double (w, "payload_bytes_per_s", b.payload);
  ls_json_out_end_object (w);
}

static void
add_parts (LsJsonOut *w, const LsTopoMap *map, const GPtrArray *parts, uint64_t depth)
{
  for (guint i = 0; i < parts->len; i++) {
    const LsTopoPart *part = g_ptr_array_index (parts, i);
    ls_json_out_begin_object (w, NULL);
    ls_json_out_uint (w, "depth", depth);
    ls_json_out_uint (w, "count", part->n);
    ls_json_out_string (w, "kind", ls_topo_kind_name (part->kind));
    ls_json_out_bool (w, "is_pair", part->is_peers);
    ls_json_out_string (w, "link",
                        part->links < 0 ? NULL : g_array_index (map->links, LsTopoLinks, part->links).name);
    ls_json_out_uint (w, "n_links", part->n_physical);
    ls_json_out_end_object (w);
    add_parts (w, map, part->children, depth + 1);
  }
}

static void
add_tree (LsJsonOut *w, const char *key, const LsTopoMap *map, const GPtrArray *parts)
{
  ls_json_out_begin_array (w, key);
  add_parts (w, map, parts, 0);
  ls_json_out_end_array (w);
}

static void
add_counts (LsJsonOut *w, const LsTopoMap *map)
{
  ls_json_out_begin_array (w, "counts");
  for (int kind = 0; kind < LS_TOPO_MAX_KINDS; kind++) {
    if (map->n_of_kind[kind] == 0)
      continue;
    ls_json_out_begin_object (w, NULL);
    ls_json_out_string (w, "kind", ls_topo_kind_name ((LsNodeKind) kind));
    ls_json_out_uint (w, "count", map->n_of_kind[kind]);
    ls_json_out_end_object (w);
  }
  ls_json_out_end_array (w);
}

static void
add_levels (LsJsonOut *w, const LsTopoMap *map)
{
  ls_json_out_begin_array (w, "levels");
  for (guint i = 0; i < map->levels->len; i++) {
    const LsTopoLevel *l = &g_array_index (map->levels, LsTopoLevel, i);
    ls_json_out_begin_object (w, NULL);
    ls_json_out_string (w, "name", l->name);
    ls_json_out_string (w, "part", l->part);
    ls_json_out_uint (w, "n_groups", l->n_groups);
    ls_json_out_uint (w, "n_parts", l->n_parts);
    add_both (w, "each", l->each);
    add_both (w, "together", l->together);
    add_both (w, "all_gather", l->all_gather);
    ls_json_out_end_object (w);
  }
  ls_json_out_end_array (w);
}

static void
add_links (LsJsonOut *w, const LsTopoMap *map)
{
  ls_json_out_begin_array (w, "links");
  for (guint i = 0; i < map->links->len; i++) {
    const LsTopoLinks *l = &g_array_index (map->links, LsTopoLinks, i);
    ls_json_out_begin_object (w, NULL);
    ls_json_out_string (w, "name", l->name);
    ls_json_out_string (w, "from", ls_topo_kind_name (l->a));
    ls_json_out_string (w, "to", ls_topo_kind_name (l->b));
    ls_json_out_uint (w, "n_pairs", l->n_pairs);
    ls_json_out_uint (w, "n_links", l->n_physical);
    ls_json_out_double (w, "data_sheet_bytes_per_s", ls_topo_links_rate (l).data_sheet);
    ls_json_out_double (w, "efficiency", l->link ? l->link->efficiency : NAN);
    ls_json_out_double (w, "payload_bytes_per_s", l->capacity_bytes_per_s);
    ls_json_out_double (w, "latency_s", ls_time_to_s (l->latency));
    ls_json_out_string (w, "source", l->link ? l->link->source : NULL);
    ls_json_out_end_object (w);
  }
  ls_json_out_end_array (w);
}

static void
add_trunk (LsJsonOut *w, const LsTrunk *trunk)
{
  ls_json_out_string (w, "name", trunk->name);
  ls_json_out_double (w, "data_sheet_bytes_per_s", ls_topo_trunk_rate (trunk).data_sheet);
  ls_json_out_double (w, "payload_bytes_per_s", ls_topo_trunk_rate (trunk).payload);
  ls_json_out_double (w, "latency_s", ls_time_to_s (trunk->latency));
}

static void
add_trunks (LsJsonOut *w, const LsCluster *c)
{
  ls_json_out_begin_array (w, "trunks");
  for (guint i = 0; i < c->n_trunks; i++) {
    ls_json_out_begin_object (w, NULL);
    add_trunk (w, &g_array_index (c->trunks, LsTrunk, i));
    ls_json_out_end_object (w);
  }
  ls_json_out_end_array (w);
}

static void
add_path (LsJsonOut *w, const LsCluster *c, const LsTopoPath *path)
{
  g_autofree char *from = ls_topology_gpu_name (c, path->from), *to = ls_topology_gpu_name (c, path->to);
  ls_json_out_begin_object (w, NULL);
  ls_json_out_string (w, "from", from);
  ls_json_out_string (w, "to", to);
  ls_json_out_double (w, "payload_bytes_per_s", path->rate);
  ls_json_out_double (w, "latency_s", ls_time_to_s (path->latency));
  ls_json_out_string (w, "narrowest", g_array_index (path->hops, LsTopoHop, path->narrowest).trunk->name);
  ls_json_out_begin_array (w, "hops");
  for (guint i = 0; i < path->hops->len; i++) {
    const LsTopoHop *hop = &g_array_index (path->hops, LsTopoHop, i);
    ls_json_out_begin_object (w, NULL);
    add_trunk (w, hop->trunk);
    ls_json_out_double (w, "share", hop->share);
    ls_json_out_end_object (w);
  }
  ls_json_out_end_array (w);
  ls_json_out_end_object (w);
}

static void
add_head (LsJsonOut *w, const LsCluster *c)
{
  const LsClusterSpec *s = &c->spec;
  ls_json_out_string (w, "cluster", s->name);
  ls_json_out_string (w, "source", s->source);
  ls_json_out_string (w, "gpu", ls_cluster_node_spec (c, 0)->gpu.name);
  ls_json_out_uint (w, "n_nodes", s->n_nodes);
  ls_json_out_uint (w, "gpus_per_node", ls_cluster_gpus_of (c, 0));
  ls_json_out_uint (w, "n_gpus", c->n_gpus);
}

/* Of nodes of other kinds than that of node 0. */
static void
add_others (LsJsonOut *w, const LsTopoMap *map)
{
  if (!map->others)
    return;
  ls_json_out_begin_array (w, "other_nodes");
  for (guint i = 0; i < map->others->len; i++) {
    const LsTopoOther *other = &g_array_index (map->others, LsTopoOther, i);
    ls_json_out_begin_object (w, NULL);
    ls_json_out_uint (w, "first", other->host);
    ls_json_out_string (w, "gpu", ls_cluster_node_spec (map->cluster, other->host)->gpu.name);
    ls_json_out_uint (w, "gpus_per_node", ls_cluster_gpus_of (map->cluster, other->host));
    add_tree (w, "node", map, other->parts);
    ls_json_out_end_object (w);
  }
  ls_json_out_end_array (w);
}

static GString *
write_json (const LsTopoMap *map, const GPtrArray *paths, bool has_all, FILE *file)
{
  GString *text = g_string_new (NULL);
  LsJsonOut w;
  ls_json_out_init (&w, text, 2);
  w.file = file;
  ls_json_out_begin_object (&w, NULL);
  ls_json_out_schema (&w, "topology");
  add_head (&w, map->cluster);
  add_counts (&w, map);
  add_tree (&w, "node", map, map->node);
  add_others (&w, map);
  add_tree (&w, "fabric", map, map->fabric);
  add_levels (&w, map);
  ls_json_out_begin_object (&w, "bisection");
  add_both (&w, "node", map->node_bisection);
  add_both (&w, "cluster", map->cluster_bisection);
  ls_json_out_end_object (&w);
  add_links (&w, map);
  if (has_all)
    add_trunks (&w, map->cluster);
  ls_json_out_begin_array (&w, "paths");
  for (guint i = 0; i < paths->len; i++)
    add_path (&w, map->cluster, g_ptr_array_index (paths, i));
  ls_json_out_end_array (&w);
  ls_json_out_end_object (&w);
  g_string_append_c (text, '\n');
  return text;
}

char *
ls_topology_to_json (const LsTopoMap *map, const GPtrArray *paths, bool has_all)
{
  return g_string_free (write_json (map, paths, has_all, NULL), FALSE);
}

void
ls_topology_write_json (const LsTopoMap *map, const GPtrArray *paths, bool has_all, FILE *out)
{
  GString *rest = write_json (map, paths, has_all, out);
  fwrite (rest->str, 1, rest->len, out);
  g_string_free (rest, TRUE);
}
