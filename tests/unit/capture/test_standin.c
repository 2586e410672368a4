/* Pins: the stand-ins of CUDA's libraries answer as a GPU of the named size would: memory is charged and
 * given back, work on streams takes time that only calls move, other ranks answer as this one; whatever is
 * called in whatever order, nothing of the process is harmed. */
#include "ls_test.h"

#include <glib/gstdio.h>
#include <string.h>
#include <unistd.h>

#include "capture/standin_answers.h"

int cudaMalloc (void **memory, size_t bytes);
int cudaFree (void *memory);
int cudaGetDeviceCount (int *n);
int cudaSetDevice (int device);
int cudaMemGetInfo (size_t *free_bytes, size_t *total);
int cudaMemcpyAsync (void *to, const void *from, size_t bytes, int kind, void *stream);
int cudaStreamCreate (void **stream);
int cudaStreamSynchronize (void *stream);
int cudaDeviceSynchronize (void);
int cudaEventCreate (void **event);
int cudaEventRecord (void *event, void *stream);
int cudaEventDestroy (void *event);
int cudaEventQuery (void *event);
int cudaEventSynchronize (void *event);
int cudaEventElapsedTime (float *ms, void *from, void *to);
int cudaStreamBeginCapture (void *stream, int mode);
int cudaStreamEndCapture (void *stream, void **graph);
int cudaStreamIsCapturing (void *stream, int *status);
int cudaGraphInstantiate (void **executable, void *graph);
int cudaGraphLaunch (void *executable, void *stream);
int cudaGraphGetNodes (void *graph, void *nodes, size_t *n);
int cudaStreamWaitEvent (void *stream, void *event, unsigned flags);
int cudaLaunchKernel (const void *kernel, LsDim3 grid, LsDim3 block, void **arguments, size_t shared,
                      void *stream);
int cudaGetDriverEntryPoint (const char *name, void **ret, unsigned long long flags, int *status);
int cudaPointerGetAttributes (void *attributes, const void *memory);
int cuGetExportTable (const void **table);
int cuMemAddressReserve (uint64_t *address, size_t bytes, size_t alignment, uint64_t wanted,
                         unsigned long long flags);
int cuMemAddressFree (uint64_t address, size_t bytes);
int cuMemCreate (uint64_t *handle, size_t bytes, const void *properties, unsigned long long flags);
int cuMemMap (uint64_t address, size_t bytes, size_t offset, uint64_t handle, unsigned long long flags);
int cuMemUnmap (uint64_t address, size_t bytes);
int cuMemRelease (uint64_t handle);
int ncclCommInitRank (void **communicator, int n, LsUniqueId id, int rank);
int ncclCommSplit (void *communicator, int color, int key, void **ret, void *config);
int ncclCommCount (void *communicator, int *n);
int ncclAllReduce (const void *from, void *to, size_t n, int type, int op, void *communicator, void *stream);
int ncclAllGather (const void *from, void *to, size_t n, int type, void *communicator, void *stream);
int ncclReduceScatter (const void *from, void *to, size_t n, int type, int op, void *communicator,
                       void *stream);
int ncclBroadcast (const void *from, void *to, size_t n, int type, int root, void *communicator,
                   void *stream);
int ncclSend (const void *from, size_t n, int type, int peer, void *communicator, void *stream);
int ncclRecv (void *to, size_t n, int type, int peer, void *communicator, void *stream);
int ncclGroupStart (void);
int ncclGroupEnd (void);
int ncclCommInitAll (void **communicators, int n, const int *devices);
int nvmlDeviceGetHandleByIndex (unsigned i, void **device);
int nvmlDeviceGetComputeRunningProcesses (void *device, unsigned *n, void *processes);
int cuptiSubscribe (void **subscriber);
int cuptiActivityGetNextRecord (void);
int cudnnCreateTensorDescriptor (void **d);
int cudnnSetTensorNdDescriptor (void *d, int type, int n, const int *sizes);
int cudnnDestroyTensorDescriptor (void *d);
int cudnnGetProperty (int part, int *value);
int InitializeInjectionNvtx2 (const void *(*table_of) (uint32_t));

#define MIB ((size_t) 1 << 20)

