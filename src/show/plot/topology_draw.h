/* show/plot/topology_draw.h — the parts of a drawn topology (private to plot_topology.c and its
 * neighbours): each draws itself at `top` and says how much room it took. */
#ifndef LS_SHOW_PLOT_TOPOLOGY_DRAW_H
#define LS_SHOW_PLOT_TOPOLOGY_DRAW_H

#include "analysis/topology.h"
#include "show/plot/scene.h"

#define LS_DRAW_MARGIN 28.0
#define LS_DRAW_INK    0x222222
#define LS_DRAW_FAINT  0x777777

typedef struct {
  double width, height;
} LsExtent;

LsExtent ls_draw_node (LsScene *scene, const LsTopoMap *map, double top);
LsExtent ls_draw_torus (LsScene *scene, const LsTopoMap *map, double top);
LsExtent ls_draw_fabric (LsScene *scene, const LsTopoMap *map, double top);

/* Of a vertex and of a link, the same in all parts. */
guint32 ls_draw_kind_color (LsNodeKind kind);
guint32 ls_draw_link_color (const char *name);

/* One line per kind of link that `wanted` says yes to, with a stroke of its colour. */
LsExtent ls_draw_legend (LsScene *scene, const LsTopoMap *map, bool (*wanted) (const LsTopoLinks *links),
                         double top);

/* A box with its kind and number. */
void ls_draw_vertex (LsScene *scene, double x, double y, double w, double h, LsNodeKind kind,
                     uint32_t number);

#endif
