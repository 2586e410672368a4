/* kernelbench — times the kernels of a training step on this GPU, alone and composed.
 *
 * Rows go to standard output as CSV, progress and the results of the checks to
 * standard error. Exit status: 0; 1 if there is no GPU to use, or it was lost; 2 for usage;
 * 3 for a bad plan or file. README.md beside this says what the groups measure. */
#include <cstdio>

#include "bench.h"
#include "plan.h"
#include "text_file.h"

static int
assemble (const kb::Options &options)
{
  kb::write_profile (options.json_file, kb::Journal::load (options.rows_file), 0);
  return 0;
}

static int
run_plan_file (const kb::Options &options)
{
  kb::Plan plan = kb::read_plan (options.plan_file, kb::read_text_file (options.plan_file), options.rank);
  kb::run_plan (plan, options);
  return 0;
}

static int
lose (const kb::Bench &bench, const kb::Options &options, const char *why)
{
  bench.finish ();
  fprintf (stderr, "error: %s\n", why);
  if (!options.rows_file.empty ())
    fprintf (stderr, "%s has what was measured; --resume goes on behind it\n", options.rows_file.c_str ());
  return 1;
}

static void
run_all (kb::Bench &bench)
{
  for (const kb::Group *group = kb::groups; group->name; group++)
    bench.run_group (*group);
}

/* What --only asks for is in the plan: otherwise nothing is begun. */
static void
require_rows (const kb::Options &options)
{
  kb::Options plan = options;
  plan.dry_run = true;
  kb::Bench bench (plan, nullptr);
  run_all (bench);
  for (const std::string &text : bench.without_row ())
    kb::refuse ("--only: \"" + text + "\" is no row; --dry-run lists them");
}

static int
run_groups (const kb::Options &options)
{
  if (!options.only.empty ())
    require_rows (options);
  kb::Bench bench (options);
  try {
    std::string shapes = options.shapes_file.empty () ? "" : kb::read_text_file (options.shapes_file);
    bench.check_kernels ();
    if (!options.shapes_file.empty ())
      kb::run_shapes (bench, options.shapes_file, shapes);
    else
      run_all (bench);
  } catch (const kb::DeviceLost &lost) {
    return lose (bench, options, lost.what ());
  }
  bench.finish ();
  return 0;
}

static int
run (const kb::Options &options)
{
  if (options.assembles)
    return assemble (options);
  if (options.runs_nccl)
    return kb::run_nccl (options.max_bytes);
  return options.plan_file.empty () ? run_groups (options) : run_plan_file (options);
}

int
main (int argc, char **argv)
{
  kb::Options options = kb::parse_options (argc, argv);
  try {
    return run (options);
  } catch (const kb::PlanError &error) {
    fprintf (stderr, "%s\n", error.what ());
    return 3;
  } catch (const std::exception &error) { /* Failure, DeviceLost */
    fprintf (stderr, "error: %s\n", error.what ());
    return 1;
  }
}