static void
name_gpu (void)
{
  g_setenv (
      "LOCKSTEP_CAPTURE",
      "name=NVIDIA_H100_80GB_HBM3 memory=8589934592 context=104857600 capability=90 sm=132 devices=8 cuda=13000 "
      "driver=13000 nccl=22707 cudnn=91000 warps_per_sm=64 blocks_per_sm=32 shared_per_sm=233472 "
      "shared_per_block=232448 l2=52428800 flops16=1e15 flops8=2e15 tf32=5e14 fp32=6.7e13 hbm=3e12 bus=3e11",
      TRUE);
}

static size_t
free_now (void)
{
  size_t n, total;
  LS_CHECK_INT (cudaMemGetInfo (&n, &total), ==, CUDA_OK);
  LS_CHECK_INT (total, ==, (uint64_t) 8192 * MIB);
  return n;
}

static void
memory_is_charged_and_given_back (void)
{
  void *a, *b, *none;
  name_gpu ();
  size_t before = free_now ();
  LS_CHECK_INT (before, ==, 8092 * MIB);
  LS_CHECK_INT (cudaMalloc (&a, 1), ==, CUDA_OK);
  LS_CHECK_INT (free_now (), ==, before - 2 * MIB);
  LS_CHECK_INT (cudaMalloc (&b, 8090 * MIB), ==, CUDA_OK);
  LS_CHECK_INT (cudaMalloc (&none, 1), ==, CUDA_NO_MEMORY);
  LS_CHECK (none == NULL);
  LS_CHECK_INT (cudaFree (a), ==, CUDA_OK);
  LS_CHECK_INT (cudaFree (a), ==, CUDA_INVALID);
  LS_CHECK_INT (cudaFree (NULL), ==, CUDA_OK);
  LS_CHECK_INT (free_now (), ==, 2 * MIB);
  LS_CHECK_INT (cudaFree (b), ==, CUDA_OK);
  LS_CHECK_INT (free_now (), ==, before);
}

/* PyTorch asks who has the memory that lacks, and 2.6 says nothing else if that fails. */
static void
memory_is_that_of_this_process (void)
{
  struct {
    unsigned process;
    unsigned long long bytes;
  } found[2] = { 0 };
  void *memory, *device;
  unsigned n = 0;
  LS_CHECK_INT (cudaMalloc (&memory, 10 * MIB), ==, CUDA_OK);
  LS_CHECK_INT (nvmlDeviceGetHandleByIndex (0, &device), ==, 0);
  LS_CHECK_INT (nvmlDeviceGetComputeRunningProcesses (device, &n, found), ==, 7); /* too few places */
  LS_CHECK_INT (n, ==, 1);
  n = G_N_ELEMENTS (found);
  LS_CHECK_INT (nvmlDeviceGetComputeRunningProcesses (device, &n, found), ==, 0);
  LS_CHECK_INT (n, ==, 1);
  LS_CHECK_INT (found[0].process, ==, (uint64_t) getpid ());
  LS_CHECK_INT (found[0].bytes, ==, 8192 * MIB - free_now ());
  LS_CHECK_INT (found[1].bytes, ==, 0);
  LS_CHECK_INT (cudaFree (memory), ==, CUDA_OK);
}

static void
mapped_memory_is_charged_once (void)
{
  uint64_t address, handle;
  size_t before = free_now ();
  LS_CHECK_INT (cuMemAddressReserve (&address, 64 * MIB, 0, 0, 0), ==, CUDA_OK);
  LS_CHECK_INT (free_now (), ==, before);
  LS_CHECK_INT (cuMemCreate (&handle, 2 * MIB, NULL, 0), ==, CUDA_OK);
  LS_CHECK_INT (cuMemMap (address, 2 * MIB, 0, handle, 0), ==, CUDA_OK);
  LS_CHECK_INT (cuMemRelease (handle), ==, CUDA_OK);
  LS_CHECK_INT (free_now (), ==, before - 2 * MIB);
  memset ((void *) (uintptr_t) address, 1, 4096);
  LS_CHECK_INT (cuMemUnmap (address, 2 * MIB), ==, CUDA_OK);
  LS_CHECK_INT (free_now (), ==, before);
  LS_CHECK_INT (cuMemAddressFree (address, 64 * MIB), ==, CUDA_OK);
}

