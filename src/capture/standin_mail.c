/* capture/standin_mail.c — what captured ranks send to each other. Each appends what it sends to a file of
 * its own, and reads those of the others; nothing is ever taken away, so that a rank that comes later finds
 * the same: a file "ended" names one that had ended when the capture was stopped, and is not run again. A
 * board, a file that all map, says how much of each file is whole, who waits, and who has ended.
 *
 * A message has a key, which sender and receiver form alike: of a communicator, its ranks and how many of
 * them were made before; of what is sent on it, the operation's number. No receiver takes what comes first
 * from several, so what each reads does not depend on who is faster (Kahn, The semantics of a simple language
 * for parallel programming, 1974).
 *
 * Where all that run wait, some wait for what nobody will send: of a rank that only stands for another, or a
 * key of a store that an absent rank would have set. The lowest of these goes on without. Where there is
 * none, they wait for each other: each says on which line, and ends. */
#define _GNU_SOURCE
#include "capture/standin.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define LS_MOST_RANKS 1024 /* captured at once */
#define LS_PATIENCE   3    /* seconds: another thread of a rank that waits may send */

typedef enum { HAS_NOT_BEGUN, RUNS, WAITS, WAITS_FOR_ANYONE, HAS_ENDED } SlotState;

typedef struct {
  SlotState state;
  uint64_t seen;    /* turn of the board at which it found nothing */
  uint64_t written; /* bytes of its file that are whole */
} Slot;

typedef struct {
  pthread_mutex_t lock;
  pthread_cond_t changed;
  uint64_t turn; /* grows with all that is written, and with each that ends */
  time_t since;  /* when it grew */
  int go_on;     /* slot + 1 of whom nobody will answer; 0: none */
  bool is_stuck; /* all wait for each other */
  Slot slots[LS_MOST_RANKS];
} Board;

typedef struct {
  uint64_t key, bytes;
} Head; /* of a message in a file */

/* A file as far as it was read: where each message stands. */
typedef struct {
  int file;
  uint64_t read;
  struct {
    uint64_t key, at, bytes;
  } * messages; /* open addressing; at 0: none */
  size_t n, max;
} Box;

static Board *board;
static Box *boxes;
static int n_slots, own_slot = -1, own_file = -1;
static LsCaptureCall *call_python;

void
ls_capture_on_call (LsCaptureCall *call)
{
  call_python = call;
}

bool
ls_mail_call (LsCallKind kind, int number, int peer)
{
  if (!call_python)
    return false;
  ls_leave ();
  bool is_heard = call_python (kind, number, peer) != 0;
  ls_enter ("Python");
  return is_heard;
}

/* --- the board --- */

static void
make_board (Board *b)
{
  pthread_mutexattr_t lock;
  pthread_condattr_t changed;
  pthread_mutexattr_init (&lock);
  pthread_mutexattr_setpshared (&lock, PTHREAD_PROCESS_SHARED);
  pthread_mutexattr_setrobust (&lock, PTHREAD_MUTEX_ROBUST);
  pthread_mutex_init (&b->lock, &lock);
  pthread_condattr_init (&changed);
  pthread_condattr_setpshared (&changed, PTHREAD_PROCESS_SHARED);
  pthread_cond_init (&b->changed, &changed);
}

static void
enter_board (void)
{
  if (pthread_mutex_lock (&board->lock) == EOWNERDEAD)
    pthread_mutex_consistent (&board->lock);
}

static void
leave_board (void)
{
  pthread_mutex_unlock (&board->lock);
}

/* Something has changed. Under the board's lock. */
static void
turn_board (void)
{
  board->turn++;
  board->since = time (NULL);
  pthread_cond_broadcast (&board->changed);
}

static int
open_in (const char *folder, const char *name, int number, int flags)
{
  char path[4096];
  snprintf (path, sizeof path, "%s/%s%d", folder, name, number);
  return open (path, flags | O_CLOEXEC, 0600);
}

