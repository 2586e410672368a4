/* show/write_dot.h — a cluster as a graph for Graphviz (dot -Tsvg FILE): node 0 in full,
 * the others as one box each, the switches of the fabric. */
#ifndef LS_SHOW_WRITE_DOT_H
#define LS_SHOW_WRITE_DOT_H

#include <glib.h>

#include "cluster/cluster.h"

/* Newly allocated. */
char *ls_dot_format (const LsCluster *cluster);

#endif