/* A kernel of a million threads takes longer than the call that launches it. */
static void
work_takes_time (void)
{
  void *stream, *other, *begin, *end;
  float ms;
  cudaStreamCreate (&stream);
  cudaStreamCreate (&other);
  cudaEventCreate (&begin);
  cudaEventCreate (&end);
  LS_CHECK_INT (cudaEventQuery (begin), ==, CUDA_OK); /* it was never recorded */
  cudaEventRecord (begin, stream);
  cudaLaunchKernel (NULL, (LsDim3) { 1 << 20, 1, 1 }, (LsDim3) { 256, 1, 1 }, NULL, 0, stream);
  cudaEventRecord (end, stream);
  LS_CHECK_INT (cudaEventQuery (end), ==, CUDA_NOT_READY);
  cudaStreamWaitEvent (other, end, 0);
  LS_CHECK (!ls_stream_is_done (other));
  LS_CHECK_INT (cudaEventSynchronize (end), ==, CUDA_OK);
  LS_CHECK_INT (cudaEventQuery (end), ==, CUDA_OK);
  LS_CHECK (ls_stream_is_done (other));
  cudaEventElapsedTime (&ms, begin, end);
  LS_CHECK_NEAR (ms, (1 << 28) * 32.0 / 3e12 * 1e3, 0.01);
  cudaEventDestroy (begin);
  cudaEventDestroy (end);
}

/* Two kernels at once and one after both, launched three times: nothing of it before, and six kernels'
 * time after. */
static void
graphs_are_done_when_they_are_launched (void)
{
  void *stream, *other, *fork, *join, *begin, *end, *graph, *executable;
  LsDim3 grid = { 1 << 20, 1, 1 }, block = { 256, 1, 1 };
  int is_capturing;
  float ms;
  size_t n;
  cudaStreamCreate (&stream);
  cudaStreamCreate (&other);
  cudaEventCreate (&fork);
  cudaEventCreate (&join);
  cudaEventCreate (&begin);
  cudaEventCreate (&end);
  int64_t kernels = ls_count ("kernels", 0);
  LS_CHECK_INT (cudaStreamBeginCapture (stream, 0), ==, CUDA_OK);
  LS_CHECK_INT (cudaStreamBeginCapture (stream, 0), ==, CUDA_INVALID);
  cudaEventRecord (fork, stream);
  cudaStreamWaitEvent (other, fork, 0);
  LS_CHECK_INT (cudaStreamIsCapturing (other, &is_capturing), ==, CUDA_OK);
  LS_CHECK_INT (is_capturing, ==, 1);
  cudaLaunchKernel (NULL, grid, block, NULL, 0, stream);
  cudaLaunchKernel (NULL, grid, block, NULL, 0, other);
  cudaEventRecord (join, other);
  cudaStreamWaitEvent (stream, join, 0);
  cudaLaunchKernel (NULL, grid, block, NULL, 0, stream);
  LS_CHECK_INT (cudaStreamEndCapture (stream, &graph), ==, CUDA_OK);
  LS_CHECK_INT (cudaStreamIsCapturing (other, &is_capturing), ==, CUDA_OK);
  LS_CHECK_INT (is_capturing, ==, 0);
  LS_CHECK_INT (ls_count ("kernels", 0), ==, kernels);
  LS_CHECK (ls_stream_is_done (stream) && ls_stream_is_done (other));
  cudaGraphGetNodes (graph, NULL, &n);
  LS_CHECK_INT (n, ==, 3);
  cudaGraphInstantiate (&executable, graph);
  cudaEventRecord (begin, stream);
  for (int i = 0; i < 3; i++)
    LS_CHECK_INT (cudaGraphLaunch (executable, stream), ==, CUDA_OK);
  cudaEventRecord (end, stream);
  cudaEventElapsedTime (&ms, begin, end);
  LS_CHECK_NEAR (ms, 6 * (1 << 28) * 32.0 / 3e12 * 1e3, 0.02);
  LS_CHECK_INT (ls_count ("kernels", 0), ==, kernels + 9);
  LS_CHECK_INT (cudaGraphLaunch (NULL, stream), ==, CUDA_INVALID);
  void *events[] = { fork, join, begin, end };
  for (int i = 0; i < 4; i++)
    cudaEventDestroy (events[i]);
}

