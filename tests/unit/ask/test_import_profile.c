/* Pins that a profiled step becomes a trace whose replay takes as long, on the cluster that it ran on and as
 * measured, to the nanosecond; that it reacts to what is changed: slower communication, kernels, no stalls;
 * which waits hold; which process groups become which communicators; several ranks; steps of several
 * segments; and what is refused. The profiles are made up here. */
#include "ls_test.h"

#include <glib/gstdio.h>
#include <string.h>

#include "ask/profile/import_profile.h"
#include "job/job.h"

/* ---- a profile ---- */

typedef struct {
  GString *events;
  int correlation;
} Profile;

static Profile
profile_new (void)
{
  return (Profile) { g_string_new (NULL), 0 };
}

static void G_GNUC_PRINTF (2, 3) add (Profile *p, const char *format, ...)
{
  va_list args;
  va_start (args, format);
  g_string_append (p->events, p->events->len > 0 ? ",\n" : "");
  g_string_append_vprintf (p->events, format, args);
  va_end (args);
}

static void
add_step (Profile *p, int number, double from, double to)
{
  add (p,
       "{\"ph\":\"X\",\"cat\":\"user_annotation\",\"name\":\"ProfilerStep#%d\",\"pid\":1,\"tid\":1,"
       "\"ts\":%.3f,\"dur\":%.3f}",
       number, from, to - from);
}

/* Microseconds. args: more of them, each behind a comma. */
static void
add_op (Profile *p, const char *name, int stream, double launch, double start, double dur, const char *args)
{
  int id = ++p->correlation;
  bool is_copy = g_str_has_prefix (name, "Memcpy");
  add (p,
       "{\"ph\":\"X\",\"cat\":\"cuda_runtime\",\"name\":\"cudaLaunchKernel\",\"pid\":1,\"tid\":1,\"ts\":%.3f,"
       "\"dur\":4,\"args\":{\"correlation\":%d}}",
       launch, id);
  add (p,
       "{\"ph\":\"X\",\"cat\":\"%s\",\"name\":\"%s\",\"pid\":0,\"tid\":%d,\"ts\":%.3f,\"dur\":%.3f,"
       "\"args\":{\"device\":0,\"stream\":%d,\"correlation\":%d%s}}",
       is_copy ? "gpu_memcpy" : "kernel", name, stream, start, dur, stream, id, args);
}

static void
add_call (Profile *p, const char *name, double start, double dur)
{
  add (p,
       "{\"ph\":\"X\",\"cat\":\"cuda_runtime\",\"name\":\"%s\",\"pid\":1,\"tid\":1,\"ts\":%.3f,\"dur\":%.3f,"
       "\"args\":{\"correlation\":%d}}",
       name, start, dur, ++p->correlation);
}

#define ALL_REDUCE "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)"
#define OF(name, desc, size, ranks, n)                                                                       \
  ",\"Collective name\":\"allreduce\",\"In msg nelems\":" #n ",\"Out msg nelems\":" #n                       \
  ",\"Group size\":" #size ",\"dtype\":\"BFloat16\",\"Process Group Name\":\"" name                          \
  "\",\"Process Group Description\":\"" desc "\",\"Process Group Ranks\":\"" ranks "\""

/* A step of 1 ms: backward kernels, an all-reduce of 20 MB beside the second, an optimizer behind both. */
static void
add_ddp_step (Profile *p, int number, double at, const char *group)
{
  add_step (p, number, at, at + 990);
  add_op (p, "gemm_1", 7, at + 10, at + 20, 200, "");
  add_call (p, "cudaStreamWaitEvent", at + 20, 1);
  add_op (p, ALL_REDUCE, 20, at + 30, at + 222, 400, group);
  add_op (p, "gemm_2", 7, at + 45, at + 221, 300, "");
  add_call (p, "cudaStreamWaitEvent", at + 60, 1);
  add_op (p, "void multi_tensor_apply_kernel<adam>", 7, at + 70, at + 625, 100, "");
  add_op (p, "Memcpy DtoH (Device -> Pinned)", 7, at + 80, at + 726, 2, "");
  add_call (p, "cudaStreamSynchronize", at + 90, 645);
}