/* Of a capture that was interrupted: ranks that are not run again. */
static void
note_ended (Board *b, const char *folder)
{
  for (int i = 0; i < LS_MOST_RANKS; i++) {
    int mark = open_in (folder, "ended", i, O_RDONLY),
        file = mark < 0 ? -1 : open_in (folder, "rank", i, O_RDONLY);
    struct stat is;
    if (mark >= 0)
      b->slots[i].state = HAS_ENDED;
    if (file >= 0 && fstat (file, &is) == 0)
      b->slots[i].written = (uint64_t) is.st_size;
    if (file >= 0)
      close (file);
    if (mark >= 0)
      close (mark);
  }
}

static Board *
map_board (const char *folder)
{
  int file = open_in (folder, "board", 0, O_RDWR | O_CREAT);
  struct stat is;
  if (file < 0)
    return NULL;
  flock (file, LOCK_EX);
  bool is_new = fstat (file, &is) == 0 && is.st_size == 0;
  Board *b = !is_new || ftruncate (file, sizeof (Board)) == 0
      ? mmap (NULL, sizeof (Board), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0)
      : MAP_FAILED;
  if (b != MAP_FAILED && is_new) {
    make_board (b);
    note_ended (b, folder);
  }
  flock (file, LOCK_UN); /* the map keeps the file open */
  close (file);
  return b == MAP_FAILED ? NULL : b;
}

void
ls_capture_mail_open (const char *folder, int n, int slot)
{
  if (n > LS_MOST_RANKS)
    ls_refuse ("ranks", "more than 1,024 are to be captured at once");
  Board *b = map_board (folder);
  boxes = calloc ((size_t) n, sizeof *boxes);
  for (int i = 0; i < n; i++)
    boxes[i].file = open_in (folder, "rank", i, O_RDONLY | O_CREAT);
  own_file = open_in (folder, "rank", slot, O_WRONLY | O_APPEND | O_CREAT);
  if (!b || own_file < 0)
    ls_refuse (folder, "cannot be written");
  n_slots = n;
  own_slot = slot;
  board = b;
  enter_board ();
  board->slots[slot].state = RUNS;
  turn_board ();
  leave_board ();
}

void
ls_capture_mail_close (void)
{
  if (!board)
    return;
  enter_board ();
  board->slots[own_slot].state = HAS_ENDED;
  turn_board ();
  leave_board ();
}

/* --- messages --- */

static bool
write_all (const void *data, size_t bytes)
{
  const char *at = data;
  while (bytes > 0) {
    ssize_t n = write (own_file, at, bytes);
    if (n < 0 && errno != EINTR)
      return false;
    at += n > 0 ? n : 0;
    bytes -= n > 0 ? (size_t) n : 0;
  }
  return true;
}

void
ls_capture_mail_put (uint64_t key, const void *data, size_t bytes)
{
  Head head = { key, bytes };
  if (!board)
    return;
  if (!write_all (&head, sizeof head) || !write_all (data, bytes))
    ls_refuse ("what ranks send to each other", "cannot be written: is the disk full?");
  enter_board ();
  board->slots[own_slot].written += sizeof head + bytes;
  turn_board ();
  leave_board ();
}

static size_t
slot_of (const Box *b, uint64_t key)
{
  size_t at = (key >> 20) & (b->max - 1);
  while (b->messages[at].at && b->messages[at].key != key)
    at = (at + 1) & (b->max - 1);
  return at;
}

/* The first with a key stays: a store's keys are set again. */
static void
note_message (Box *b, Head head, uint64_t at)
{
  if (2 * (b->n + 1) > b->max) {
    Box before = *b;
    b->max = before.max ? 2 * before.max : 256;
    b->messages = calloc (b->max, sizeof *b->messages);
    for (size_t i = 0; i < before.max; i++)
      if (before.messages[i].at)
        b->messages[slot_of (b, before.messages[i].key)] = before.messages[i];
    free (before.messages);
  }
  size_t i = slot_of (b, head.key);
  if (b->messages[i].at)
    return;
  b->messages[i].key = head.key;
  b->messages[i].at = at;
  b->messages[i].bytes = head.bytes;
  b->n++;
}

