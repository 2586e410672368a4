/* kernelbench — times the kernels of a training step on this GPU, alone and composed.
 *
 *     kernelbench [--seconds N] [--json FILE] [--only GROUP[,GROUP...]] [--dry-run]
 *     kernelbench --plan FILE [--rank N] [--seconds N] [--dry-run]
 *
 * Rows go to standard output as CSV, progress and the results of the checks to
 * standard error. Exit status: 0; 1 if a check or a CUDA call fails; 2 for usage; 3 for a bad plan.
 * README.md beside this says what the groups measure. */
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "bench.cuh"
#include "plan.h"

static const struct {
  const char *name;
  void (*run) (kb::Bench &);
} groups[] = {
  { "host", kb::bench_host },
  { "streams", kb::bench_streams },
  { "copies", kb::bench_copies },
  { "operators", kb::bench_operators },
  { "attention", kb::bench_attention },
  { "gemm-isolated", kb::bench_gemm_isolated },
  { "gemm-batched", kb::bench_gemm_batched },
  { "slowdown", kb::bench_slowdown },
  { "context", kb::bench_context },
  { "gemm-sustained", kb::bench_gemm_sustained },
};

[[noreturn]] static void
usage (FILE *to, int status)
{
  fprintf (to, "usage: kernelbench [--seconds N] [--json FILE] [--only GROUP[,GROUP...]] [--dry-run]\n"
               "       kernelbench --plan FILE [--rank N] [--seconds N] [--dry-run]\ngroups:");
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

static uint64_t
parse_rank (const char *text)
{
  char *end;
  unsigned long rank = strtoul (text, &end, 10);
  if (*end == '\0' && *text >= '0' && *text <= '9' && rank < 1048576)
    return rank;
  fprintf (stderr, "error: --rank: expected a whole number; got \"%s\"\n", text);
  usage (stderr, 2);
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
    else if (strcmp (argv[i], "--plan") == 0 && has_value)
      options.plan_file = argv[++i];
    else if (strcmp (argv[i], "--rank") == 0 && has_value)
      options.rank = parse_rank (argv[++i]);
    else {
      fprintf (stderr, "error: \"%s\": unknown option, or its value is missing\n", argv[i]);
      usage (stderr, 2);
    }
  }
  if (!options.plan_file.empty () && (!options.only.empty () || !options.json_file.empty ())) {
    fprintf (stderr, "error: --plan does not go with --only or --json\n");
    usage (stderr, 2);
  }
  return options;
}

static std::string
read_whole (const std::string &path)
{
  std::string text;
  char part[65536];
  FILE *file = fopen (path.c_str (), "rb");
  for (size_t n; file && (n = fread (part, 1, sizeof part, file)) > 0;)
    text.append (part, n);
  bool is_read = file && !ferror (file);
  if (file)
    fclose (file);
  if (!is_read)
    throw kb::PlanError (path + ": error: cannot be read");
  return text;
}

static int
run_plan_file (const kb::Options &options)
{
  try {
    kb::Plan plan = kb::read_plan (options.plan_file, read_whole (options.plan_file), options.rank);
    kb::run_plan (plan, options);
    return 0;
  } catch (const kb::PlanError &error) {
    fprintf (stderr, "%s\n", error.what ());
    return 3;
  }
}

int
main (int argc, char **argv)
{
  kb::Options options = parse_options (argc, argv);
  if (!options.plan_file.empty ())
    return run_plan_file (options);
  kb::Bench bench (options);
  bench.note_state ("start");
  if (!bench.is_dry ())
    kb::require_checks (bench.stream (), bench.has_fp8 ());
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