#define WORLD_8 OF ("0", "default_pg", 8, "[0, 1, 2, 3, 4, 5, 6, 7]", 10000000)

static char *
text_of (Profile *p, int rank, int world)
{
  char *text = g_strdup_printf ("{\"schemaVersion\":1,\"distributedInfo\":{\"backend\":\"nccl\",\"rank\":%d,"
                                "\"world_size\":%d},\"traceEvents\":[\n%s\n]}\n",
                                rank, world, p->events->str);
  g_string_free (p->events, TRUE);
  return text;
}

static char *
ddp_profile (const char *group, int rank, int world)
{
  Profile p = profile_new ();
  for (int s = 0; s < 3; s++)
    add_ddp_step (&p, 5 + s, 100000 + 1000 * s, group);
  return text_of (&p, rank, world);
}

/* ---- import and replay ---- */

static char *folder;

static char *
put (const char *name, const char *text)
{
  char *path = g_build_filename (folder, name, NULL);
  LS_CHECK (g_file_set_contents (path, text, -1, NULL));
  return path;
}

static LsProfileImport *
imported (const char *text, const LsProfileImportSpec *how, GError **error)
{
  g_autofree char *path = put ("profile.json", text);
  const char *const paths[] = { path, NULL };
  LsProfileImportSpec spec = how ? *how : (LsProfileImportSpec) { 0 };
  spec.paths = spec.paths ? spec.paths : paths;
  spec.name = "t";
  spec.changes.compute_scale = spec.changes.compute_scale > 0 ? spec.changes.compute_scale : 1;
  return ls_profile_import_new (NULL, &spec, error);
}

/* Microseconds of its step on so many nodes of the made-up cluster, with --dp unless NULL. */
static double
replayed (const LsProfileImport *import, const char *cluster, const char *dp)
{
  g_autofree char *path = put ("t.json", import->text);
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  g_autoptr (GError) error = NULL;
  LsJobSpec spec;
  ls_job_spec_init (&spec);
  LS_CHECK (ls_job_spec_set (&spec, "trace", path, diags));
  LS_CHECK (ls_job_spec_set (&spec, "cluster", cluster, diags));
  LS_CHECK (!dp || ls_job_spec_set (&spec, "dp", dp, diags));
  g_autoptr (LsJobResult) job = ls_job_spec_run (&spec, &error);
  LS_CHECK_NO_ERROR (error);
  ls_job_spec_clear (&spec);
  return job ? 1e6 * ls_job_result_step_time_s (job) : 0;
}

static double
step_of (const char *text, const LsProfileImportSpec *how)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (LsProfileImport) import = imported (text, how, &error);
  LS_CHECK_NO_ERROR (error);
  return import ? replayed (import, "pair", NULL) : 0;
}

#define SLOW "pair:node.nics.link.bandwidth=0.1GB/s"

static bool
has_note (const LsProfileImport *import, const char *part)
{
  for (guint i = 0; i < import->notes->len; i++)
    if (strstr (import->notes->pdata[i], part))
      return true;
  return false;
}

static void
check_refused (const char *text, const LsProfileImportSpec *how, LsErrorCode code, const char *part)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (LsProfileImport) import = imported (text, how, &error);
  LS_CHECK (!import && g_error_matches (error, LS_ERROR, (int) code));
  ls_check_impl (error && strstr (error->message, part), __FILE__, __LINE__, "\"%s\" in \"%s\"", part,
                 error ? error->message : "");
}

/* ---- tests ---- */

static void
a_step_takes_as_long_as_it_took (void)
{
  g_autofree char *text = ddp_profile (WORLD_8, 0, 8);
  const LsProfileImportSpec measured = { .as_measured = true };
  LS_CHECK_NEAR (step_of (text, &measured), 1000.0, 1e-9);
  g_autoptr (LsProfileImport) import = imported (text, NULL, NULL);
  LS_CHECK_INT (import->step, ==, 1000 * LS_US);
  LS_CHECK_INT (import->n_kernels, ==, 3);
  LS_CHECK_INT (import->n_copies, ==, 1);
  LS_CHECK_INT (import->n_syncs, ==, 1);
  LS_CHECK_INT (import->traffic->len, ==, 1);
  LS_CHECK (g_array_index (import->traffic, LsProfileTraffic, 0).is_ours);
  LS_CHECK_INT (g_array_index (import->traffic, LsProfileTraffic, 0).bytes, ==, 20000000);
}

