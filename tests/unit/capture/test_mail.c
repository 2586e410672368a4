/* Pins: what captured ranks send to each other arrives, whoever is faster; receives that are posted early
 * hold nobody up; who is not captured is represented; and ranks that wait for each other end with a word
 * each. Each rank is a process. */
#include "ls_test.h"

#include <glib/gstdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "capture/standin_answers.h"

int cudaMalloc (void **memory, size_t bytes);
int cudaMemcpy (void *to, const void *from, size_t bytes, int kind);
int ncclCommInitRank (void **communicator, int n, LsUniqueId id, int rank);
int ncclAllReduce (const void *from, void *to, size_t n, int type, int op, void *communicator, void *stream);
int ncclAllGather (const void *from, void *to, size_t n, int type, void *communicator, void *stream);
int ncclReduceScatter (const void *from, void *to, size_t n, int type, int op, void *communicator,
                       void *stream);
int ncclBroadcast (const void *from, void *to, size_t n, int type, int root, void *communicator,
                   void *stream);
int ncclAllToAll (const void *from, void *to, size_t n, int type, void *communicator, void *stream);
int ncclSend (const void *from, size_t n, int type, int peer, void *communicator, void *stream);
int ncclRecv (void *to, size_t n, int type, int peer, void *communicator, void *stream);
int ncclGroupStart (void);
int ncclGroupEnd (void);

#define N_MOST 4

typedef struct {
  int slot, n; /* of the captured ranks */
  void *communicator;
  int64_t *device; /* 64 numbers, that the host reads and writes by copies alone */
} Rank;

typedef int Job (Rank *r); /* how many checks failed */

static void
put (Rank *r, int at, int64_t value)
{
  cudaMemcpy (r->device + at, &value, sizeof value, 1);
}

static int64_t
get (Rank *r, int at)
{
  int64_t value = -1;
  cudaMemcpy (&value, r->device + at, sizeof value, 2);
  return value;
}

#define EXPECT(condition) ((condition) ? 0 : (fprintf (stderr, "rank %d: not %s\n", r->slot, #condition), 1))

/* world: of how many ranks; of rank i slot i % n is the one that stands for it. */
static int
be_rank (Job *job, const char *folder, int slot, int n, int world)
{
  Rank r = { .slot = slot, .n = n };
  LsUniqueId id = { { 0 } };
  int sources[16];
  uint8_t is_real[16];
  void *memory;
  for (int i = 0; i < world; i++) {
    sources[i] = i % n == slot ? -1 : i % n;
    is_real[i] = i < n;
  }
  memcpy (id.bytes + sizeof id - 16, "g1", 2);
  ls_capture_mail_open (folder, n, slot);
  ls_capture_group ("g1", 3, world, slot, 77, sources, is_real);
  ncclCommInitRank (&r.communicator, world, id, slot);
  cudaMalloc (&memory, 64 * sizeof (int64_t));
  r.device = memory;
  int n_failed = job (&r);
  ls_capture_mail_close ();
  return n_failed;
}

static void
run_world (Job *job, int n, int world, int expected)
{
  g_autofree char *folder = g_dir_make_tmp ("ls-mail-XXXXXX", NULL);
  pid_t pids[N_MOST];
  g_setenv ("LOCKSTEP_CAPTURE",
            "name=NVIDIA_H100 memory=8589934592 context=0 capability=90 sm=132 devices=8 flops16=1e15 "
            "flops8=2e15 tf32=5e14 fp32=6.7e13 hbm=3e12 bus=3e11",
            TRUE);
  for (int slot = n - 1; slot >= 0; slot--) { /* the last is the first to begin */
    pids[slot] = fork ();
    if (pids[slot] == 0)
      _exit (be_rank (job, folder, slot, n, world));
  }
  for (int slot = 0; slot < n; slot++) {
    int status = 0;
    waitpid (pids[slot], &status, 0);
    LS_CHECK_INT (WIFEXITED (status) ? WEXITSTATUS (status) : -1, ==, expected);
  }
  for (int i = 0; i <= n; i++) {
    g_autofree char *name = i == n ? g_strdup ("board0") : g_strdup_printf ("rank%d", i);
    g_autofree char *path = g_build_filename (folder, name, NULL);
    g_unlink (path);
  }
  LS_CHECK_INT (g_rmdir (folder), ==, 0);
}

#define INT64 4