/* What is launched, and in which order, changes it; where it lies does not. */
static void
traces_tell_what_was_done (void)
{
  static const int64_t first[] = { 1, 2 }, second[] = { 2, 1 };
  uint64_t before = ls_capture_trace (), both;
  ls_trace ("flash_fwd_kernel", first, 2);
  LS_CHECK (ls_capture_trace () != before);
  both = ls_capture_trace ();
  size_t n = ls_capture_kinds (NULL, NULL, 0);
  ls_trace ("flash_fwd_kernel", first, 2);
  LS_CHECK (ls_capture_trace () != both);
  LS_CHECK_INT (ls_capture_kinds (NULL, NULL, 0), ==, n);
  for (int64_t i = 0; i < 2000; i++)
    ls_trace ("block", (const int64_t[]) { i, second[0] }, 2);
  static uint64_t keys[4096];
  static int64_t how_often[4096];
  LS_CHECK_INT (ls_capture_kinds (keys, how_often, 4096), ==, n + 2000);
  int64_t most = 0;
  for (size_t i = 0; i < n + 2000; i++)
    most = how_often[i] > most ? how_often[i] : most;
  LS_CHECK (most >= 2); /* a table that grew still has them */
  before = ls_capture_trace ();
  void *memory;
  cudaMalloc (&memory, 64);
  cudaFree (memory);
  LS_CHECK (ls_capture_trace () == before);
}

/* PyTorch makes as many as its watchdog has not given back yet, which this machine's clock decides. */
static void
events_that_are_made_take_no_time (void)
{
  void *stream, *end, *other;
  cudaStreamCreate (&stream);
  cudaEventCreate (&end);
  cudaLaunchKernel (NULL, (LsDim3) { 1 << 16, 1, 1 }, (LsDim3) { 256, 1, 1 }, NULL, 0, stream); /* 0.18 ms */
  cudaEventRecord (end, stream);
  for (int i = 0; i < 1000; i++) {
    cudaEventCreate (&other);
    cudaEventDestroy (other);
  }
  int n = 0;
  while (cudaEventQuery (end) == CUDA_NOT_READY)
    n++;
  LS_CHECK_INT (n, >, 30); /* of 5 us each */
  LS_CHECK_INT (n, <, 37);
  cudaEventDestroy (end);
}

static gpointer
ask (gpointer event)
{
  return GINT_TO_POINTER (cudaEventQuery (event));
}

static void
watchdogs_are_told_late (void)
{
  void *stream, *end;
  cudaStreamCreate (&stream);
  cudaEventCreate (&end);
  cudaEventRecord (end, stream);
  LS_CHECK_INT (cudaEventQuery (end), ==, CUDA_OK);
  LS_CHECK_INT (GPOINTER_TO_INT (g_thread_join (g_thread_new ("watchdog", ask, end))), ==, CUDA_NOT_READY);
  ((LsEvent *) end)->recorded -= 100;
  LS_CHECK_INT (GPOINTER_TO_INT (g_thread_join (g_thread_new ("watchdog", ask, end))), ==, CUDA_OK);
  ls_stream_work (stream, 0, 1);
  cudaEventRecord (end, stream);
  LS_CHECK_INT (cudaEventQuery (end), ==, CUDA_NOT_READY);
  ((LsEvent *) end)->recorded -= 100;
  LS_CHECK_INT (GPOINTER_TO_INT (g_thread_join (g_thread_new ("watchdog", ask, end))), ==, CUDA_OK);
  cudaEventDestroy (end);
}

/* The third is no device of eight: it and those after it are not seen. */
static void
devices_are_those_that_are_visible (void)
{
  int n;
  g_setenv ("CUDA_VISIBLE_DEVICES", "3,0,9,1", TRUE);
  LS_CHECK_INT (cudaGetDeviceCount (&n), ==, CUDA_OK);
  LS_CHECK_INT (n, ==, 2);
  LS_CHECK_INT (cudaSetDevice (1), ==, CUDA_OK);
  LS_CHECK_INT (cudaSetDevice (2), !=, CUDA_OK);
  cudaSetDevice (0);
}

static void
small_copies_are_made (void)
{
  char *device, there[] = "forty-two", back[10] = "";
  void *memory;
  cudaMalloc (&memory, 1);
  device = memory;
  cudaMemcpyAsync (device, there, sizeof there, 1, NULL);
  cudaMemcpyAsync (device + 100, device, sizeof there, 3, NULL);
  cudaMemcpyAsync (back, device + 100, sizeof back, 2, NULL);
  LS_CHECK_STR (back, there);
  cudaFree (memory);
}

typedef struct {
  gint8 type, index;
} Device;

void report (void *memory, int64_t bytes, size_t allocated, size_t reserved,
             Device device) __asm__("_ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE");

