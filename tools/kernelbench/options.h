/* tools/kernelbench/options.h — the command line. Host code. */
#ifndef LS_KERNELBENCH_OPTIONS_H
#define LS_KERNELBENCH_OPTIONS_H

#include <cstdint>
#include <string>
#include <vector>

namespace kb {

class Bench;

/* In the order in which they run; the last has no name. Each program has its own. */
struct Group {
  const char *name;
  void (*run) (Bench &);
};
extern const Group groups[];

/* Of --only: a group, or rows of it. Name and shape are patterns of the shell (fnmatch). */
struct RowChoice {
  std::string text; /* GROUP[/NAME[/SHAPE]], as it was given */
  std::string group, name, shape;
};

struct Options {
  bool dry_run = false, resume = false, skips_checks = false, assembles = false, runs_nccl = false;
  double seconds = 360;
  uint64_t max_bytes = 1ull << 30; /* of --nccl */
  int device = 0;
  std::string json_file, rows_file, shapes_file;
  std::vector<RowChoice> only;      /* empty: all */
  std::string plan_file;         /* of --plan; "": the sweep */
  uint64_t rank = 0;             /* of the plan */
};

/* Ends the program, with status 0 after --help, 2 after a wrong word. */
Options parse_options (int argc, char **argv);

bool chooses (const RowChoice &choice, const std::string &group, const std::string &name, const std::string &shape);
/* Whether --only has the group, or rows of it. */
bool wants_group (const Options &options, const std::string &group);
/* Ends the program with status 2, after the reason. */
[[noreturn]] void refuse (const std::string &why);

}

#endif