static int
collectives (Rank *r)
{
  int n_failed = 0, other = 1 - r->slot;
  put (r, 0, 1 + 9 * r->slot);
  ncclAllReduce (r->device, r->device + 1, 1, INT64, 0, r->communicator, NULL);
  n_failed += EXPECT (get (r, 1) == 11);
  ncclAllReduce (r->device, r->device + 1, 1, INT64, 2, r->communicator, NULL);
  n_failed += EXPECT (get (r, 1) == 10);
  ncclAllReduce (r->device, r->device + 1, 1, INT64, 3, r->communicator, NULL);
  n_failed += EXPECT (get (r, 1) == 1);
  ncclAllReduce (r->device, r->device + 1, 1, INT64, 1, r->communicator, NULL);
  n_failed += EXPECT (get (r, 1) == 10);
  ncclAllGather (r->device, r->device + 2, 1, INT64, r->communicator, NULL);
  n_failed += EXPECT (get (r, 2) == 1 && get (r, 3) == 10);
  ncclBroadcast (r->device, r->device + 4, 1, INT64, 1, r->communicator, NULL);
  n_failed += EXPECT (get (r, 4) == 10);
  put (r, 5, 100 * r->slot);
  put (r, 6, 100 * r->slot + 1);
  ncclAllToAll (r->device + 5, r->device + 7, 1, INT64, r->communicator, NULL);
  n_failed += EXPECT (get (r, 7) == r->slot && get (r, 8) == 100 + r->slot);
  ncclReduceScatter (r->device + 5, r->device + 9, 1, INT64, 0, r->communicator, NULL);
  n_failed += EXPECT (get (r, 9) == 100 + 2 * r->slot);
  ncclGroupStart ();
  ncclSend (r->device, 1, INT64, other, r->communicator, NULL);
  ncclRecv (r->device + 10, 1, INT64, other, r->communicator, NULL);
  ncclGroupEnd ();
  return n_failed + EXPECT (get (r, 10) == 1 + 9 * other);
}

static void
collectives_have_what_each_rank_sent (void)
{
  run_world (collectives, 2, 2, 0);
}

/* Rank 0 posts a receive of what rank 1 sends only after it has heard from rank 0. */
static int
early_receive (Rank *r)
{
  int n_failed = 0;
  if (r->slot == 0) {
    ncclRecv (r->device, 1, INT64, 1, r->communicator, NULL);
    put (r, 1, 5);
    ncclSend (r->device + 1, 1, INT64, 1, r->communicator, NULL);
    n_failed += EXPECT (get (r, 0) == 6);
  } else {
    ncclRecv (r->device, 1, INT64, 0, r->communicator, NULL);
    put (r, 1, get (r, 0) + 1);
    ncclSend (r->device + 1, 1, INT64, 0, r->communicator, NULL);
  }
  return n_failed;
}

static void
early_receives_hold_nobody_up (void)
{
  run_world (early_receive, 2, 2, 0);
}

/* What is written over what was to be received is not received. */
static int
overwritten (Rank *r)
{
  put (r, 1, 7);
  ncclAllReduce (r->device + 1, r->device, 1, INT64, 0, r->communicator, NULL);
  put (r, 0, 3);
  int n_failed = EXPECT (get (r, 0) == 3);
  ncclAllReduce (r->device, r->device, 1, INT64, 0, r->communicator, NULL);
  ncclAllReduce (r->device, r->device, 1, INT64, 0, r->communicator, NULL); /* of what that came to */
  return n_failed + EXPECT (get (r, 0) == 12);
}

static void
memory_that_is_written_again_is_not_received (void)
{
  run_world (overwritten, 2, 2, 0);
}

/* Ranks 0 to 7: the odd ones are as rank 1. */
static int
represented (Rank *r)
{
  int n_failed = 0;
  put (r, 0, r->slot == 0 ? 1 : 10);
  ncclAllReduce (r->device, r->device + 1, 1, INT64, 0, r->communicator, NULL);
  n_failed += EXPECT (get (r, 1) == 44);
  ncclAllReduce (r->device, r->device + 1, 1, INT64, 4, r->communicator, NULL);
  n_failed += EXPECT (get (r, 1) == 5);
  ncclAllGather (r->device, r->device + 2, 1, INT64, r->communicator, NULL);
  for (int i = 0; i < 8; i++)
    n_failed += EXPECT (get (r, 2 + i) == (i % 2 ? 10 : 1));
  ncclBroadcast (r->device, r->device + 20, 1, INT64, 7, r->communicator, NULL);
  return n_failed + EXPECT (get (r, 20) == 10);
}

