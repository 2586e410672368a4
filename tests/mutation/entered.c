/* entered.c — which functions a test enters, for tests/mutation/run.
 *
 * gcc's -finstrument-functions calls the hook below at each entry. With LS_MUTATION_ENTERED=FILE
 * the addresses met, once each and relative to the library, are appended to that file at exit. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define UNSEEN __attribute__ ((no_instrument_function))
#define SLOTS  (1u << 17) /* ten times the functions of src/ */

void __cyg_profile_func_enter (void *function, void *site) UNSEEN;
void __cyg_profile_func_exit (void *function, void *site) UNSEEN;
static void start (void) UNSEEN __attribute__ ((constructor));
static void finish (void) UNSEEN __attribute__ ((destructor));

static void *seen[SLOTS];
static const char *path;

static void
start (void)
{
  path = getenv ("LS_MUTATION_ENTERED");
}

void
__cyg_profile_func_enter (void *function, void *site)
{
  if (!path)
    return;
  for (size_t i = ((uintptr_t) function >> 2) % SLOTS; seen[i] != function; i = (i + 1) % SLOTS) {
    void *empty = NULL;
    if (__atomic_compare_exchange_n (&seen[i], &empty, function, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
      return;
  }
}

void
__cyg_profile_func_exit (void *function, void *site)
{
}

static void
finish (void)
{
  FILE *out = path ? fopen (path, "a") : NULL;
  Dl_info own, at;
  if (!out || !dladdr ((void *) finish, &own))
    return;
  for (size_t i = 0; i < SLOTS; i++)
    if (seen[i] && dladdr (seen[i], &at) && at.dli_fbase == own.dli_fbase)
      fprintf (out, "%lx\n", (unsigned long) ((char *) seen[i] - (char *) at.dli_fbase));
  fclose (out);
}
