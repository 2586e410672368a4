/* capture/standin_record.c — all that a program asks of its GPU in one step, in order, a line each, with
 * the operator of PyTorch in which it is asked. lockstep_trace.py reads the lines, and says what the
 * operators are.
 *
 *   k OP STREAM NAME GRID BLOCK    a kernel; three numbers each; its name is the NAMEth line "n"
 *   n NAME                         of a kernel that is launched for the first time
 *   p OP STREAM M N K BATCH KIND   a product; KIND: of flops[] in standin.h
 *   d OP STREAM N BATCH M N K MASKED BYTES    a plan of cuDNN: as LsDnnWork has it
 *   b GRAPH and x GRAPH            what lies between is not done, but becomes a graph
 *   g OP STREAM GRAPH KERNELS PRODUCTS PS    a graph is launched: how many it has, how long it takes here
 *   c OP STREAM BYTES WAY          a copy: 0 on the device, 1 to it, 2 to the host, 3 on the host
 *   f OP STREAM BYTES              memory is filled
 *   v OP PAIRS                     of queries and keys that a head of the operator's attention multiplies
 *   m OP STREAM GROUP NAME COUNT TYPE OF    a collective, as NCCL's function counts; OF: its root, peer or
 *                                  reduction
 *   ( and )                        what lies between is sent at once
 *   r STREAM and w STREAM EVENT    an event is recorded, the EVENTth of all; a stream waits for it
 *   h STREAM, e EVENT, a           the host waits: for a stream, for an event, for all
 *   + BLOCK BYTES and - BLOCK      PyTorch's allocator hands out a block, and takes it back
 *   y CALLS                        of functions of Python, since the line before that says so
 *   o ID PLACE CALLER NAME         an operator begins that none of PyTorch's own calls, where Python says
 *
 * PyTorch says by NVTX which operator runs: its ranges carry the numbers that its own record of operators
 * has. NVTX finds this library by $NVTX_INJECTION64_PATH. */
#define _GNU_SOURCE
#include "capture/standin.h"

#include <dlfcn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST_NESTED 256

static struct {
  FILE *out, *keys; /* what is done; of what is work its keys, in order */
  int n_events, n_streams, n_names;
  int64_t n_blocks;
  int64_t n_calls;                     /* of functions of Python, since a line said how many */
  int apart;                           /* so often what runs is the capture's own */
  void *(*generator_of) (void *frame); /* PyFrame_GetGenerator(); NULL: this Python has none */
  void (*unref) (void *);
  int era; /* counts records: numbers of another one mean nothing */
  LsCapturePlace *place;
} record;

static _Thread_local struct {
  uint64_t ids[MOST_NESTED];
  bool is_aten[MOST_NESTED]; /* one of PyTorch's own, which Python does not reach into */
  int n;
} operators;

bool
ls_is_recorded (void)
{
  return record.out != NULL;
}

static uint64_t
operator_now (void)
{
  int n = operators.n < MOST_NESTED ? operators.n : MOST_NESTED;
  return n > 0 ? operators.ids[n - 1] : 0;
}

static int
stream_number (void *stream)
{
  LsStream *s = ls_stream_of (stream);
  if (s->era != record.era) {
    s->era = record.era;
    s->number = record.n_streams++;
  }
  return s->number;
}

static void
say_calls (void)
{
  if (record.n_calls > 0)
    fprintf (record.out, "y %lld\n", (long long) record.n_calls);
  record.n_calls = 0;
}

void
ls_record (char what, void *stream, const char *format, ...)
{
  if (!record.out)
    return;
  say_calls ();
  fprintf (record.out, "%c %llu %d", what, (unsigned long long) operator_now (), stream_number (stream));
  va_list arguments;
  va_start (arguments, format);
  vfprintf (record.out, format, arguments);
  va_end (arguments);
  fputc ('\n', record.out);
}

void
ls_record_key (uint64_t key)
{
  if (record.keys)
    fprintf (record.keys, "%016llx\n", (unsigned long long) key);
}

void
ls_record_mark (const char *text)
{
  if (record.out)
    fprintf (record.out, "%s\n", text);
}

void
ls_record_graph (char what, int graph)
{
  if (record.out)
    fprintf (record.out, "%c %d\n", what, graph);
}

/* --- names of kernels, each once: their addresses stay --- */

static struct {
  const char *name;
  int era, number;
} names[1 << 14];

int
ls_record_name (const char *name)
{
  enum { N = sizeof names / sizeof *names };
  if (!record.out)
    return 0;
  size_t at = ((uintptr_t) name >> 3) * UINT64_C (0x9e3779b97f4a7c15) >> 50;
  for (size_t tried = 0; names[at].name && names[at].name != name && tried < N; tried++)
    at = (at + 1) % N;
  if (names[at].name != name || names[at].era != record.era) {
    names[at].name = name;
    names[at].era = record.era;
    names[at].number = record.n_names++;
    fprintf (record.out, "n %s\n", name ? name : "");
  }
  return names[at].number;
}

/* --- events --- */

void
ls_record_event (LsEvent *event, void *stream)
{
  if (!record.out)
    return;
  event->era = record.era;
  event->number = record.n_events++;
  fprintf (record.out, "r %d\n", stream_number (stream));
}

void
ls_record_wait (void *stream, const LsEvent *event)
{
  if (record.out && event->era == record.era)
    fprintf (record.out, "w %d %d\n", stream_number (stream), event->number);
}