/* PyTorch's allocator hands out what was written to before: nobody reads that. */
static void
blocks_that_are_handed_out_again_are_zeros (void)
{
  char there[] = "forty-two", back[10];
  void *memory;
  cudaMalloc (&memory, 1);
  cudaMemcpyAsync (memory, there, sizeof there, 1, NULL);
  report (memory, -512, 0, 0, (Device) { 1, 0 });
  cudaMemcpyAsync (back, memory, sizeof back, 2, NULL);
  LS_CHECK_STR (back, there);
  report (memory, 512, 0, 0, (Device) { 1, 0 });
  cudaMemcpyAsync (back, memory, sizeof back, 2, NULL);
  LS_CHECK_STR (back, "");
  cudaFree (memory);
}

/* Of what is given back by PyTorch whole pages go to this machine at once: what is next to it stays. */
static void
large_blocks_that_are_given_back_take_nothing (void)
{
  static char there[1 << 20];
  void *memory;
  memset (there, 'x', sizeof there);
  cudaMalloc (&memory, 2 * MIB);
  char *bytes = (char *) memory + 100;
  cudaMemcpyAsync (bytes - 1, there, 1, 1, NULL);
  cudaMemcpyAsync (bytes, there, sizeof there, 1, NULL);
  cudaMemcpyAsync (bytes + sizeof there, there, 1, 1, NULL);
  report (bytes, -(int64_t) sizeof there, 0, 0, (Device) { 1, 0 });
  for (size_t i = 0; i < sizeof there; i++)
    if (bytes[i] != 0)
      LS_CHECK_INT (i, ==, sizeof there);
  LS_CHECK (bytes[-1] == 'x' && bytes[sizeof there] == 'x');
  cudaFree (memory);
}

static void
ranks_answer_as_this_one (void)
{
  void *world, *half;
  int n, sizes[4] = { 0 }, mine = 7, sent[2] = { 5, 6 }, got[2] = { 0 };
  int64_t counts[2] = { 3, 4 }, sum[2];
  LsUniqueId id = { { 0 } };
  LS_CHECK_INT (ncclCommInitRank (&world, 4, id, 1), ==, CUDA_OK);
  ls_capture_group (NULL, 0, 2, 1, 0, NULL, NULL);
  LS_CHECK_INT (ncclCommSplit (world, 0, 0, &half, NULL), ==, CUDA_OK);
  ncclCommCount (half, &n);
  LS_CHECK_INT (n, ==, 2);
  ncclAllReduce (counts, sum, 2, 4, 0, world, NULL);
  LS_CHECK_INT (sum[0] + sum[1], ==, 28);
  ncclAllGather (&mine, sizes, 1, 2, world, NULL);
  for (int i = 0; i < 4; i++)
    LS_CHECK_INT (sizes[i], ==, 7);
  ncclReduceScatter (counts, sum, 1, 4, 0, half, NULL);
  LS_CHECK_INT (sum[0], ==, 8);
  ncclGroupStart ();
  for (int i = 0; i < 4; i++)
    ncclBroadcast (i == 1 ? &mine : &sizes[i], &sizes[i], 1, 2, i, world, NULL);
  mine = 9;
  ncclGroupEnd ();
  LS_CHECK_INT (sizes[3], ==, 9);
  ncclGroupStart ();
  for (int i = 0; i < 2; i++) {
    ncclSend (&sent[i], 1, 2, i, half, NULL);
    ncclRecv (&got[i], 1, 2, i, half, NULL);
  }
  ncclGroupEnd ();
  LS_CHECK_INT (got[0] * 10 + got[1], ==, 56);
  free (world);
  free (half);
}

/* MiB: 688 of rings when they are first used, 447 of each peer of the node of 8 that is sent to, from three
 * on. */
/* Experts exchange as many tokens as they counted: others are as this one, and need not be captured for
 * that. */
static void
uneven_exchanges_need_nobody_else (void)
{
  static const char lacks[] = "messages of ranks that are not captured";
  void *both;
  int sent[2] = { 5, 6 }, got = 0;
  LsUniqueId id = { { 0 } };
  LS_CHECK_INT (ncclCommInitRank (&both, 2, id, 0), ==, CUDA_OK);
  int64_t before = ls_count (lacks, 0);
  ncclGroupStart ();
  ncclSend (sent, 2, 2, 1, both, NULL);
  ncclRecv (&got, 1, 2, 1, both, NULL);
  ncclGroupEnd ();
  LS_CHECK_INT (ls_count (lacks, 0), ==, before);
  ncclRecv (&got, 1, 2, 1, both, NULL);
  LS_CHECK_INT (ls_count (lacks, 0), ==, before + 1);
}