/* Reads on; at of the message after its head, or 0. */
static uint64_t
find_message (int slot, uint64_t key, uint64_t *ret_bytes)
{
  Box *b = &boxes[slot];
  Head head;
  while (b->read < board->slots[slot].written
         && pread (b->file, &head, sizeof head, (off_t) b->read) == sizeof head) {
    note_message (b, head, b->read + sizeof head);
    b->read += sizeof head + head.bytes;
  }
  size_t i = b->max ? slot_of (b, key) : 0;
  if (!b->max || !b->messages[i].at)
    return 0;
  *ret_bytes = b->messages[i].bytes;
  return b->messages[i].at;
}

/* Of slot, or of any where it is below 0; who has it, or -1. *ret_may_come: somebody who could send it
 * runs. */
static int
who_has (int slot, uint64_t key, uint64_t *ret_at, uint64_t *ret_bytes, bool *ret_may_come)
{
  int first = slot < 0 ? 0 : slot, last = slot < 0 ? n_slots - 1 : slot;
  *ret_may_come = false;
  for (int i = first; i <= last; i++) {
    *ret_at = find_message (i, key, ret_bytes);
    if (*ret_at)
      return i;
    *ret_may_come |= i != own_slot && board->slots[i].state != HAS_ENDED;
  }
  return -1;
}

/* --- waits --- */

static bool
is_waiting (const Slot *s)
{
  return s->state == WAITS || s->state == WAITS_FOR_ANYONE;
}

/* Whether all that have not ended wait, and looked since something changed; then somebody goes on, or none
 * can. */
static void
settle_if_all_wait (void)
{
  int go_on = 0;
  for (int i = n_slots - 1; i >= 0; i--) {
    const Slot *s = &board->slots[i];
    if (s->state != HAS_ENDED && !(is_waiting (s) && s->seen == board->turn))
      return;
    if (s->state == WAITS_FOR_ANYONE)
      go_on = i + 1;
  }
  board->go_on = go_on;
  board->is_stuck = go_on == 0 && time (NULL) - board->since >= LS_PATIENCE;
  pthread_cond_broadcast (&board->changed);
}

/* Until something changes: false where nobody will answer. Without our own lock meanwhile: a watchdog that it
 * kept waiting would think that it is the GPU which hangs. */
static bool
wait_a_turn (bool is_for_anyone)
{
  Slot *own = &board->slots[own_slot];
  struct timespec until;
  own->state = is_for_anyone ? WAITS_FOR_ANYONE : WAITS;
  own->seen = board->turn;
  settle_if_all_wait ();
  clock_gettime (CLOCK_REALTIME, &until);
  until.tv_sec += 1; /* who died with the board's lock wakes nobody */
  ls_leave ();
  if (board->go_on != own_slot + 1 && !board->is_stuck
      && pthread_cond_timedwait (&board->changed, &board->lock, &until) == EOWNERDEAD)
    pthread_mutex_consistent (&board->lock);
  own->state = RUNS;
  bool goes_on = board->go_on != own_slot + 1;
  if (!goes_on) {
    board->go_on = 0;
    turn_board ();
  }
  leave_board (); /* never both at once, in this order */
  ls_enter ("mail");
  enter_board ();
  return goes_on;
}

int64_t
ls_mail_get (int slot, uint64_t key, void *to, size_t most, bool is_for_anyone)
{
  uint64_t at = 0, bytes = 0;
  bool may_come, goes_on = true;
  int who = -1;
  if (!board)
    return -1;
  enter_board ();
  for (;;) {
    who = who_has (slot, key, &at, &bytes, &may_come);
    if (who >= 0 || !may_come || !goes_on)
      break;
    goes_on = wait_a_turn (is_for_anyone);
    if (board->is_stuck) {
      leave_board ();
      ls_mail_call (LS_CALL_STUCK, slot, 0);
      _exit (LS_EXIT_STUCK);
    }
  }
  leave_board ();
  size_t n = bytes < most ? bytes : most;
  return who >= 0 && pread (boxes[who].file, to, n, (off_t) at) == (ssize_t) n ? (int64_t) bytes : -1;
}

int64_t
ls_capture_mail_get (int slot, uint64_t key, void *to, size_t most, int is_for_anyone)
{
  ls_enter ("mail");
  int64_t n = ls_mail_get (slot, key, to, most, is_for_anyone != 0);
  ls_leave ();
  return n;
}
