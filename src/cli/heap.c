#include "cli/heap.h"

#include <stdlib.h> /* and with it __GLIBC__, where it is glibc */

#ifdef __GLIBC__
#include <malloc.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

#define PAGE ((uintptr_t) 2 << 20)
#define HEAP (512 << 20) /* bytes of addresses: those that nobody uses take no memory */

/* The heap grows by that many addresses, and comes in large pages from the kernel where it has them. */
static void
widen_heap (void)
{
  uintptr_t begin = ((uintptr_t) sbrk (0) + PAGE - 1) & ~(PAGE - 1);
  mallopt (M_TOP_PAD, HEAP);
  void *volatile more = malloc (1 << 20); /* than the heap has; NULL: a limit (ulimit -v) is below that */
  free (more);
  mallopt (M_TOP_PAD, 1 << 20);
  uintptr_t end = (uintptr_t) sbrk (0) & ~(PAGE - 1);
  if (end > begin)
    madvise ((void *) begin, end - begin, MADV_HUGEPAGE); /* refused: pages stay small */
}

void
cli_keep_memory (void)
{
  mallopt (M_MMAP_THRESHOLD, 32 << 20); /* the greatest that it takes */
  mallopt (M_TRIM_THRESHOLD, 2 * (HEAP - 1));
  widen_heap ();
}

#else

void
cli_keep_memory (void)
{
}

#endif