static void
communicators_take_memory_when_used (void)
{
  void *world, *memory;
  char byte = 1;
  LsUniqueId id = { { 0 } };
  size_t before = free_now ();
  LS_CHECK_INT (ncclCommInitRank (&world, 16, id, 1), ==, CUDA_OK);
  LS_CHECK_INT (free_now (), ==, before);
  ncclSend (&byte, 1, 0, 2, world, NULL);
  ncclSend (&byte, 1, 0, 2, world, NULL);
  ncclSend (&byte, 1, 0, 1, world, NULL);
  ncclSend (&byte, 1, 0, 9, world, NULL);
  ncclSend (&byte, 1, 0, 0, world, NULL);
  LS_CHECK_INT (free_now (), ==, before);
  ncclSend (&byte, 1, 0, 7, world, NULL);
  LS_CHECK_INT (free_now (), ==, before - 3 * 447 * MIB);
  LS_CHECK_INT (cudaMalloc (&memory, before - (3 * 447 + 1) * MIB), ==, CUDA_OK);
  ncclAllReduce (&byte, &byte, 1, 0, 0, world, NULL);
  LS_CHECK_INT (free_now (), ==, 0);
  cudaFree (memory);
  LS_CHECK_INT (free_now (), <, before - (3 * 447 + 687) * MIB);
  free (world);
}

static void
functions_are_found_by_name (void)
{
  void *function;
  int status;
  cudaGetDriverEntryPoint ("cuMemCreate", &function, 0, &status);
  LS_CHECK (function && status == 0);
  cudaGetDriverEntryPoint ("cuNothing", &function, 0, &status);
  LS_CHECK (!function && status != 0);
}

static void
who_has_a_runtime_of_its_own_is_named (void)
{
  const void *table;
  char counts[8192];
  LS_CHECK_INT (cuGetExportTable (&table), !=, CUDA_OK);
  ls_capture_counts (counts, sizeof counts);
  LS_CHECK (strstr (counts, "tables of the driver for test_capture 1\n") != NULL);
}

/* H100: 2,048 threads an SM, 65,536 registers, 228 KiB of shared memory of which a block has 1 KiB to
 * itself. */
static void
occupancy_is_that_of_the_gpu (void)
{
  LS_CHECK_INT (ls_blocks_per_sm (32, 256, 0), ==, 8);
  LS_CHECK_INT (ls_blocks_per_sm (64, 256, 0), ==, 4);
  LS_CHECK_INT (ls_blocks_per_sm (32, 32, 0), ==, 32);
  LS_CHECK_INT (ls_blocks_per_sm (32, 128, 100 << 10), ==, 2);
  LS_CHECK_INT (ls_blocks_per_sm (255, 1024, 0), ==, 0);
}

static void
descriptors_keep_what_they_are_given (void)
{
  int64_t dims[3] = { 2, 3, 4 }, back[3] = { 0 }, n;
  void *d = ls_dnn_new (1);
  ls_dnn_set (d, 300, 3, 3, dims);
  LS_CHECK_INT (ls_dnn_get (d, 300, 3, 3, &n, back), ==, 0);
  LS_CHECK_INT (n, ==, 3);
  LS_CHECK_INT (back[2], ==, 4);
  LS_CHECK_INT (ls_dnn_get (d, 301, 3, 1, &n, back), ==, 0);
  LS_CHECK_INT (back[0], ==, 0);
  ls_dnn_free (d);
}

/* --- calls in any order --- */

#define N_HELD 16

static void
do_anything (GRand *rand, void **held, void **streams, void **events)
{
  int i = g_rand_int_range (rand, 0, N_HELD), j = g_rand_int_range (rand, 0, N_HELD);
  char host[64] = "";
  size_t bytes = (size_t) g_rand_int_range (rand, 0, 1 << 24), n, total;
  char attributes[64];
  switch (g_rand_int_range (rand, 0, 9)) {
  case 0:
    cudaFree (held[i]);
    held[i] = NULL;
    if (cudaMalloc (&held[i], bytes) == CUDA_OK && bytes >= sizeof host)
      cudaMemcpyAsync (held[i], host, sizeof host, 1, streams[j]);
    break;
  case 1:
    cudaFree (held[i]);
    held[i] = NULL;
    break;
  case 2:
    cudaEventRecord (events[i], streams[j]);
    break;
  case 3:
    cudaStreamWaitEvent (streams[i], events[j], 0);
    break;
  case 4:
    cudaEventQuery (events[i]);
    break;
  case 5:
    cudaLaunchKernel (host, (LsDim3) { (unsigned) bytes, 1, 1 }, (LsDim3) { 128, 1, 1 }, NULL, 0, streams[i]);
    break;
  case 6:
    cudaPointerGetAttributes (attributes, held[i]);
    break;
  case 7:
    cudaFree (host); /* not its memory */
    break;
  default:
    cudaMemGetInfo (&n, &total);
    LS_CHECK (n <= total);
  }
}

