/* kernelbench — times the kernels of a training step on this GPU, alone and composed.
 *
 * Rows go to standard output as CSV, progress and the results of the checks to
 * standard error. Exit status: 0; 1 if there is no GPU to use, or it was lost; 2 for usage;
 * 3 for a bad plan or file. README.md beside this says what the groups measure. */
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <fnmatch.h>

#include "bench.h"
#include "plan.h"

/* ---- the command line ---- */

namespace kb {

static const char help[] =
  "usage: kernelbench [--json FILE] [--rows FILE] [--resume] [--only WHAT[,WHAT...]] [--shapes FILE]\n"
  "                   [--seconds N] [--device N] [--skip-checks] [--dry-run]\n"
  "       kernelbench --plan FILE [--rank N] [--seconds N] [--device N] [--skip-checks] [--dry-run]\n"
  "       kernelbench --nccl [--max-bytes N]\n"
  "       kernelbench --assemble --rows FILE --json FILE\n"
  "  --json FILE     write a profile, which lockstep calibrate reads\n"
  "  --rows FILE     write each row as it comes; with --json FILE.json the default is FILE.rows.jsonl\n"
  "  --resume        go on behind the rows that are there\n"
  "  --assemble      only make the profile of these rows; no GPU is asked\n"
  "  --only WHAT     a group, or rows of it as GROUP/NAME or GROUP/NAME/SHAPE; NAME and SHAPE may have * and ?\n"
  "  --shapes FILE   time the kernels of a job (lockstep kernel --list-shapes) instead\n"
  "  --plan FILE     execute a trace instead; --rank says whose program\n"
  "  --nccl          time collectives over all GPUs here, in the format of nccl-tests\n"
  "  --max-bytes N   of --nccl: the largest array; default 1073741824\n"
  "  --seconds N     do not start a measurement that would end later; default 360\n"
  "  --device N      which GPU; default 0\n"
  "  --skip-checks   time kernels without comparing them with references\n"
  "  --dry-run       say what would be measured\n"
  "groups:";

[[noreturn]] static void
usage (FILE *to, int status)
{
  fputs (help, to);
  for (const Group *group = groups; group->name; group++)
    fprintf (to, " %s", group->name);
  fprintf (to, "\n");
  exit (status);
}

void
refuse (const std::string &why)
{
  fprintf (stderr, "error: %s; see kernelbench --help\n", why.c_str ());
  exit (2);
}

static double
parse_seconds (const char *text)
{
  char *end;
  double seconds = strtod (text, &end);
  if (*end != '\0' || end == text || !(seconds > 0) || seconds >= 1e6)
    refuse (std::string ("--seconds: expected a number above 0; got \"") + text + "\"");
  return seconds;
}

static unsigned long
parse_count (const char *option, const char *text, unsigned long below)
{
  char *end;
  unsigned long count = strtoul (text, &end, 10);
  if (*end != '\0' || *text < '0' || *text > '9' || count >= below)
    refuse (std::string (option) + ": expected a whole number below " + std::to_string (below) + "; got \"" + text + "\"");
  return count;
}

static bool
is_group (const std::string &name)
{
  for (const Group *group = groups; group->name; group++)
    if (name == group->name)
      return true;
  return false;
}

static std::vector<std::string>
split (const std::string &text, char separator)
{
  std::vector<std::string> parts;
  for (size_t at = 0; at <= text.size ();) {
    size_t end = std::min (text.find (separator, at), text.size ());
    parts.push_back (text.substr (at, end - at));
    at = end + 1;
  }
  return parts;
}

static RowChoice
parse_choice (const std::string &text)
{
  std::vector<std::string> parts = split (text, '/');
  if (!is_group (parts[0]))
    refuse ("--only: \"" + parts[0] + "\" is no group");
  if (parts.size () > 3)
    refuse ("--only: expected GROUP, GROUP/NAME or GROUP/NAME/SHAPE; got \"" + text + "\"");
  return RowChoice { text, parts[0], parts.size () > 1 ? parts[1] : "*", parts.size () > 2 ? parts[2] : "*" };
}

static std::vector<RowChoice>
parse_only (const std::string &text)
{
  std::vector<RowChoice> choices;
  for (const std::string &part : split (text, ','))
    choices.push_back (parse_choice (part));
  return choices;
}

static const struct {
  const char *name;
  std::string Options::*value;
} texts[] = {
  { "--json", &Options::json_file },
  { "--rows", &Options::rows_file },
  { "--shapes", &Options::shapes_file },
  { "--plan", &Options::plan_file },
};

static const struct {
  const char *name;
  bool Options::*value;
} switches[] = {
  { "--dry-run", &Options::dry_run },
  { "--resume", &Options::resume },
  { "--skip-checks", &Options::skips_checks },
  { "--assemble", &Options::assembles },
  { "--nccl", &Options::runs_nccl },
};

static bool
parse_switch (const char *word, Options *options)
{
  for (const auto &s : switches)
    if (strcmp (word, s.name) == 0)
      return options->*s.value = true;
  return false;
}

/* `value` is null behind the last word. */
static bool
parse_value (const char *word, const char *value, Options *options)
{
  for (const auto &t : texts)
    if (value && strcmp (word, t.name) == 0)
      return options->*t.value = value, true;
  if (value && strcmp (word, "--seconds") == 0)
    return options->seconds = parse_seconds (value), true;
  if (value && strcmp (word, "--only") == 0)
    return options->only = parse_only (value), true;
  if (value && strcmp (word, "--rank") == 0)
    return options->rank = parse_count ("--rank", value, 1048576), true;
  if (value && strcmp (word, "--max-bytes") == 0)
    return options->max_bytes = parse_count ("--max-bytes", value, 1ul << 40), true;
  if (value && strcmp (word, "--device") == 0)
    return options->device = (int) parse_count ("--device", value, 1024), true;
  return false;
}

static bool
ends_with (const std::string &text, const std::string &end)
{
  return text.size () > end.size () && text.compare (text.size () - end.size (), end.size (), end) == 0;
}

static void
check_options (Options *o)
{
  if (!o->plan_file.empty () && !(o->only.empty () && o->json_file.empty () && o->rows_file.empty () && o->shapes_file.empty () && !o->resume))
    refuse ("--plan goes with --rank, --seconds, --device, --skip-checks and --dry-run only");
  bool has_others = o->dry_run || o->resume || o->assembles || !o->json_file.empty () || !o->rows_file.empty ()
                    || !o->shapes_file.empty () || !o->plan_file.empty () || !o->only.empty ();
  if (o->runs_nccl && has_others)
    refuse ("--nccl goes with --max-bytes only");
  if (o->max_bytes < 1024)
    refuse ("--max-bytes: expected 1024 or more");
  if (!o->shapes_file.empty () && !o->only.empty ())
    refuse ("--only chooses among the groups, which --shapes takes the place of");
  if (o->assembles && (o->json_file.empty () || o->rows_file.empty () || o->resume || o->dry_run))
    refuse ("--assemble goes with --rows and --json, and with nothing else");
  if (o->rows_file.empty () && !o->json_file.empty ())
    o->rows_file = (ends_with (o->json_file, ".json") ? o->json_file.substr (0, o->json_file.size () - 5) : o->json_file) + ".rows.jsonl";
  if (o->resume && o->rows_file.empty ())
    refuse ("--resume needs --rows or --json, to know behind which rows");
}

Options
parse_options (int argc, char **argv)
{
  Options options;
  for (int i = 1; i < argc; i++) {
    if (strcmp (argv[i], "--help") == 0)
      usage (stdout, 0);
    if (parse_switch (argv[i], &options))
      continue;
    if (!parse_value (argv[i], i + 1 < argc ? argv[i + 1] : nullptr, &options))
      refuse (std::string ("\"") + argv[i] + "\": unknown option, or its value is missing");
    i++;
  }
  check_options (&options);
  return options;
}

bool
wants_group (const Options &options, const std::string &group)
{
  return options.only.empty () || std::any_of (options.only.begin (), options.only.end (), [&] (const RowChoice &c) { return c.group == group; });
}

bool
chooses (const RowChoice &choice, const std::string &group, const std::string &name, const std::string &shape)
{
  return choice.group == group && fnmatch (choice.name.c_str (), name.c_str (), 0) == 0
         && fnmatch (choice.shape.c_str (), shape.c_str (), 0) == 0;
}

}

/* ---- what it asks for ---- */

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
