/* kernelbench — times the kernels of a training step on this GPU, alone and composed.
 *
 *     kernelbench [--seconds N] [--json FILE] [--only GROUP[,GROUP...]] [--dry-run]
 *
 * Rows go to standard output as CSV, progress and the results of the checks to
 * standard error. Exit status: 0; 1 if a check or a CUDA call fails; 2 for usage.
 * README.md beside this says what the groups measure. */
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "bench.cuh"

static const struct {
  const char *name;
  void (*run) (kb::Bench &);
} groups[] = {
  { "host", kb::bench_host },
  { "streams", kb::bench_streams },
  { "gemm-isolated", kb::bench_gemm_isolated },
  { "slowdown", kb::bench_slowdown },
  { "context", kb::bench_context },
  { "gemm-sustained", kb::bench_gemm_sustained },
};

[[noreturn]] static void
usage (FILE *to, int status)
{
  fprintf (to, "usage: kernelbench [--seconds N] [--json FILE] [--only GROUP[,GROUP...]] [--dry-run]\ngroups:");
  for (const auto &group : groups)
    fprintf (to, " %s", group.name);
  fprintf (to, "\n");
  exit (status);
}

static double
parse_seconds (const char *text)
{
  char *end;
  double seconds = strtod (text, &end);
  if (*end == '\0' && end != text && seconds > 0 && seconds < 1e6)
    return seconds;
  fprintf (stderr, "error: --seconds: expected a positive number; got \"%s\"\n", text);
  usage (stderr, 2);
}

static std::vector<std::string>
parse_groups (const std::string &text)
{
  std::vector<std::string> names;
  for (size_t at = 0; at <= text.size ();) {
    size_t comma = std::min (text.find (',', at), text.size ());
    names.push_back (text.substr (at, comma - at));
    at = comma + 1;
  }
  for (const std::string &name : names)
    if (std::none_of (std::begin (groups), std::end (groups), [&] (const auto &g) { return name == g.name; })) {
      fprintf (stderr, "error: --only: \"%s\" is not a group\n", name.c_str ());
      usage (stderr, 2);
    }
  return names;
}

static kb::Options
parse_options (int argc, char **argv)
{
  kb::Options options;
  for (int i = 1; i < argc; i++) {
    bool has_value = i + 1 < argc;
    if (strcmp (argv[i], "--help") == 0)
      usage (stdout, 0);
    else if (strcmp (argv[i], "--dry-run") == 0)
      options.dry_run = true;
    else if (strcmp (argv[i], "--seconds") == 0 && has_value)
      options.seconds = parse_seconds (argv[++i]);
    else if (strcmp (argv[i], "--json") == 0 && has_value)
      options.json_file = argv[++i];
    else if (strcmp (argv[i], "--only") == 0 && has_value)
      options.only = parse_groups (argv[++i]);
    else {
      fprintf (stderr, "error: \"%s\": unknown option, or its value is missing\n", argv[i]);
      usage (stderr, 2);
    }
  }
  return options;
}

/* Times of wrong kernels are worth nothing. */
static void
check_all (cudaStream_t stream)
{
  int n_failed = kb::check_streams (stream) + kb::check_gemm (stream);
  if (n_failed == 0)
    return;
  fprintf (stderr, "error: %d checks failed; nothing was timed\n", n_failed);
  exit (1);
}

int
main (int argc, char **argv)
{
  kb::Bench bench (parse_options (argc, argv));
  bench.note_state ("start");
  if (!bench.is_dry ())
    check_all (bench.stream ());
  for (const auto &group : groups) {
    if (!bench.wants (group.name))
      continue;
    bench.note_state ((std::string ("before ") + group.name).c_str ());
    group.run (bench);
    bench.note_state ((std::string ("after ") + group.name).c_str ());
  }
  if (!bench.is_dry ())
    bench.write_json ();
  fprintf (stderr, "%.1f s, %zu rows skipped for lack of time\n", bench.elapsed_s (), bench.n_skipped ());
  return 0;
}
