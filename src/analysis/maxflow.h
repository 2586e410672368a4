/* analysis/maxflow.h — the most that can flow between two sets of vertices of a graph,
 * which is the least capacity whose removal parts them (Ford and Fulkerson, Canadian
 * Journal of Mathematics 8, 1956).
 *
 * Dinic's algorithm (Soviet Mathematics Doklady 11, 1970): while breadth-first search
 * finds a way, saturate all shortest ways at once. Capacities are whole numbers, so the
 * result is exact and does not depend on the order of edges. */
#ifndef LS_ANALYSIS_MAXFLOW_H
#define LS_ANALYSIS_MAXFLOW_H

#include <stdint.h>

#include <glib.h>

typedef struct {
  uint32_t from, to;
  int64_t capacity; /* >= 0, this direction only */
} LsFlowEdge;

/* side[v]: -1 a source, 1 a sink, 0 neither. The sum of all capacities must be below
 * 2^62. edges: of LsFlowEdge. */
int64_t ls_max_flow (uint32_t n_vertices, const GArray *edges, const int8_t *side);

#endif
