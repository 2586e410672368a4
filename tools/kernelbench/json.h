/* tools/kernelbench/json.h — a strict JSON reader (RFC 8259) that knows where each value
 * stands; host code, for machines without a JSON library.
 *
 * Refused: what the RFC refuses, duplicate keys, more than 64 levels. An error is a
 * PlanError whose text begins "FILE:LINE:COLUMN: error: ". Below it, files as a whole. */
#ifndef LS_KERNELBENCH_JSON_H
#define LS_KERNELBENCH_JSON_H

#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace kb {

struct PlanError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

class Json {
public:
  enum class Kind { NUL, BOOL, NUMBER, STRING, ARRAY, OBJECT };

  static Json parse (const std::string &file, const std::string &text);

  Kind kind () const { return kind_; }
  const std::vector<Json> &items () const; /* of an array */
  const std::vector<std::pair<std::string, Json>> &members () const;
  const Json *find (const char *key) const; /* null: not there */
  const Json &at (const char *key) const;
  const std::string &text () const;
  bool boolean () const;
  double number () const;
  uint64_t count (uint64_t most) const; /* a whole number from 0 */

  [[noreturn]] void fail (const std::string &what) const;

private:
  friend class JsonParser;
  void expect (Kind kind) const;

  Kind kind_ = Kind::NUL;
  bool bool_ = false;
  double number_ = 0;
  std::string text_;
  std::vector<Json> items_;
  std::vector<std::pair<std::string, Json>> members_;
  std::shared_ptr<const std::string> file_;
  int line_ = 1, column_ = 1;
};

/* "205369344B", "80GiB", "2ms", "2000000000ps" and their like, as lockstep writes them:
 * bytes, picoseconds. Whole ones only. */
uint64_t bytes_of (const Json &value);
uint64_t picoseconds_of (const Json &value);

/* ---- files as a whole ---- */

/* Both throw PlanError, "PATH: error: ...". */
std::string read_text_file (const std::string &path);
/* Beside, then renamed: the file is there as a whole or not at all. */
void write_text_file (const std::string &path, const std::string &text);

}

#endif
