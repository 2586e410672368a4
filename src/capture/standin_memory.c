/* capture/standin_memory.c — memory of the GPU that is none: ranges of addresses that are charged against
 * what the GPU has, and whose pages only exist where a small copy touched them. */
#define _GNU_SOURCE
#include "capture/standin.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define LS_PAGE ((size_t) 2 << 20) /* what the driver hands out, and charges */

typedef enum { IS_DEVICE, IS_PINNED, IS_RESERVED } RangeKind;

typedef struct {
  uintptr_t begin;
  size_t bytes;
  RangeKind kind;
  int device;
} Range;

/* Sorted by begin. */
static Range *ranges;
static size_t n_ranges, max_ranges;
static uint64_t used[LS_MOST_DEVICES];
static bool has_context[LS_MOST_DEVICES];

static size_t
round_up (size_t bytes)
{
  return (bytes + LS_PAGE - 1) / LS_PAGE * LS_PAGE;
}

static size_t
place_of (uintptr_t at)
{
  size_t low = 0, high = n_ranges;
  while (low < high) {
    size_t mid = (low + high) / 2;
    if (ranges[mid].begin <= at)
      low = mid + 1;
    else
      high = mid;
  }
  return low; /* the first that begins after it */
}

static Range *
range_of (const void *memory)
{
  uintptr_t at = (uintptr_t) memory;
  size_t i = place_of (at);
  return i > 0 && at - ranges[i - 1].begin < ranges[i - 1].bytes ? &ranges[i - 1] : NULL;
}

static void
add_range (void *memory, size_t bytes, RangeKind kind)
{
  if (n_ranges == max_ranges)
    ranges = realloc (ranges, (max_ranges = max_ranges ? 2 * max_ranges : 1024) * sizeof *ranges);
  size_t i = place_of ((uintptr_t) memory);
  memmove (&ranges[i + 1], &ranges[i], (n_ranges++ - i) * sizeof *ranges);
  ranges[i] = (Range) { (uintptr_t) memory, bytes, kind, *ls_current_device () };
}

static void
remove_range (Range *r)
{
  size_t i = (size_t) (r - ranges);
  memmove (r, r + 1, (--n_ranges - i) * sizeof *ranges);
}

/* What nobody reads or writes takes no memory of this machine. */
static void *
addresses (size_t bytes)
{
  char *memory = mmap (NULL, bytes + LS_PAGE, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED)
    return NULL;
  char *aligned = (char *) (((uintptr_t) memory + LS_PAGE - 1) / LS_PAGE * LS_PAGE);
  if (aligned > memory)
    munmap (memory, (size_t) (aligned - memory));
  if (aligned + bytes < memory + bytes + LS_PAGE)
    munmap (aligned + bytes, (size_t) (memory + LS_PAGE - aligned));
  return aligned;
}

/* Of the current device. */
static bool
charge (size_t bytes)
{
  int device = *ls_current_device ();
  if (!has_context[device])
    used[device] += ls_device.context;
  has_context[device] = true;
  if (used[device] + bytes > ls_device.memory)
    return false;
  used[device] += bytes;
  return true;
}

void
ls_take (size_t bytes)
{
  charge (0);
  used[*ls_current_device ()] += bytes;
}

int
ls_device_alloc (void **ret, size_t bytes)
{
  size_t taken = round_up (bytes ? bytes : 1);
  *ret = NULL;
  if (!charge (taken))
    return CUDA_NO_MEMORY;
  *ret = addresses (taken);
  if (!*ret)
    return CUDA_NO_MEMORY;
  add_range (*ret, taken, IS_DEVICE);
  return CUDA_OK;
}

int
ls_device_free (void *memory)
{
  Range *r = memory ? range_of (memory) : NULL;
  if (!memory)
    return CUDA_OK;
  if (!r || r->kind != IS_DEVICE || r->begin != (uintptr_t) memory)
    return CUDA_INVALID;
  used[r->device] -= r->bytes;
  munmap (memory, r->bytes);
  remove_range (r);
  return CUDA_OK;
}

int
ls_host_alloc (void **ret, size_t bytes)
{
  size_t taken = round_up (bytes ? bytes : 1);
  *ret = addresses (taken);
  if (!*ret)
    return CUDA_NO_MEMORY;
  add_range (*ret, taken, IS_PINNED);
  return CUDA_OK;
}

