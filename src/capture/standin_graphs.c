/* capture/standin_graphs.c — graphs of CUDA: what streams are given while one is made of it is not done then,
 * but at each launch: its kernels, products and collectives are counted, and it takes as long as its longest
 * way through streams that wait for each other. What it computes on integers was computed when it was
 * made. */
#include "capture/standin.h"

#include <stdlib.h>

#include "capture/standin_answers.h"

static const char *const kinds[] = { "kernels", "products", "collectives", "plans of cuDNN" };

enum { N_KINDS = sizeof kinds / sizeof *kinds };

typedef struct {
  int64_t n[N_KINDS], done[LS_N_SPEEDS];
} Graph;

static Graph **graphs; /* the handle of each is its place, from 1 on, and GRAPH: they stay */
static size_t n_graphs, max_graphs;

#define GRAPH 0x10000

static Graph *
graph_of (const void *handle)
{
  uintptr_t place = (uintptr_t) handle - GRAPH - 1;
  return (uintptr_t) handle > GRAPH && place < n_graphs ? graphs[place] : NULL;
}

static void *
handle_of (int id)
{
  return (void *) (uintptr_t) (GRAPH + id);
}

void *
ls_graph_new (void)
{
  if (n_graphs == max_graphs)
    graphs = realloc (graphs, (max_graphs = max_graphs ? 2 * max_graphs : 64) * sizeof *graphs);
  graphs[n_graphs++] = calloc (1, sizeof (Graph));
  return handle_of ((int) n_graphs);
}

void *
ls_graph_of (void *stream)
{
  int id = ls_stream_of (stream)->capturing;
  return id > 0 ? handle_of (id) : NULL;
}

static void
count (const Graph *graph, int64_t sign)
{
  for (size_t i = 0; i < N_KINDS; i++)
    ls_count (kinds[i], sign * graph->n[i]);
}

int
ls_graph_begin (void *stream, void *handle)
{
  handle = handle ? handle : ls_graph_new ();
  Graph *graph = graph_of (handle);
  if (!graph || ls_graph_of (stream))
    return CUDA_INVALID;
  ls_stream_capture (ls_stream_of (stream), (int) ((uintptr_t) handle - GRAPH));
  for (size_t i = 0; i < N_KINDS; i++)
    graph->n[i] -= ls_count (kinds[i], 0);
  ls_count ("graphs", 1);
  ls_record_graph ('b', ls_stream_of (stream)->capturing);
  return CUDA_OK;
}

int
ls_graph_end (void *stream, void **ret_graph)
{
  void *handle = ls_graph_of (stream);
  Graph *graph = graph_of (handle);
  if (!graph)
    return CUDA_INVALID;
  ls_record_graph ('x', ls_stream_of (stream)->capturing);
  ls_stream_captured (ls_stream_of (stream)->capturing, graph->done);
  for (size_t i = 0; i < N_KINDS; i++)
    graph->n[i] += ls_count (kinds[i], 0);
  count (graph, -1);
  if (ret_graph)
    *ret_graph = handle;
  return CUDA_OK;
}

int
ls_graph_launch (void *handle, void *stream)
{
  const Graph *graph = graph_of (handle);
  if (!graph)
    return CUDA_INVALID;
  ls_stream_pass (stream, graph->done);
  count (graph, 1);
  ls_trace ("graph", graph->n, N_KINDS);
  ls_record ('g', stream, " %d %lld %lld %lld", (int) ((uintptr_t) handle - GRAPH), (long long) graph->n[0],
             (long long) graph->n[1], (long long) graph->done[0]);
  ls_count ("launches of graphs", 1);
  return CUDA_OK;
}

/* What an empty one has is nothing. */
size_t
ls_graph_size (const void *handle)
{
  const Graph *graph = graph_of (handle);
  int64_t n = 0;
  for (size_t i = 0; graph && i < N_KINDS; i++)
    n += graph->n[i];
  return (size_t) n;
}
