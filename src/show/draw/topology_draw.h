/* show/draw/topology_draw.h — the parts of a drawn topology (private to draw_topology.c and its
 * neighbours): each draws itself at `top` and says how much room it took. */
#ifndef LS_SHOW_DRAW_TOPOLOGY_DRAW_H
#define LS_SHOW_DRAW_TOPOLOGY_DRAW_H

#include "analysis/topology.h"
#include "show/draw/drawing.h"

#define LS_DRAW_MARGIN 28.0

typedef struct {
  double width, height;
} LsExtent;

LsExtent ls_draw_node (LsDrawing *d, const LsTopoMap *map, double top);
LsExtent ls_draw_torus (LsDrawing *d, const LsTopoMap *map, double top);
LsExtent ls_draw_fabric (LsDrawing *d, const LsTopoMap *map, double top);

/* Of a vertex and of a link, the same in all parts. */
const char *ls_draw_kind_paint (LsNodeKind kind);
const char *ls_draw_link_paint (const char *name);

/* One line per kind of link that `wanted` says yes to, with a stroke of its colour. */
LsExtent ls_draw_links_legend (LsDrawing *d, const LsTopoMap *map, bool (*wanted) (const LsTopoLinks *links),
                               double top);

/* A box with its kind and number. */
void ls_draw_vertex (LsDrawing *d, double x, double y, double w, double h, LsNodeKind kind, uint32_t number);

#endif