/* Without a next step the host waits for its end: 708 us from its first op. */
static void
the_last_step_ends_with_its_last_op (void)
{
  g_autofree char *text = ddp_profile (WORLD_8, 0, 8);
  const LsProfileImportSpec last = { .as_measured = true, .step = "7" };
  LS_CHECK_NEAR (step_of (text, &last), 708.0, 1e-9);
}

/* The optimizer waits for the all-reduce, the host for the optimizer, the next step for the host. */
static void
communication_is_that_of_the_cluster (void)
{
  g_autofree char *text = ddp_profile (WORLD_8, 0, 8);
  g_autoptr (LsProfileImport) import = imported (text, NULL, NULL);
  double here = replayed (import, "pair", NULL), slow = replayed (import, SLOW, NULL),
         many = replayed (import, SLOW, "16");
  LS_CHECK_DOUBLE (slow, >, here + 20000);
  LS_CHECK_DOUBLE (many, >, slow);
  const LsProfileImportSpec measured = { .as_measured = true };
  g_autoptr (LsProfileImport) fixed = imported (text, &measured, NULL);
  LS_CHECK_NEAR (replayed (fixed, SLOW, NULL), 1000.0, 1e-9);
}

/* Kernels 200, 300 and 100 us, 1 us behind each other, or behind the all-reduce of 400. The host works for 292
 * us behind what it waits for. */
static void
stalls_and_kernels_can_be_changed (void)
{
  g_autofree char *text = ddp_profile (WORLD_8, 0, 8);
  const LsProfileImportSpec no_stalls = { .as_measured = true, .changes = { .without_stalls = true } },
                            twice = { .as_measured = true, .changes = { .compute_scale = 2 } };
  double busy = 200 + 2 + 400 + 3 + 100 + 1 + 2;
  LS_CHECK_NEAR (step_of (text, &no_stalls), busy, 0.01);
  LS_CHECK_NEAR (step_of (text, &twice), 400 + 602 + 206 + 3 + (1000 - 708), 1e-6);
}

/* Says of which streams: the second kernel waits for the copy of stream 9 alone, which is over long before. */
static void
waits_that_are_told_hold (void)
{
  Profile p = profile_new ();
  for (int s = 0; s < 2; s++) {
    double at = 1000 * s;
    add_step (&p, s, at, at + 990);
    add_op (&p, "Memcpy HtoD (Pinned -> Device)", 9, at + 1, at + 10, 100, "");
    add_call (&p, "cudaEventRecord", at + 5, 1);
    int record = p.correlation;
    add_op (&p, "gemm_1", 7, at + 10, at + 20, 400, "");
    add_call (&p, "cudaStreamWaitEvent", at + 30, 1);
    add (&p,
         "{\"ph\":\"X\",\"cat\":\"cuda_sync\",\"name\":\"Stream Wait Event\",\"pid\":0,\"tid\":7,\"ts\":%.3f,"
         "\"dur\":0,\"args\":{\"stream\":7,\"correlation\":%d,\"wait_on_stream\":9,"
         "\"wait_on_cuda_event_record_corr_id\":%d}}",
         at + 30, p.correlation, record);
    add_op (&p, "gemm_2", 7, at + 40, at + 421, 100, "");
    add_call (&p, "cudaStreamSynchronize", at + 600, 2);
    add (&p,
         "{\"ph\":\"X\",\"cat\":\"cuda_sync\",\"name\":\"Stream Sync\",\"pid\":0,\"tid\":9,\"ts\":%.3f,"
         "\"dur\":2,\"args\":{\"stream\":9,\"correlation\":%d}}",
         at + 600, p.correlation);
  }
  g_autofree char *text = text_of (&p, 0, 1);
  g_autoptr (LsProfileImport) import = imported (text, NULL, NULL);
  LS_CHECK (import
            && strstr (import->text,
                       "\"name\":\"gemm_2\",\"host\":\"free\",\"recorded\":\"101000000ps\",\"after\":[0]"));
  LS_CHECK (
      import
      && strstr (import->text, "\"host-sync\",\"name\":\"sync\",\"host\":\"free\",\"after\":[\"copy\"]"));
  LS_CHECK (import && !has_note (import, "inferred"));
  LS_CHECK_NEAR (replayed (import, "pair", NULL), 1000.0, 1e-9);
}