static void
who_is_absent_is_represented (void)
{
  run_world (represented, 2, 8, 0);
}

static int
each_for_the_next (Rank *r)
{
  ncclRecv (r->device, 1, INT64, (r->slot + 1) % r->n, r->communicator, NULL);
  get (r, 0);
  return 0;
}

static void
ranks_that_wait_for_each_other_end (void)
{
  run_world (each_for_the_next, 3, 3, LS_EXIT_STUCK);
}

/* The third has ended: it will not send. */
static int
one_ends (Rank *r)
{
  if (r->slot == 2)
    return 0;
  put (r, 0, 4);
  ncclAllReduce (r->device, r->device, 1, INT64, 0, r->communicator, NULL);
  return EXPECT (get (r, 0) == 12);
}

static void
who_has_ended_is_as_who_asks (void)
{
  run_world (one_ends, 3, 3, 0);
}

static gpointer
send_later (gpointer data)
{
  Rank *r = data;
  g_usleep (100000);
  put (r, 1, 5);
  ncclSend (r->device + 1, 1, INT64, 1, r->communicator, NULL);
  return NULL;
}

/* Rank 0 waits, and what its other thread sends is what rank 1 waits for. */
static int
two_threads (Rank *r)
{
  ncclRecv (r->device, 1, INT64, 1 - r->slot, r->communicator, NULL);
  if (r->slot == 1) {
    put (r, 1, get (r, 0) + 1);
    ncclSend (r->device + 1, 1, INT64, 0, r->communicator, NULL);
    return 0;
  }
  GThread *other = g_thread_new ("other", send_later, r);
  int64_t got = get (r, 0);
  g_thread_join (other);
  return EXPECT (got == 6);
}

static void
other_threads_go_on_while_one_waits (void)
{
  alarm (60); /* else it hangs */
  run_world (two_threads, 2, 2, 0);
  alarm (0);
}

/* A key of a store that nobody sets: the lowest goes on without it, and sets what the other waits for. */
static int
store (Rank *r)
{
  char text[8] = "";
  int64_t n = ls_capture_mail_get (-1, r->slot == 0 ? 1 : 2, text, sizeof text, 1);
  if (r->slot == 0)
    ls_capture_mail_put (2, "two", 4);
  return EXPECT (r->slot == 0 ? n == -1 : n == 4 && strcmp (text, "two") == 0);
}

static void
a_key_of_nobody_is_answered_when_all_wait (void)
{
  run_world (store, 2, 2, 0);
}

/* In an order of its own each: 4 ranks, 300 messages from each to each. */
static int
storm (Rank *r)
{
  g_autoptr (GRand) rand = g_rand_new_with_seed ((guint32) (81 + r->slot));
  int n_failed = 0, n_sent[N_MOST] = { 0 }, n_received[N_MOST] = { 0 };
  for (int i = 0; i < 1800; i++) {
    int peer = g_rand_int_range (rand, 0, r->n);
    if (peer != r->slot && n_sent[peer] < 300) {
      put (r, 1, 1000 * r->slot + n_sent[peer]++);
      ncclSend (r->device + 1, 1, INT64, peer, r->communicator, NULL);
    }
  }
  for (int peer = 0; peer < r->n; peer++)
    for (; peer != r->slot && n_sent[peer] < 300; n_sent[peer]++) {
      put (r, 1, 1000 * r->slot + n_sent[peer]);
      ncclSend (r->device + 1, 1, INT64, peer, r->communicator, NULL);
    }
  for (int i = 0; i < 300; i++)
    for (int peer = 0; peer < r->n; peer++)
      if (peer != r->slot) {
        ncclRecv (r->device, 1, INT64, peer, r->communicator, NULL);
        n_failed += EXPECT (get (r, 0) == 1000 * peer + n_received[peer]);
        n_received[peer]++;
      }
  return n_failed;
}

static void
messages_keep_their_order (void)
{
  run_world (storm, 4, 4, 0);
}

LS_TEST_SUITE (LS_TEST (collectives_have_what_each_rank_sent), LS_TEST (early_receives_hold_nobody_up),
               LS_TEST (memory_that_is_written_again_is_not_received), LS_TEST (who_is_absent_is_represented),
               LS_TEST (ranks_that_wait_for_each_other_end), LS_TEST (who_has_ended_is_as_who_asks),
               LS_TEST (a_key_of_nobody_is_answered_when_all_wait),
               LS_TEST (other_threads_go_on_while_one_waits), LS_TEST (messages_keep_their_order))