static void
any_order_is_survived (void)
{
  g_autoptr (GRand) rand = g_rand_new_with_seed (80);
  void *held[N_HELD] = { NULL }, *streams[N_HELD], *events[N_HELD];
  size_t before = free_now ();
  for (int i = 0; i < N_HELD; i++) {
    cudaStreamCreate (&streams[i]);
    cudaEventCreate (&events[i]);
  }
  for (int i = 0; i < 20000; i++)
    do_anything (rand, held, streams, events);
  for (int i = 0; i < N_HELD; i++) {
    cudaFree (held[i]);
    cudaEventDestroy (events[i]);
  }
  LS_CHECK_INT (free_now (), ==, before);
}

static void
a_profiler_starts_and_sees_nothing (void)
{
  void *subscriber = NULL;
  LS_CHECK_INT (cuptiSubscribe (&subscriber), ==, 0);
  LS_CHECK (subscriber != NULL);
  LS_CHECK_INT (cuptiActivityGetNextRecord (), ==, 12);
}

static void
tensors_of_cudnn_have_their_bytes (void)
{
  void *d;
  LS_CHECK_INT (cudnnCreateTensorDescriptor (&d), ==, 0);
  LS_CHECK_INT (cudnnSetTensorNdDescriptor (d, 2, 4, (int[]) { 64, 3, 224, 224 }), ==, 0);
  LS_CHECK (*(double *) d == 2.0 * 64 * 3 * 224 * 224);
  LS_CHECK_INT (cudnnDestroyTensorDescriptor (d), ==, 0);
  int version[3];
  for (int part = 0; part < 3; part++)
    LS_CHECK_INT (cudnnGetProperty (part, &version[part]), ==, 0);
  LS_CHECK (version[0] == 9 && version[1] == 10 && version[2] == 0);
  LS_CHECK_INT (cudnnGetProperty (3, version), !=, 0);
}

static void
one_process_has_communicators_of_all_gpus (void)
{
  static void *all[4];
  int n;
  LS_CHECK_INT (ncclCommInitAll (all, 4, NULL), ==, 0);
  for (int i = 0; i < 4; i++) {
    ncclCommCount (all[i], &n);
    LS_CHECK_INT (n, ==, 4);
    LS_CHECK_INT (ls_communicator_rank (all[i]), ==, i);
  }
}

/* --- a record --- */

static int (*nvtx_push) (const char *);
static int (*nvtx_pop) (void);

/* As nvtx3 does it: slots for the functions of its core. */
static int
functions_of (int module, void ***ret_functions, unsigned *ret_n)
{
  static void *unset[16], **slots[16] = { NULL };
  for (guint i = 0; i < G_N_ELEMENTS (slots); i++)
    slots[i] = &unset[i];
  slots[9] = (void **) (void *) &nvtx_push;
  slots[11] = (void **) (void *) &nvtx_pop;
  *ret_functions = (void **) slots;
  *ret_n = G_N_ELEMENTS (slots);
  return module == 1;
}

static const void *
table_of (uint32_t which)
{
  static const struct {
    size_t size;
    int (*functions_of) (int module, void ***ret_functions, unsigned *ret_n);
  } callbacks = { sizeof callbacks, functions_of };
  return which == 1 ? &callbacks : NULL;
}

static int
place (void)
{
  static int n;
  return 40 + n++;
}

/* Each line is what was asked, with the innermost operator; ranges without a number belong to the one
 * around them. Events of before, and blocks, mean nothing; afterwards nothing is written. */
