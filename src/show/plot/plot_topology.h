/* show/plot/plot_topology.h — a picture of a cluster: one node, and the fabric. What there are
 * too many of to read is drawn in part, and says so. */
#ifndef LS_SHOW_PLOT_PLOT_TOPOLOGY_H
#define LS_SHOW_PLOT_PLOT_TOPOLOGY_H

#include "analysis/topology.h"

/* .svg or .png, with .gp and .dat beside it; errors as of show/plot/picture.h. */
gboolean ls_plot_topology (const LsTopoMap *map, const char *path, GError **error);

#endif
