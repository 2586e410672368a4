/* capture/standin_kernels.c — kernels by their names, what is asked of one, and graphs of them. Registers and
 * shared memory of a module are read from its cubin: section .text.NAME holds registers in the highest byte
 * of sh_info (as `cuobjdump -elf` and `ptxas -v` say), .nv.shared.NAME has the size of its static shared
 * memory. Kernels of the runtime lie in compressed archives; of these LS_REGISTERS is assumed. */
#include "capture/standin.h"

#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "capture/standin_answers.h"

typedef struct {
  char *name;
  int registers, shared;
} Function;

/* --- by the address of their stub in the host's code --- */

static struct {
  const void *host;
  const char *name;
} * known; /* open addressing */
static size_t n_known, max_known;

static size_t
slot_of (const void *host)
{
  size_t at = ((uintptr_t) host >> 4) * UINT64_C (0x9e3779b97f4a7c15) & (max_known - 1);
  while (known[at].host && known[at].host != host)
    at = (at + 1) & (max_known - 1);
  return at;
}

static void
grow (void)
{
  __typeof__ (known) before = known;
  size_t n = max_known;
  max_known = n ? 2 * n : 1 << 16;
  known = calloc (max_known, sizeof *known);
  for (size_t i = 0; i < n; i++)
    if (before[i].host)
      known[slot_of (before[i].host)] = before[i];
  free (before);
}

void
ls_kernel_register (const void *host, const char *name)
{
  if (2 * (n_known + 1) > max_known)
    grow ();
  size_t at = slot_of (host);
  n_known += !known[at].host;
  known[at].host = host;
  known[at].name = name;
}

const char *
ls_kernel_name (const void *host)
{
  return max_known && known[slot_of (host)].host ? known[slot_of (host)].name : NULL;
}

/* Of FlashAttention-2 as PyTorch has it (its kernels are named after the width of a head, and a block of the
 * grid takes 128 queries or keys of one head and sequence): 4 S^2 D FLOPs forward, 10 backward, half of them
 * where a mask is causal, at four tenths of the peak (assumed). 0: it is another kernel. */
static double
attention_seconds (const char *name, LsDim3 grid)
{
  const char *traits = name ? strstr (name, "_kernel_traitsILi") : NULL;
  if (!traits || !strstr (name, "flash_"))
    return 0;
  double width = atof (traits + strlen ("_kernel_traitsILi")), length = 128.0 * grid.x;
  double products = strstr (name, "flash_bwd") ? 10 : 4;
  return products / 2 * length * length * width * grid.y * grid.z / (0.4 * ls_device.flops[0]);
}

/* A thread reads and writes some 32 bytes: elementwise kernels of PyTorch take four elements of two
 * tensors. */
void
ls_launch (const char *name, LsDim3 grid, LsDim3 block, void *stream)
{
  double threads = (double) grid.x * grid.y * grid.z * block.x * block.y * block.z;
  double seconds = threads * 32 / ls_device.hbm, attention = attention_seconds (name, grid);
  seconds = attention > seconds ? attention : seconds;
  uint64_t key = ls_trace (name, (const int64_t[]) { grid.x, grid.y, grid.z, block.x, block.y, block.z }, 6);
  ls_stream_work (stream, key, seconds > 2e-6 ? seconds : 2e-6);
  ls_count ("kernels", 1);
  ls_record ('k', stream, " %d %u %u %u %u %u %u", ls_record_name (name), grid.x, grid.y, grid.z, block.x,
             block.y, block.z);
}

void
ls_capture_launch (const char *name, unsigned x, unsigned y, unsigned z, unsigned threads, void *stream)
{
  ls_enter ("launch");
  ls_launch (name, (LsDim3) { x, y, z }, (LsDim3) { threads, 1, 1 }, stream);
  ls_leave ();
}

/* CUDA's occupancy: warps, registers in units of 256 a warp, shared memory in units of 128 bytes. */
int
ls_blocks_per_sm (int registers, int threads, size_t shared)
{
  int warps = (threads + 31) / 32;
  int per_warp = (registers * 32 + 255) / 256 * 256;
  size_t per_block = (shared + (size_t) ls_device_attribute (111) + 127) / 128 * 128;
  int by_warps = warps > 0 ? ls_device.warps_per_sm / warps : 0;
  int by_registers = warps > 0 && per_warp > 0 ? 65536 / per_warp / warps : by_warps;
  int by_shared
      = per_block > 0 ? (int) ((size_t) ls_device.shared_per_sm / per_block) : ls_device.blocks_per_sm;
  int n = by_warps < by_registers ? by_warps : by_registers;
  n = n < by_shared ? n : by_shared;
  return n < ls_device.blocks_per_sm ? n : ls_device.blocks_per_sm;
}

/* --- <<<grid, block>>> --- */

static _Thread_local struct {
  LsDim3 grid, block;
  size_t shared;
  void *stream;
} calls[16];
static _Thread_local int n_calls;

void
ls_call_push (LsDim3 grid, LsDim3 block, size_t shared, void *stream)
{
  if (n_calls < 16) {
    calls[n_calls].grid = grid;
    calls[n_calls].block = block;
    calls[n_calls].shared = shared;
    calls[n_calls].stream = stream;
  }
  n_calls++;
}