static void
a_step_is_recorded_in_order (void)
{
  static const char expected[]
      = "o 7 40 0 aten::mm\nn stub\nk 7 0 0 2 3 1 64 1 1\nc 8 0 16 1\nr 0\nw 1 0\n(\nm 8 1 -1 all-reduce 4 7 0\n)\n"
        "o 9 41 0 MmBackward0, seq = 3\nk 9 0 0 1 1 1 32 1 1\nh 0\ne 0\ny 2\nk 0 0 0 1 1 1 32 1 1\na\n";
  static const char stub;
  g_autofree char *path = g_build_filename (g_get_tmp_dir (), "lockstep-record-XXXXXX", NULL), *said = NULL;
  int file = g_mkstemp (path);
  void *stream, *event, *old, *communicator;
  char memory[64] = { 0 };
  void *device;
  const LsDim3 one = { 1, 1, 1 }, warp = { 32, 1, 1 };
  LsUniqueId id;
  memset (&id, 'x', sizeof id);
  LS_CHECK_INT (InitializeInjectionNvtx2 (table_of), ==, 1);
  ls_kernel_register (&stub, "stub");
  cudaMalloc (&device, sizeof memory);
  cudaStreamCreate (&stream);
  cudaEventCreate (&event);
  cudaEventCreate (&old);
  ncclCommInitRank (&communicator, 2, id, 0);
  cudaEventRecord (old, NULL);
  ls_capture_record (path, place);
  nvtx_push ("aten::mm, op_id = 7, sizes = [[], []]");
  cudaLaunchKernel (&stub, (LsDim3) { 2, 3, 1 }, (LsDim3) { 64, 1, 1 }, NULL, 0, NULL);
  nvtx_push ("aten::copy_, op_id = 8");
  nvtx_push ("the user's own");
  cudaMemcpyAsync (device, memory, 16, 1, NULL);
  cudaEventRecord (event, NULL);
  cudaStreamWaitEvent (stream, event, 0);
  cudaStreamWaitEvent (stream, old, 0);
  ncclAllReduce (device, device, 4, 7, 0, communicator, stream);
  nvtx_pop ();
  nvtx_pop ();
  nvtx_pop ();
  nvtx_push ("MmBackward0, seq = 3, op_id = 9");
  cudaLaunchKernel (&stub, one, warp, NULL, 0, NULL);
  cudaStreamSynchronize (NULL);
  cudaEventSynchronize (event);
  nvtx_pop ();
  /* the second is the capture's own, and the third, as it is within another */
  for (guint i = 0; i < 4; i++) {
    ls_capture_called (NULL, NULL, 0, NULL);
    if (i == 0)
      ls_capture_apart (1);
    if (i < 2)
      ls_capture_apart (i == 0);
    if (i == 2)
      ls_capture_apart (0);
  }
  cudaLaunchKernel (&stub, one, warp, NULL, 0, NULL);
  cudaDeviceSynchronize ();
  ls_capture_record (NULL, NULL);
  cudaLaunchKernel (&stub, one, warp, NULL, 0, NULL);
  nvtx_push ("aten::mm, op_id = 10");
  nvtx_pop ();
  LS_CHECK (g_file_get_contents (path, &said, NULL, NULL));
  ls_check_impl (g_strcmp0 (said, expected) == 0, __FILE__, __LINE__, "%s", said);
  g_unlink (path);
  g_close (file, NULL);
  cudaEventDestroy (event);
  cudaEventDestroy (old);
  cudaFree (device);
  free (communicator);
}

LS_TEST_SUITE (LS_TEST (memory_is_charged_and_given_back), LS_TEST (memory_is_that_of_this_process),
               LS_TEST (mapped_memory_is_charged_once), LS_TEST (work_takes_time),
               LS_TEST (graphs_are_done_when_they_are_launched), LS_TEST (traces_tell_what_was_done),
               LS_TEST (events_that_are_made_take_no_time), LS_TEST (watchdogs_are_told_late),
               LS_TEST (devices_are_those_that_are_visible), LS_TEST (small_copies_are_made),
               LS_TEST (blocks_that_are_handed_out_again_are_zeros),
               LS_TEST (large_blocks_that_are_given_back_take_nothing), LS_TEST (ranks_answer_as_this_one),
               LS_TEST (uneven_exchanges_need_nobody_else), LS_TEST (communicators_take_memory_when_used),
               LS_TEST (functions_are_found_by_name), LS_TEST (who_has_a_runtime_of_its_own_is_named),
               LS_TEST (occupancy_is_that_of_the_gpu), LS_TEST (descriptors_keep_what_they_are_given),
               LS_TEST (a_profiler_starts_and_sees_nothing), LS_TEST (tensors_of_cudnn_have_their_bytes),
               LS_TEST (one_process_has_communicators_of_all_gpus), LS_TEST (a_step_is_recorded_in_order),
               LS_TEST (any_order_is_survived))
