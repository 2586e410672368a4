/* capture/standin_state.c — configuration, lock, refusals, counts, trace of the stand-ins: see standin.h. */
#include "capture/standin.h"

#include <malloc.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

LsDevice ls_device;

static pthread_mutex_t lock;
static pthread_once_t once = PTHREAD_ONCE_INIT;

/* --- configuration --- */

static const struct {
  const char *key;
  int *value;
} ints[] = {
  { "sm", &ls_device.n_sm },
  { "capability", &ls_device.capability },
  { "devices", &ls_device.n_devices },
  { "cuda", &ls_device.cuda },
  { "driver", &ls_device.driver },
  { "nccl", &ls_device.nccl },
  { "cudnn", &ls_device.cudnn },
  { "warps_per_sm", &ls_device.warps_per_sm },
  { "blocks_per_sm", &ls_device.blocks_per_sm },
  { "shared_per_sm", &ls_device.shared_per_sm },
  { "shared_per_block", &ls_device.shared_per_block },
  { "l2", &ls_device.l2 },
};

static const struct {
  const char *key;
  double *value;
} doubles[] = {
  { "flops16", &ls_device.flops[0] }, { "flops8", &ls_device.flops[1] }, { "tf32", &ls_device.flops[2] },
  { "fp32", &ls_device.flops[3] },    { "hbm", &ls_device.hbm },         { "bus", &ls_device.bus },
  { "speed", &ls_device.speed },
};

static void
set (const char *key, const char *value)
{
  for (size_t i = 0; i < sizeof ints / sizeof *ints; i++)
    if (strcmp (key, ints[i].key) == 0)
      *ints[i].value = atoi (value);
  for (size_t i = 0; i < sizeof doubles / sizeof *doubles; i++)
    if (strcmp (key, doubles[i].key) == 0)
      *doubles[i].value = atof (value);
  if (strcmp (key, "memory") == 0)
    ls_device.memory = strtoull (value, NULL, 10);
  if (strcmp (key, "context") == 0)
    ls_device.context = strtoull (value, NULL, 10);
  if (strcmp (key, "name") == 0)
    for (size_t i = 0; i + 1 < sizeof ls_device.name && value[i]; i++)
      ls_device.name[i] = value[i] == '_' ? ' ' : value[i];
}

static void
load (void)
{
  pthread_mutexattr_t recursive;
  pthread_mutexattr_init (&recursive);
  pthread_mutexattr_settype (&recursive, PTHREAD_MUTEX_RECURSIVE);
  pthread_mutex_init (&lock, &recursive);
  /* Else what is computed on the host, MiBs for moments, leaves holes of many times that in the heap of each
   * process. */
  mallopt (M_MMAP_THRESHOLD, 1 << 20);
  const char *given = getenv ("LOCKSTEP_CAPTURE");
  if (!given)
    ls_refuse ("LOCKSTEP_CAPTURE", "the environment does not name a GPU: lockstep capture sets it");
  char *words = strdup (given), *rest = words;
  ls_device.speed = 1;
  for (char *word; (word = strsep (&rest, " "));) {
    char *mark = strchr (word, '=');
    if (!mark)
      continue;
    *mark = '\0';
    set (word, mark + 1);
  }
  if (ls_device.n_devices > LS_MOST_DEVICES)
    ls_device.n_devices = LS_MOST_DEVICES;
  free (words);
}

void
ls_enter (const char *name)
{
  (void) name;
  pthread_once (&once, load);
  pthread_mutex_lock (&lock);
}

void
ls_leave (void)
{
  pthread_mutex_unlock (&lock);
}

int *
ls_current_device (void)
{
  static _Thread_local int device;
  return &device;
}

/* Numbers or "GPU-..." between commas; what comes after the first one that is no device is not seen. */
static int
count_visible (const char *list)
{
  int n = 0;
  while (list && *list && n < ls_device.n_devices) {
    char *end;
    long device = strtol (list, &end, 10);
    if (strncmp (list, "GPU-", 4) != 0 && (end == list || device < 0 || device >= ls_device.n_devices))
      break;
    n++;
    list = strchr (list, ',');
    list = list ? list + 1 : NULL;
  }
  return n;
}