typedef struct {
  const char *args;
  int world;
  const char *expected; /* in the text of the trace */
} Groups;

static void
groups_become_communicators (void)
{
  static const Groups cases[] = {
    { OF ("0", "default_pg", 8, "[0, 1, 2, 3, 4, 5, 6, 7]", 1000), 8,
      "\"mesh\": {\"tp\":1,\"cp\":1,\"dp\":8,\"pp\":1}" },
    { OF ("3", "", 4, "[0, 1, 2, 3]", 1000), 8, "\"mesh\": {\"tp\":4,\"cp\":1,\"dp\":2,\"pp\":1}" },
    { OF ("3", "mesh_dp", 4, "[0, 2, 4, 6]", 1000), 8, "\"mesh\": {\"tp\":2,\"cp\":1,\"dp\":4,\"pp\":1}" },
    { OF ("3", "", 4, "[0, 2, 4, 6]", 1000), 32, "\"mesh\": {\"tp\":2,\"cp\":1,\"dp\":4,\"pp\":4}" },
    { OF ("0", "default_pg", 64, "[0, 1, 2, ..., 63]", 1000), 64, "\"dp\":64" },
    { OF ("3", "dp_shard", 4, "[0, 1, 2, 3]", 1000), 8, "\"spans_stages\":false,\"ranks\":[4,5,6,7]}" },
    { OF ("3", "", 3, "[0, 1, 5]", 1000), 8, "\"op\":\"copy\",\"name\":\"ncclDevKernel_AllReduce" },
    { OF ("3", "", 3, "[0, 1, 2]", 1000), 8, "\"op\":\"copy\",\"name\":\"ncclDevKernel_AllReduce" },
    { ",\"Group size\":8", 8, "\"op\":\"copy\",\"name\":\"ncclDevKernel_AllReduce" },
  };
  for (guint i = 0; i < G_N_ELEMENTS (cases); i++) {
    g_autofree char *text = ddp_profile (cases[i].args, 0, cases[i].world);
    g_autoptr (GError) error = NULL;
    g_autoptr (LsProfileImport) import = imported (text, NULL, &error);
    LS_CHECK_NO_ERROR (error);
    ls_check_impl (import && strstr (import->text, cases[i].expected), __FILE__, __LINE__,
                   "%u: %s in %.1500s", i, cases[i].expected, import ? import->text : "nothing");
    if (i >= 6)
      LS_CHECK (has_note (import, "do not say what they move"));
  }
}

/* The optimizer of rank 1 takes 100 us more, in which its copy of 3 us is over: rank 0 waits for it at the
 * all-reduce. */
static void
ranks_have_their_own_steps (void)
{
  static const char group[] = OF ("0", "default_pg", 2, "[0, 1]", 1000);
  g_autofree char *first_text = ddp_profile (group, 0, 2), *second_text = ddp_profile (group, 1, 2),
                  *later = NULL, *first = NULL, *second = NULL;
  g_auto (GStrv) parts = g_strsplit (second_text, "\"dur\":100.000", -1);
  later = g_strjoinv ("\"dur\":200.000", parts);
  first = put ("first.json", first_text);
  second = put ("second.json", later);
  const char *const paths[] = { second, first, NULL };
  const LsProfileImportSpec both = { .paths = paths, .changes = { .without_stalls = true } };
  g_autoptr (GError) error = NULL;
  const LsProfileImportSpec one = { .changes = { .without_stalls = true } };
  g_autoptr (LsProfileImport) import = imported ("", &both, &error),
                              alone = imported (first_text, &one, NULL);
  LS_CHECK_NO_ERROR (error);
  if (!import)
    return;
  LS_CHECK_INT (import->n_profiles, ==, 2);
  LS_CHECK (!import->has_mesh && strstr (import->text, "{\"role\":1,"));
  LS_CHECK_NEAR (replayed (import, "pair", NULL), replayed (alone, "pair", NULL) + 97, 1e-6);
}