void
ls_record_host (void *stream, const LsEvent *event)
{
  if (!record.out || (event && event->era != record.era))
    return;
  say_calls ();
  if (event)
    fprintf (record.out, "e %d\n", event->number);
  else
    fprintf (record.out, "h %d\n", stream_number (stream));
}

/* --- blocks: by address, in open addressing with what was taken back left as it is --- */

static struct Block {
  uintptr_t at;
  int64_t number; /* -1: it was taken back */
} * live;
static size_t n_live, max_live;

static struct Block *
block_of (uintptr_t at)
{
  size_t slot = (at >> 9) * UINT64_C (0x9e3779b97f4a7c15) & (max_live - 1);
  while (live[slot].at && live[slot].at != at)
    slot = (slot + 1) & (max_live - 1);
  return &live[slot];
}

static void
grow (void)
{
  struct Block *before = live;
  size_t n = max_live;
  max_live = n ? 2 * n : 1 << 12;
  live = calloc (max_live, sizeof *live);
  for (size_t i = 0; i < n; i++)
    if (before[i].at)
      *block_of (before[i].at) = before[i];
  free (before);
}

void
ls_record_block (const void *memory, int64_t bytes)
{
  if (!record.out)
    return;
  if (2 * (n_live + 1) > max_live)
    grow ();
  struct Block *b = block_of ((uintptr_t) memory);
  if (bytes > 0) {
    n_live += b->at == 0;
    *b = (struct Block) { (uintptr_t) memory, record.n_blocks++ };
    fprintf (record.out, "+ %lld %lld\n", (long long) b->number, (long long) bytes);
  } else if (b->at && b->number >= 0) {
    fprintf (record.out, "- %lld\n", (long long) b->number);
    b->number = -1;
  }
}

/* --- NVTX --- */

static int
push (const char *text)
{
  text = text ? text : "";
  const char *id = strstr (text, ", op_id = ");
  uint64_t caller = operator_now ();
  uint64_t number = id ? strtoull (id + strlen (", op_id = "), NULL, 10) : caller;
  if (!record.out)
    return 0;
  int n = operators.n < MOST_NESTED ? operators.n : MOST_NESTED - 1;
  bool is_asked = id && record.place && !(n > 0 && operators.is_aten[n - 1]);
  int64_t n_calls = record.n_calls;
  int place = is_asked ? record.place () : -1;
  record.n_calls = n_calls; /* what it calls is not the program's */
  operators.ids[n] = number;
  operators.is_aten[n] = strncmp (text, "aten::", strlen ("aten::")) == 0;
  operators.n++;
  ls_enter ("nvtxRangePushA");
  if (place >= 0 && record.out)
    fprintf (record.out, "o %llu %d %llu %.*s\n", (unsigned long long) number, place,
             (unsigned long long) caller, (int) (id - text), text);
  ls_leave ();
  return operators.n - 1;
}

static int
pop (void)
{
  if (record.out && operators.n > 0)
    operators.n--;
  return operators.n;
}

/* NvtxGetExportTable of nvtx3/nvtxDetail/nvtxTypes.h: of table 1 the second member gives the functions of a
 * module, 1 being the core; of these number 9 is nvtxRangePushA, 11 nvtxRangePop. */
int InitializeInjectionNvtx2 (const void *(*table_of) (uint32_t));

int
InitializeInjectionNvtx2 (const void *(*table_of) (uint32_t))
{
  struct Callbacks {
    size_t size;
    int (*functions_of) (int module, void ***ret_functions, unsigned *ret_n);
  };
  const struct Callbacks *callbacks = table_of (1);
  void **functions = NULL;
  unsigned n = 0;
  if (!callbacks || !callbacks->functions_of (1, &functions, &n) || n < 12)
    return 0;
  *(int (**) (const char *)) functions[9] = push;
  *(int (**) (void)) functions[11] = pop;
  return 1;
}

/* --- for the Python side --- */

void
ls_capture_record (const char *path, LsCapturePlace *place)
{
  ls_enter ("record");
  if (record.out)
    fclose (record.out);
  if (record.keys)
    fclose (record.keys);
  record.era++;
  record.n_events = record.n_streams = record.n_names = 0;
  record.n_blocks = record.n_calls = 0;
  free (live);
  live = NULL;
  n_live = max_live = 0;
  char *keys = path ? malloc (strlen (path) + sizeof ".keys") : NULL;
  record.out = path ? fopen (path, "w") : NULL;
  record.keys = keys ? fopen (strcat (strcpy (keys, path), ".keys"), "w") : NULL;
  free (keys);
  record.place = place;
  *(void **) &record.generator_of = dlsym (RTLD_DEFAULT, "PyFrame_GetGenerator");
  *(void **) &record.unref = dlsym (RTLD_DEFAULT, "Py_DecRef");
  operators.n = 0;
  ls_leave ();
}

/* A Py_tracefunc: PyTrace_CALL is 0. A generator that goes on is one too, and left out from Python 3.11 on,
 * which tells them apart. */
int
ls_capture_called (void *object, void *frame, int what, void *argument)
{
  (void) object, (void) argument;
  if (what != 0 || record.apart > 0)
    return 0;
  void *generator = record.generator_of ? record.generator_of (frame) : NULL;
  record.n_calls += generator == NULL;
  if (generator)
    record.unref (generator);
  return 0;
}

void
ls_capture_apart (int is_apart)
{
  record.apart += is_apart ? 1 : -1;
}

void
ls_capture_pairs (double pairs)
{
  ls_enter ("pairs");
  if (record.out)
    fprintf (record.out, "v %llu %.0f\n", (unsigned long long) operator_now (), pairs);
  ls_leave ();
}
