/* capture/standin_memory.c — memory of the GPU that is none: ranges of addresses that are charged against
 * what the GPU has, and whose pages only exist where a small copy touched them. */
#define _GNU_SOURCE
#include "capture/standin.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

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

/* --- what was written -----------------------------------------------------------------------------------
 *
 * Kernels write nothing, so a block that PyTorch hands out again still has what a copy left in it. A host
 * that reads a small result would see that: a count of tokens for "is any gradient infinite". Of all other
 * memory values are not known; it is zeros. */

#define PAGE       ((uintptr_t) 4096) /* of this machine */
#define MANY_PAGES ((uintptr_t) 1 << 16)

typedef struct {
  uintptr_t begin, end;
  bool is_zero; /* and no page of it was touched for that */
} Written;

static Written *written; /* sorted, apart from each other */
static size_t n_written, max_written;

/* The first that ends after it. */
static size_t
first_after (uintptr_t at)
{
  size_t low = 0, high = n_written;
  while (low < high) {
    size_t mid = (low + high) / 2;
    if (written[mid].end <= at)
      low = mid + 1;
    else
      high = mid;
  }
  return low;
}

/* Whole pages are given back to this machine, if they are many. */
static void
clear (uintptr_t from, uintptr_t to)
{
  uintptr_t first = (from + PAGE - 1) / PAGE * PAGE, last = to / PAGE * PAGE;
  if (last < first + MANY_PAGES || madvise ((void *) first, last - first, MADV_DONTNEED) != 0) {
    memset ((void *) from, 0, to - from);
    return;
  }
  memset ((void *) from, 0, first - from);
  memset ((void *) last, 0, to - last);
}

/* Takes this range out, and puts n (at most 3) in the place of what it met. */
static void
put_written (uintptr_t begin, uintptr_t end, const Written *by, bool is_cleared)
{
  size_t i = first_after (begin), j = i, n = 0;
  Written rest[3];
  for (; j < n_written && written[j].begin < end; j++) {
    Written w = written[j];
    uintptr_t from = w.begin > begin ? w.begin : begin, to = w.end < end ? w.end : end;
    if (is_cleared && !w.is_zero)
      clear (from, to);
    if (w.begin < begin)
      rest[n++] = (Written) { w.begin, begin, w.is_zero };
    if (w.end > end && by) {
      rest[n++] = *by;
      by = NULL;
    }
    if (w.end > end)
      rest[n++] = (Written) { end, w.end, w.is_zero };
  }
  if (by)
    rest[n++] = *by;
  if (n == 0 && j == i)
    return;
  if (n_written + n > max_written + (j - i))
    written = realloc (written, (max_written = 2 * (n_written + n)) * sizeof *written);
  memmove (&written[i + n], &written[j], (n_written - j) * sizeof *written);
  memcpy (&written[i], rest, n * sizeof *rest);
  n_written = n_written + n - (j - i);
}

static void
set_written (const void *memory, size_t bytes, bool is_zero)
{
  Written w = { (uintptr_t) memory, (uintptr_t) memory + bytes, is_zero };
  size_t i = first_after (w.begin);
  bool is_there = i < n_written && written[i].begin <= w.begin && written[i].end >= w.end;
  if (bytes > 0 && !(is_there && written[i].is_zero == is_zero))
    put_written (w.begin, w.end, &w, is_zero);
}

void
ls_written (const void *memory, size_t bytes)
{
  set_written (memory, bytes, false);
}

bool
ls_is_written (const void *memory)
{
  size_t i = first_after ((uintptr_t) memory);
  return i < n_written && written[i].begin <= (uintptr_t) memory;
}

/* Zeros again, of which nobody knows. */
static void
clear_written (void *memory, size_t bytes)
{
  size_t i = first_after ((uintptr_t) memory);
  if (bytes > 0 && i < n_written && written[i].begin < (uintptr_t) memory + bytes)
    put_written ((uintptr_t) memory, (uintptr_t) memory + bytes, NULL, true);
}

/* --- memory ---------------------------------------------------------------------------------------- */

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
  put_written (r->begin, r->begin + r->bytes, NULL, false);
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

size_t ls_small = LS_SMALL;

void
ls_capture_small (size_t bytes)
{
  ls_small = bytes > 0 ? bytes : LS_SMALL;
}

/* What is copied is known as much as it was. */
static void
note_copy (void *to, const void *from, size_t bytes, bool from_host)
{
  if (bytes <= ls_small && (from_host || ls_is_written (from)))
    ls_written (to, bytes);
  else
    clear_written (to, bytes);
}

/* Of a long one to the host nothing but zeros is known; on the device there are zeros already, or what
 * was. */
void
ls_copy (void *to, const void *from, size_t bytes, void *stream, bool is_async)
{
  bool to_host = !ls_is_device (to, NULL, NULL), from_host = !ls_is_device (from, NULL, NULL);
  uint64_t key = ls_trace ("copy", (const int64_t[]) { (int64_t) bytes, to_host, from_host }, 3);
  ls_record ('c', stream, " %zu %d", bytes, to_host * 2 + from_host);
  ls_stream_work (stream, key, (double) bytes / (to_host || from_host ? 25e9 : ls_device.hbm / 2));
  if (!is_async || (to_host && !ls_is_pinned (to))) {
    ls_record_host (stream, NULL);
    ls_host_waits (ls_stream_of (stream)->done);
  }
  if (bytes <= ls_small && !from_host)
    ls_settle (from, bytes);
  if (!to_host)
    ls_forget (to, bytes);
  if (bytes <= ls_small || (to_host && from_host))
    memmove (to, from, bytes);
  else if (to_host)
    memset (to, 0, bytes);
  if (!to_host)
    note_copy (to, from, bytes, from_host);
}

