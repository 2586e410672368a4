/* ask/profile/import_profile.h — profiles of a real run as a trace that can be replayed.
 *
 * A profile of one rank stands for all of them: each runs its step. Of several each rank runs its own, and
 * one without a profile that of the nearest rank below it that has one.
 *
 * Kernels take the time that they took. Communication is ours where the profile says what it moves and among
 * whom: its time is that of the cluster of the replay. It is as measured where the profile does not say
 * that, between two ranks (send and receive), and if asked for. */
#ifndef LS_ASK_PROFILE_IMPORT_PROFILE_H
#define LS_ASK_PROFILE_IMPORT_PROFILE_H

#include "ask/profile/profile_program.h"

typedef struct {
  const char *const *paths; /* ends in NULL      */
  const char *name;         /* of the trace      */
  const char *step;         /* as of ls_measured_step_cut() */
  bool as_measured;         /* communication too */
  LsProfileChanges changes;
} LsProfileImportSpec;

/* Communication of one kind, group and size. */
typedef struct {
  uint8_t class; /* LsOpClass */
  uint64_t bytes;
  uint32_t size; /* of its group; 0: not known */
  bool is_ours;
  guint n;
  LsTime time; /* measured, of all */
} LsProfileTraffic;

typedef struct {
  char *text; /* of the trace */
  char *what; /* which step   */
  char *gpu;  /* NULL: not said */
  LsTime step, kernels,
      host_late; /* measured, of the first profile: the step, its kernels, what began late */
  guint n_profiles, n_kernels, n_copies, n_syncs;
  uint32_t n_ranks;
  bool has_mesh;
  LsMesh mesh;
  GArray *traffic;  /* LsProfileTraffic, of the first profile */
  GPtrArray *notes; /* char *: what is assumed                */
} LsProfileImport;

/* loaded: a profile, which it takes; NULL: those of spec->paths. LS_ERROR_INPUT, LS_ERROR_LIMIT,
 * LS_ERROR_CONFLICT: the profiles are not of one job. */
LsProfileImport *ls_profile_import_new (LsKineto *loaded, const LsProfileImportSpec *spec, GError **error);
void ls_profile_import_free (LsProfileImport *import); /* NULL allowed */
G_DEFINE_AUTOPTR_CLEANUP_FUNC (LsProfileImport, ls_profile_import_free)

#endif
