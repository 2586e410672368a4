/* The profile, assembled from the rows. */
#include "journal.h"
#include "text_file.h"

namespace kb {

static const char method[] =
  "isolated: one launch between two events, L2 flushed by reading four times its size, median of 21; "
  "steady: back to back over rotating operands, median of 15 groups of at least 5 ms; "
  "sustained: back to back, mean of the last second; "
  "spread: (p90 - p10) / median; random normal data; bytes: inputs read once, outputs written once; "
  "a row that heat, a slowed clock or another process disturbed was measured up to three times, and is marked if it stayed so";

std::string
profile_text (const Journal &journal, size_t n_skipped)
{
  std::string text = "{\n  \"schema\": \"lockstep.kernelbench/1\",\n  " + machine_members (journal.machine ()) + ",\n";
  text += std::string ("  \"method\": ") + quoted (method) + ",\n  \"n_skipped\": " + std::to_string (n_skipped) + ",\n";
  text += "  \"failed\": [";
  const char *before = "\n";
  for (const Journal::Failed &f : journal.failed ()) {
    text += before + std::string ("    { \"case\": ") + quoted (f.what) + ", \"why\": " + quoted (f.why) + " }";
    before = ",\n";
  }
  text += "\n  ],\n  \"rows\": [";
  before = "\n";
  for (const Row &row : journal.rows ()) {
    text += before + std::string ("    { ") + row_members (row) + " }";
    before = ",\n";
  }
  return text + "\n  ]\n}\n";
}

void
write_profile (const std::string &path, const Journal &journal, size_t n_skipped)
{
  write_text_file (path, profile_text (journal, n_skipped));
}

}