void
ls_fill (void *to, int value, size_t bytes, void *stream)
{
  uint64_t key = ls_trace ("fill", (const int64_t[]) { (int64_t) bytes }, 1);
  ls_record ('f', stream, " %zu", bytes);
  ls_stream_work (stream, key, (double) bytes / ls_device.hbm);
  ls_forget (to, bytes);
  if (bytes <= ls_small || !ls_is_device (to, NULL, NULL))
    memset (to, value, bytes);
  if (bytes <= ls_small && ls_is_device (to, NULL, NULL))
    ls_written (to, bytes);
}

/* --- as PyTorch hands it out --- */

static void
make_fresh (void *memory, size_t bytes)
{
  ls_forget (memory, bytes);
  if (ls_is_device (memory, NULL, NULL))
    clear_written (memory, bytes);
}

int
ls_capture_read (const void *memory, size_t bytes)
{
  ls_enter ("read");
  ls_settle (memory, bytes);
  bool is_known = ls_is_written (memory);
  ls_leave ();
  return is_known;
}

void
ls_capture_wrote (const void *memory, size_t bytes)
{
  ls_enter ("wrote");
  ls_forget (memory, bytes);
  ls_written (memory, bytes);
  ls_leave ();
}

/* No page is touched where none was. */
void
ls_capture_zeroed (void *memory, size_t bytes)
{
  ls_enter ("zeroed");
  ls_forget (memory, bytes);
  if (ls_is_device (memory, NULL, NULL))
    set_written (memory, bytes, true);
  ls_leave ();
}

/* c10::reportMemoryUsageToProfiler (void *, int64_t, size_t, size_t, c10::Device): PyTorch's allocator calls
 * it whenever it hands out a block or takes it back. This one is found first, and passes it on. A hook of
 * Python would not do: it cannot run while an exception is on its way. */
typedef struct {
  int8_t type, index;
} TorchDevice;

static struct {
  int (*add_pending) (LsCapturePending *, void *);
  LsCapturePending *call;
  int64_t n, most;
} blocks;

void
ls_capture_on_blocks (int (*add_pending) (LsCapturePending *, void *), LsCapturePending *call, int64_t n)
{
  blocks.add_pending = add_pending;
  blocks.call = call;
  blocks.most = n;
}

/* Where too much is pending, the next one tries again. */
static void
count_block (void)
{
  if (blocks.call && ++blocks.n >= blocks.most && blocks.add_pending (blocks.call, NULL) == 0)
    blocks.n = 0;
}

typedef void Report (void *memory, int64_t bytes, size_t allocated, size_t reserved, TorchDevice device);

Report ls_torch_report __asm__("_ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE");

/* Of the GPU, under the lock: n bytes were handed out, or taken back where n is negative. What is taken back
 * is cleared at once where it is much, so that it takes no memory any more; which of several is first may be
 * decided by where they lie, so it is not in the trace. */
static void
note_block (void *memory, int64_t n)
{
  if (n > 0 || n < -(int64_t) MANY_PAGES)
    make_fresh (memory, (size_t) (n > 0 ? n : -n));
  if (n > 0)
    ls_trace ("block", &n, 1);
  ls_record_block (memory, n);
  count_block ();
}

void
ls_torch_report (void *memory, int64_t bytes, size_t allocated, size_t reserved, TorchDevice device)
{
  static Report *passed_on;
  void *own = passed_on ? NULL : dlopen ("libc10.so", RTLD_LAZY | RTLD_NOLOAD);
  if (own)
    passed_on = (Report *) (uintptr_t) dlsym (own, "_ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE");
  if (device.type == 1) { /* CUDA */
    ls_enter ("reportMemoryUsageToProfiler");
    note_block (memory, bytes);
    ls_leave ();
  }
  if (passed_on)
    passed_on (memory, bytes, allocated, reserved, device);
}

/* --- virtual memory --- */

typedef struct {
  size_t bytes;
  int n;      /* who holds it: its maker, and each map */
  int device; /* -1: of another process, which it is charged to */
} Physical;

typedef struct {
  Physical *physical;
  uint64_t bytes;
  pid_t pid;
} Shared; /* what a file that stands for it holds */

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
  if (p->device >= 0)
    used[p->device] -= p->bytes;
  free (p);
  return CUDA_OK;
}

int
ls_physical_export (int *ret_file, uint64_t handle)
{
  Physical *p = (Physical *) (uintptr_t) handle;
  const Shared shared = { p, p ? p->bytes : 0, getpid () };
  *ret_file = p ? memfd_create ("lockstep", MFD_CLOEXEC) : -1;
  bool ok = *ret_file >= 0 && write (*ret_file, &shared, sizeof shared) == sizeof shared;
  return ok ? CUDA_OK : CUDA_INVALID;
}

/* Of a rank that is not captured it is this one's own. */
int
ls_physical_import (uint64_t *ret_handle, int file)
{
  Shared shared;
  if (pread (file, &shared, sizeof shared, 0) != sizeof shared)
    return CUDA_INVALID;
  Physical *p = shared.physical;
  if (shared.pid == getpid ()) {
    p->n++;
  } else {
    p = malloc (sizeof *p);
    *p = (Physical) { shared.bytes, 1, -1 };
  }
  *ret_handle = (uint64_t) (uintptr_t) p;
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