int
ls_host_free (void *memory)
{
  Range *r = memory ? range_of (memory) : NULL;
  if (!r || r->kind != IS_PINNED)
    return memory ? CUDA_INVALID : CUDA_OK;
  munmap ((void *) r->begin, r->bytes);
  remove_range (r);
  return CUDA_OK;
}

bool
ls_is_device (const void *memory, uint64_t *ret_base, uint64_t *ret_bytes)
{
  const Range *r = range_of (memory);
  if (!r || r->kind == IS_PINNED)
    return false;
  if (ret_base)
    *ret_base = r->begin;
  if (ret_bytes)
    *ret_bytes = r->bytes;
  return true;
}

int
ls_device_of (const void *memory)
{
  const Range *r = range_of (memory);
  return r ? r->device : 0;
}

bool
ls_is_pinned (const void *memory)
{
  const Range *r = range_of (memory);
  return r && r->kind == IS_PINNED;
}

void
ls_memory_info (size_t *ret_free, size_t *ret_total)
{
  charge (0);
  uint64_t taken = used[*ls_current_device ()];
  if (ret_free)
    *ret_free = ls_device.memory > taken ? ls_device.memory - taken : 0;
  if (ret_total)
    *ret_total = ls_device.memory;
}

/* Of a long one to the host nothing but zeros is known; on the device there are zeros already, or what
 * was. */
void
ls_copy (void *to, const void *from, size_t bytes, void *stream, bool is_async)
{
  bool to_host = !ls_is_device (to, NULL, NULL), from_host = !ls_is_device (from, NULL, NULL);
  ls_stream_work (stream, (double) bytes / (to_host || from_host ? 25e9 : ls_device.hbm / 2));
  if (!is_async || (to_host && !ls_is_pinned (to)))
    ls_host_waits (ls_stream_of (stream)->done);
  if (bytes <= LS_SMALL || (to_host && from_host))
    memmove (to, from, bytes);
  else if (to_host)
    memset (to, 0, bytes);
  if (bytes <= LS_SMALL && !to_host)
    ls_written (to, bytes);
}

void
ls_fill (void *to, int value, size_t bytes, void *stream)
{
  ls_stream_work (stream, (double) bytes / ls_device.hbm);
  if (bytes <= LS_SMALL || !ls_is_device (to, NULL, NULL))
    memset (to, value, bytes);
  if (bytes <= LS_SMALL && value != 0)
    ls_written (to, bytes);
}

/* --- what was written -----------------------------------------------------------------------------------
 *
 * Kernels write nothing, so a block that PyTorch hands out again still has what a copy left in it. A host
 * that reads a small result would see that: a count of tokens for "is any gradient infinite". */

#define LS_BLOCK 512 /* the least that PyTorch's allocator hands out */

static uintptr_t *written; /* blocks, by open addressing; 1: one was there */
static size_t n_written, max_written;

static size_t
slot_of (uintptr_t block)
{
  size_t at = (block * UINT64_C (0x9e3779b97f4a7c15)) >> 20 & (max_written - 1);
  while (written[at] && written[at] != block)
    at = (at + 1) & (max_written - 1);
  return at;
}

static void
grow (void)
{
  uintptr_t *before = written;
  size_t n = max_written;
  max_written = n ? 2 * n : 1 << 12;
  written = calloc (max_written, sizeof *written);
  n_written = 0;
  for (size_t i = 0; i < n; i++)
    if (before[i] > 1) {
      written[slot_of (before[i])] = before[i];
      n_written++;
    }
  free (before);
}

void
ls_written (const void *memory, size_t bytes)
{
  for (uintptr_t b = (uintptr_t) memory / LS_BLOCK; b * LS_BLOCK < (uintptr_t) memory + bytes; b++) {
    if (2 * (n_written + 1) > max_written)
      grow ();
    size_t at = slot_of (b);
    n_written += written[at] != b;
    written[at] = b;
  }
}

static void
make_fresh (void *memory, size_t bytes)
{
  ls_enter ("reportMemoryUsageToProfiler");
  uintptr_t block = (uintptr_t) memory / LS_BLOCK;
  uintptr_t end = block + ((bytes < LS_SMALL ? bytes : LS_SMALL) + LS_BLOCK - 1) / LS_BLOCK;
  bool is_known = max_written > 0 && ls_is_device (memory, NULL, NULL);
  for (; is_known && block < end; block++) {
    size_t at = slot_of (block);
    if (written[at] != block)
      continue;
    memset ((void *) (block * LS_BLOCK), 0, LS_BLOCK);
    written[at] = 1;
  }
  ls_leave ();
}

