/* show/draw/topology_draw.h — the parts of a drawn topology (private to draw_topology.c and its
 * neighbours): each draws itself at `top` and says how much room it took. */
#ifndef LS_SHOW_DRAW_TOPOLOGY_DRAW_H
#define LS_SHOW_DRAW_TOPOLOGY_DRAW_H

#include "show/draw/pictures.h"

#define LS_DRAW_MARGIN 28.0

typedef struct {
  double width, height;
} LsExtent;

/* use: NULL: links have the colours of their kinds. */
LsExtent ls_draw_node (LsDrawing *d, const LsTopoMap *map, const LsTopoUse *use, double top);
LsExtent ls_draw_torus (LsDrawing *d, const LsTopoMap *map, const LsTopoUse *use, double top);
LsExtent ls_draw_fabric (LsDrawing *d, const LsTopoMap *map, const LsTopoUse *use, double top);

/* show/draw/draw_topology.c: the share of its capacity that a link carried, in its busier direction, over
 * the step. Inside of nodes the most of all nodes. 0: idle, or no link; of NULL. */
double ls_topo_use_between (const LsTopoUse *use, uint32_t v, uint32_t w);
/* By its use, or its kind if that is NULL, then as wide as asked. The stroke's tip is in `tip`. */
#define LS_LINK_TIP 80
LsStroke ls_draw_link_stroke (const LsTopoUse *use, const char *name, double share, double width,
                              char tip[LS_LINK_TIP]);

/* Of a vertex and of a link, the same in all parts. */
const char *ls_draw_kind_paint (LsNodeKind kind);

/* A box with its kind and number. */
void ls_draw_vertex (LsDrawing *d, double x, double y, double w, double h, LsNodeKind kind, uint32_t number);

#endif