int
ls_call_pop (LsDim3 *grid, LsDim3 *block, size_t *shared, void **stream)
{
  if (n_calls == 0 || n_calls-- > 16)
    return CUDA_INVALID;
  *grid = calls[n_calls].grid;
  *block = calls[n_calls].block;
  *shared = calls[n_calls].shared;
  *stream = calls[n_calls].stream;
  return CUDA_OK;
}

/* --- modules --- */

typedef struct {
  Function *functions;
  size_t n;
} Module;

static void
add_function (Module *m, const char *name, int registers)
{
  m->functions = realloc (m->functions, (m->n + 1) * sizeof *m->functions);
  m->functions[m->n++] = (Function) { strdup (name), registers, 0 };
}

static void
read_cubin (Module *m, const char *image)
{
  const Elf64_Ehdr *head = (const void *) image;
  if (memcmp (head->e_ident, ELFMAG, SELFMAG) != 0 || head->e_ident[EI_CLASS] != ELFCLASS64)
    return;
  const Elf64_Shdr *sections = (const void *) (image + head->e_shoff);
  const char *names = image + sections[head->e_shstrndx].sh_offset;
  for (int i = 0; i < head->e_shnum; i++) {
    const char *name = names + sections[i].sh_name;
    if (strncmp (name, ".text.", 6) == 0)
      add_function (m, name + 6, (int) (sections[i].sh_info >> 24));
  }
  for (int i = 0; i < head->e_shnum; i++) {
    const char *name = names + sections[i].sh_name;
    for (size_t f = 0; f < m->n && strncmp (name, ".nv.shared.", 11) == 0; f++)
      if (strcmp (m->functions[f].name, name + 11) == 0)
        m->functions[f].shared = (int) sections[i].sh_size;
  }
}

void *
ls_module_new (const void *image)
{
  Module *m = calloc (1, sizeof *m);
  read_cubin (m, image);
  return m;
}

void *
ls_module_load (const char *path)
{
  FILE *file = fopen (path, "rb");
  void *module = NULL;
  long n = file && fseek (file, 0, SEEK_END) == 0 ? ftell (file) : -1;
  char *image = n > 0 ? malloc ((size_t) n) : NULL;
  if (image && fseek (file, 0, SEEK_SET) == 0 && fread (image, 1, (size_t) n, file) == (size_t) n)
    module = ls_module_new (image);
  free (image);
  if (file)
    fclose (file);
  return module;
}

/* One that the image does not list is made: PTX and archives are not read. */
void *
ls_module_function (void *module, const char *name)
{
  Module *m = module;
  for (size_t i = 0; i < m->n; i++)
    if (strcmp (m->functions[i].name, name) == 0) {
      Function *f = malloc (sizeof *f);
      *f = m->functions[i];
      ls_kernel_register (f, f->name);
      return f;
    }
  Function *f = calloc (1, sizeof *f);
  *f = (Function) { strdup (name), LS_REGISTERS, 0 };
  ls_kernel_register (f, f->name);
  ls_count ("kernels whose registers are assumed", 1);
  return f;
}

/* The newest generation that a library has code for, of those that run on this GPU: PyTorch's wheels and CUB
 * go by it. 8.9 takes code of 8.6, 10.3 that of 10.0. */
static int
code_of_gpu (void)
{
  static const int generations[] = { 120, 100, 90, 86, 80, 75, 70 };
  for (size_t i = 0; i < sizeof generations / sizeof *generations; i++)
    if (generations[i] <= ls_device.capability)
      return generations[i];
  return ls_device.capability;
}

/* CU_FUNC_ATTRIBUTE_: 0 threads a block, 1 static shared memory, 2 constants, 3 local, 4 registers, 5 PTX, 6
 * binary, 7 cache, 8 dynamic shared memory, 9 carve-out. */
int
ls_function_attribute (const void *function, int attribute)
{
  const Function *f = function;
  switch (attribute) {
  case 0:
    return f->registers > 64 ? 65536 / f->registers / 32 * 32 : 1024;
  case 1:
    return f->shared;
  case 4:
    return f->registers;
  case 5:
  case 6:
    return code_of_gpu ();
  case 8:
    return ls_device.shared_per_block - f->shared;
  default:
    return attribute == 9 ? -1 : 0;
  }
}

/* struct cudaFuncAttributes: three size_t, then threads, registers, PTX, binary, cache, dynamic shared
 * memory. */
void
ls_function_attributes (const void *host, void *ret)
{
  size_t *sizes = ret;
  int *ints = (int *) (sizes + 3);
  (void) host;
  sizes[0] = sizes[1] = sizes[2] = 0;
  ints[0] = 1024;
  ints[1] = LS_REGISTERS;
  ints[2] = ints[3] = code_of_gpu ();
  ints[4] = 0;
  ints[5] = ls_device.shared_per_block;
  ints[6] = -1;
}

/* ---- graphs of CUDA ---- */

/* What streams are given while one is made of it is not done then,
 * but at each launch: its kernels, products and collectives are counted, and it takes as long as its longest
 * way through streams that wait for each other. What it computes on integers was computed when it was
 * made. */
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
  ls_stream_pass (stream, ls_trace ("graph", graph->n, N_KINDS), graph->done);
  count (graph, 1);
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
