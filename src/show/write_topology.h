/* show/write_topology.h — a described cluster for people and for programs. */
#ifndef LS_SHOW_WRITE_TOPOLOGY_H
#define LS_SHOW_WRITE_TOPOLOGY_H

#include <stdbool.h>
#include <stdio.h>

#include <glib.h>

#include "analysis/topology.h"

typedef struct {
  bool has_links; /* every kind of link, with its source */
  bool has_all;   /* and every trunk                     */
  bool ascii;     /* no box-drawing characters           */
} LsTopologyText;

/* paths: of LsTopoPath. Newly allocated. */
char *ls_topology_to_text (const LsTopoMap *map, const GPtrArray *paths, const LsTopologyText *text);
char *ls_topology_to_json (const LsTopoMap *map, const GPtrArray *paths, bool has_all);
/* The same to a file, a piece at a time: of 100,000 nodes it is 1.7 GB. Errors stay with the file. */
void ls_topology_write_json (const LsTopoMap *map, const GPtrArray *paths, bool has_all, FILE *out);

/* "gpu to nvswitch"; newly allocated. */
char *ls_topology_ends (const LsClusterSpec *spec, const LsTopoLinks *links);
/* "node1/gpu3"; newly allocated. */
char *ls_topology_gpu_name (const LsCluster *cluster, uint32_t gpu);

/* As a graph for Graphviz (dot -Tsvg FILE): node 0 in full, the others as one box each, the switches of the
 * fabric. Newly allocated. */
char *ls_dot_format (const LsCluster *cluster);

#endif