/* c10::reportMemoryUsageToProfiler (void *, int64_t, size_t, size_t, c10::Device): PyTorch's allocator calls
 * it whenever it hands out a block or takes it back. This one is found first, and passes it on. A hook of
 * Python would not do: it cannot run while an exception is on its way. */
typedef struct {
  int8_t type, index;
} TorchDevice;

typedef void Report (void *memory, int64_t bytes, size_t allocated, size_t reserved, TorchDevice device);

Report ls_torch_report __asm__("_ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE");

void
ls_torch_report (void *memory, int64_t bytes, size_t allocated, size_t reserved, TorchDevice device)
{
  static Report *passed_on;
  void *own = passed_on ? NULL : dlopen ("libc10.so", RTLD_LAZY | RTLD_NOLOAD);
  if (own)
    passed_on = (Report *) (uintptr_t) dlsym (own, "_ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE");
  if (bytes > 0 && device.type == 1) /* CUDA */
    make_fresh (memory, (size_t) bytes);
  if (passed_on)
    passed_on (memory, bytes, allocated, reserved, device);
}

/* --- virtual memory --- */

typedef struct {
  size_t bytes;
  int n; /* who holds it: its maker, and each map */
  int device;
} Physical;

static struct {
  uint64_t address, handle;
} * maps;
static size_t n_maps, max_maps;

int
ls_reserve (uint64_t *ret, size_t bytes)
{
  void *memory = addresses (round_up (bytes));
  if (!memory)
    return CUDA_NO_MEMORY;
  add_range (memory, round_up (bytes), IS_RESERVED);
  *ret = (uint64_t) (uintptr_t) memory;
  return CUDA_OK;
}

int
ls_unreserve (uint64_t address, size_t bytes)
{
  Range *r = range_of ((void *) (uintptr_t) address);
  if (!r || r->kind != IS_RESERVED)
    return CUDA_INVALID;
  munmap ((void *) r->begin, r->bytes);
  remove_range (r);
  (void) bytes;
  return CUDA_OK;
}

int
ls_physical_new (uint64_t *ret_handle, size_t bytes)
{
  if (!charge (bytes))
    return CUDA_NO_MEMORY;
  Physical *p = malloc (sizeof *p);
  *p = (Physical) { bytes, 1, *ls_current_device () };
  *ret_handle = (uint64_t) (uintptr_t) p;
  return CUDA_OK;
}

int
ls_physical_free (uint64_t handle)
{
  Physical *p = (Physical *) (uintptr_t) handle;
  if (!p)
    return CUDA_INVALID;
  if (--p->n > 0)
    return CUDA_OK;
  used[p->device] -= p->bytes;
  free (p);
  return CUDA_OK;
}

int
ls_map (uint64_t address, size_t bytes, uint64_t handle)
{
  Physical *p = (Physical *) (uintptr_t) handle;
  if (!p || !range_of ((void *) (uintptr_t) address))
    return CUDA_INVALID;
  p->n++;
  if (n_maps == max_maps)
    maps = realloc (maps, (max_maps = max_maps ? 2 * max_maps : 256) * sizeof *maps);
  maps[n_maps].address = address;
  maps[n_maps++].handle = handle;
  (void) bytes;
  return CUDA_OK;
}

int
ls_unmap (uint64_t address, size_t bytes)
{
  for (size_t i = 0; i < n_maps;) {
    if (maps[i].address < address || maps[i].address >= address + bytes) {
      i++;
      continue;
    }
    uint64_t handle = maps[i].handle;
    maps[i] = maps[--n_maps];
    ls_physical_free (handle);
  }
  return madvise ((void *) (uintptr_t) address, bytes, MADV_DONTNEED) == 0 ? CUDA_OK : CUDA_INVALID;
}

uint64_t
ls_physical_of (const void *memory)
{
  for (size_t i = 0; i < n_maps; i++) {
    const Physical *p = (const Physical *) (uintptr_t) maps[i].handle;
    if ((uint64_t) (uintptr_t) memory - maps[i].address < p->bytes) {
      ((Physical *) p)->n++;
      return maps[i].handle;
    }
  }
  return 0;
}