int
ls_n_visible (void)
{
  static int n = -1;
  const char *list = getenv ("CUDA_VISIBLE_DEVICES");
  if (n < 0)
    n = list ? count_visible (list) : ls_device.n_devices;
  return n;
}

/* The Python side knows what the program was doing. */
void
ls_refuse (const char *name, const char *why)
{
  const char *path = getenv ("LOCKSTEP_CAPTURE_REFUSED");
  FILE *file = path ? fopen (path, "w") : NULL;
  fprintf (file ? file : stderr, "%s: %s\n", name, why);
  fflush (file ? file : stderr);
  _exit (70);
}

/* --- counts --- */

static struct {
  const char *what;
  int64_t n;
} counts[64];

int64_t
ls_count (const char *what, int64_t n)
{
  for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
    if (!counts[i].what)
      counts[i].what = what;
    if (strcmp (counts[i].what, what) == 0)
      return counts[i].n += n;
  }
  return 0;
}

/* For the Python side: "kernels 1234\n..." into text; how long it is. */
size_t
ls_capture_counts (char *text, size_t size)
{
  size_t n = 0;
  for (size_t i = 0; i < sizeof counts / sizeof *counts && counts[i].what; i++)
    n += (size_t) snprintf (text + n, n < size ? size - n : 0, "%s %lld\n", counts[i].what,
                            (long long) counts[i].n);
  return n;
}

/* --- the trace --- */

static uint64_t trace;
static struct {
  uint64_t key;
  int64_t n;
} * kinds; /* of what was done, by its hash: open addressing; n: 0: none */
static size_t n_kinds, max_kinds;

uint64_t
ls_mix (uint64_t hash, uint64_t word)
{
  hash = (hash ^ word)
      * UINT64_C (0x9E3779B97F4A7C15); /* 2^64 over the golden ratio: Knuth's multiplicative hash */
  return hash ^ hash >> 29;
}

static void
add_kind (uint64_t key, int64_t n)
{
  if (2 * n_kinds >= max_kinds) {
    size_t max = max_kinds;
    __typeof__ (kinds) old = kinds;
    max_kinds = max ? 2 * max : 1024;
    kinds = calloc (max_kinds, sizeof *kinds);
    n_kinds = 0;
    for (size_t i = 0; i < max; i++)
      if (old[i].n > 0)
        add_kind (old[i].key, old[i].n);
    free (old);
  }
  size_t slot = (size_t) key & (max_kinds - 1);
  while (kinds[slot].n > 0 && kinds[slot].key != key)
    slot = (slot + 1) & (max_kinds - 1);
  n_kinds += kinds[slot].n == 0;
  kinds[slot].key = key;
  kinds[slot].n += n;
}

uint64_t
ls_trace (const char *what, const int64_t *values, size_t n)
{
  size_t length = what ? strlen (what) : 0;
  uint64_t hash = 0;
  for (size_t i = 0; i < length; i += sizeof (uint64_t)) {
    uint64_t word = 0;
    memcpy (&word, what + i, length - i < sizeof word ? length - i : sizeof word);
    hash = ls_mix (hash, word);
  }
  for (size_t i = 0; i < n; i++)
    hash = ls_mix (hash, (uint64_t) values[i]);
  trace = ls_mix (trace, hash);
  add_kind (hash, 1);
  return hash;
}

uint64_t
ls_capture_trace (void)
{
  return trace;
}

size_t
ls_capture_kinds (uint64_t *keys, int64_t *how_often, size_t most)
{
  size_t n = 0;
  for (size_t i = 0; i < max_kinds && n < most; i++)
    if (kinds[i].n > 0) {
      keys[n] = kinds[i].key;
      how_often[n++] = kinds[i].n;
    }
  return most > 0 ? n : n_kinds;
}