/* 30,000 kernels: three segments; communication launched in the first is awaited in the last. */
static void
long_steps_are_cut (void)
{
  Profile p = profile_new ();
  for (int s = 0; s < 2; s++) {
    double at = 1e6 * s;
    add_step (&p, s, at, at + 999000);
    add_op (&p, "gemm_0", 7, at, at + 10, 5, "");
    add_call (&p, "cudaStreamWaitEvent", at + 1, 1);
    add_op (&p, ALL_REDUCE, 20, at + 3, at + 20, 400000, WORLD_8);
    for (int i = 0; i < 30000; i++)
      add_op (&p, "gemm", 7, at + 5 + 20 * i, at + 20 + 20 * i, 20, "");
    add_call (&p, "cudaStreamWaitEvent", at + 600010, 1);
    add_op (&p, "last", 7, at + 600011.5, at + 600021, 20, "");
  }
  g_autofree char *text = text_of (&p, 0, 8);
  const LsProfileImportSpec measured = { .as_measured = true };
  g_autoptr (GError) error = NULL;
  g_autoptr (LsProfileImport) import = imported (text, &measured, &error);
  LS_CHECK_NO_ERROR (error);
  LS_CHECK (import && strstr (import->text, "{\"op\":\"wait\","));
  LS_CHECK_NEAR (import ? replayed (import, "pair", NULL) : 0, 1e6, 1e-6);
}

static void
what_cannot_be_is_refused (void)
{
  g_autofree char *text = ddp_profile (WORLD_8, 0, 8), *far = ddp_profile (WORLD_8, 0, 2000000),
                  *nobody = ddp_profile (WORLD_8, -1, 8);
  check_refused ("{\"traceEvents\":[{\"ph\":\"X\",\"name\":\"a\",\"cat\":\"GPU\",\"ts\":1,\"dur\":2}]}", NULL,
                 LS_ERROR_INPUT, "no kernels");
  check_refused ("{\"traceEvents\":[{\"ph\":\"X\",\"name\":\"fusion.1\",\"pid\":3,\"ts\":1,\"dur\":2,"
                 "\"args\":{\"hlo_op\":\"fusion.1\"}}]}",
                 NULL, LS_ERROR_INPUT, "XLA");
  check_refused (far, NULL, LS_ERROR_LIMIT, "2000000 ranks");
  check_refused (text, &(LsProfileImportSpec) { .step = "77" }, LS_ERROR_INPUT, "no ProfilerStep#77");
  g_autofree char *one = put ("one.json", text), *same = put ("same.json", text),
                  *none = put ("none.json", nobody);
  const char *const twice[] = { one, same, NULL }, *const unsaid[] = { one, none, NULL };
  check_refused ("", &(LsProfileImportSpec) { .paths = twice }, LS_ERROR_CONFLICT, "as another one is");
  check_refused ("", &(LsProfileImportSpec) { .paths = unsaid }, LS_ERROR_INPUT,
                 "does not say of which rank");
}

static void
before (void)
{
  ls_test_golden_data ();
  folder = g_dir_make_tmp ("profile-XXXXXX", NULL);
}

static void
after (void)
{
  g_autoptr (GDir) dir = g_dir_open (folder, 0, NULL);
  for (const char *name; (name = g_dir_read_name (dir));) {
    g_autofree char *path = g_build_filename (folder, name, NULL);
    g_unlink (path);
  }
  g_rmdir (folder);
  g_free (folder);
}

LS_TEST_SUITE_WITH (before, after, LS_TEST (a_step_takes_as_long_as_it_took),
                    LS_TEST (the_last_step_ends_with_its_last_op),
                    LS_TEST (communication_is_that_of_the_cluster),
                    LS_TEST (stalls_and_kernels_can_be_changed), LS_TEST (waits_that_are_told_hold),
                    LS_TEST (groups_become_communicators), LS_TEST (ranks_have_their_own_steps),
                    LS_TEST (long_steps_are_cut), LS_TEST (what_cannot_be_is_refused))
