#include "json.h"

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace kb {

static constexpr int max_depth = 64;

class JsonParser {
public:
  JsonParser (const std::string &file, const std::string &text)
    : file_ (std::make_shared<const std::string> (file)), at_ (text.data ()), end_ (at_ + text.size ()) {}

  Json document ()
  {
    Json value = parse_value (0);
    skip_blanks ();
    if (at_ < end_)
      fail ("expected the end of the file");
    return value;
  }

private:
  [[noreturn]] void fail (const std::string &what) const
  {
    throw PlanError (*file_ + ":" + std::to_string (line_) + ":" + std::to_string (column_) + ": error: " + what);
  }

  /* Columns count code points, as editors do. */
  void next ()
  {
    bool is_continuation = at_ + 1 < end_ && ((unsigned char) at_[1] & 0xc0) == 0x80;
    if (*at_ == '\n') {
      line_++;
      column_ = 1;
    } else if (!is_continuation) {
      column_++;
    }
    at_++;
  }

  void skip_blanks ()
  {
    while (at_ < end_ && memchr (" \t\r\n", *at_, 4))
      next ();
  }

  bool take (char c)
  {
    if (at_ >= end_ || *at_ != c)
      return false;
    next ();
    return true;
  }

  void require (char c)
  {
    if (!take (c))
      fail (std::string ("expected '") + c + "'");
  }

  void word (const char *text)
  {
    for (const char *c = text; *c; c++)
      if (!take (*c))
        fail (std::string ("expected a value, such as ") + text);
  }

  Json parse_value (int depth)
  {
    skip_blanks ();
    Json value;
    value.file_ = file_;
    value.line_ = line_;
    value.column_ = column_;
    if (at_ >= end_)
      fail ("expected a value; the file ends");
    if (depth > max_depth)
      fail ("more than 64 levels");
    switch (*at_) {
    case '{': parse_object (value, depth); break;
    case '[': parse_array (value, depth); break;
    case '"':
      value.kind_ = Json::Kind::STRING;
      value.text_ = parse_string ();
      break;
    case 't':
    case 'f':
      value.kind_ = Json::Kind::BOOL;
      value.bool_ = *at_ == 't';
      word (value.bool_ ? "true" : "false");
      break;
    case 'n': word ("null"); break;
    default: parse_number (value);
    }
    return value;
  }

  void parse_object (Json &value, int depth)
  {
    value.kind_ = Json::Kind::OBJECT;
    require ('{');
    skip_blanks ();
    if (take ('}'))
      return;
    do {
      skip_blanks ();
      if (at_ >= end_ || *at_ != '"')
        fail ("expected a key in quotes");
      std::pair<std::string, Json> member;
      int line = line_, column = column_;
      member.first = parse_string ();
      if (value.find (member.first.c_str ())) {
        line_ = line;
        column_ = column;
        fail ("the key \"" + member.first + "\" is there twice");
      }
      skip_blanks ();
      require (':');
      member.second = parse_value (depth + 1);
      value.members_.push_back (std::move (member));
      skip_blanks ();
    } while (take (','));
    require ('}');
  }

  void parse_array (Json &value, int depth)
  {
    value.kind_ = Json::Kind::ARRAY;
    require ('[');
    skip_blanks ();
    if (take (']'))
      return;
    do {
      value.items_.push_back (parse_value (depth + 1));
      skip_blanks ();
    } while (take (','));
    require (']');
  }

  unsigned parse_hex ()
  {
    unsigned code = 0;
    for (int i = 0; i < 4; i++) {
      if (at_ >= end_ || !isxdigit ((unsigned char) *at_))
        fail ("expected four hexadecimal digits");
      code = 16 * code + (unsigned) (*at_ <= '9' ? *at_ - '0' : (*at_ | 0x20) - 'a' + 10);
      next ();
    }
    return code;
  }

  static void append_utf8 (std::string &text, unsigned code)
  {
    if (code < 0x80) {
      text += (char) code;
      return;
    }
    int n_more = code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;
    static const unsigned char first[] = { 0, 0xc0, 0xe0, 0xf0 };
    text += (char) (first[n_more] | code >> 6 * n_more);
    for (int i = n_more - 1; i >= 0; i--)
      text += (char) (0x80 | (code >> 6 * i & 0x3f));
  }

  void parse_escape (std::string &text)
  {
    static const char names[] = "\"\\/bfnrt", values[] = "\"\\/\b\f\n\r\t";
    if (at_ >= end_)
      fail ("the file ends in a string");
    const char *found = *at_ ? strchr (names, *at_) : nullptr;
    if (found) {
      text += values[found - names];
      next ();
      return;
    }
    if (!take ('u'))
      fail ("expected one of \\\" \\\\ \\/ \\b \\f \\n \\r \\t \\u");
    unsigned code = parse_hex ();
    if (code >= 0xd800 && code < 0xdc00) {
      if (!take ('\\') || !take ('u'))
        fail ("half a surrogate pair");
      unsigned low = parse_hex ();
      if (low < 0xdc00 || low > 0xdfff)
        fail ("half a surrogate pair");
      code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
    } else if (code >= 0xdc00 && code < 0xe000) {
      fail ("half a surrogate pair");
    }
    append_utf8 (text, code);
  }

  std::string parse_string ()
  {
    std::string text;
    require ('"');
    while (!take ('"')) {
      if (at_ >= end_)
        fail ("the file ends in a string");
      if ((unsigned char) *at_ < 0x20)
        fail ("a control character in a string");
      if (take ('\\')) {
        parse_escape (text);
      } else {
        text += *at_;
        next ();
      }
    }
    return text;
  }

  void digits (std::string &text)
  {
    size_t before = text.size ();
    while (at_ < end_ && isdigit ((unsigned char) *at_)) {
      text += *at_;
      next ();
    }
    if (text.size () == before)
      fail ("expected a digit");
  }

  void parse_number (Json &value)
  {
    std::string &text = value.text_;
    if (take ('-'))
      text += '-';
    if (at_ >= end_ || !isdigit ((unsigned char) *at_))
      fail ("expected a value");
    if (take ('0'))
      text += '0';
    else
      digits (text);
    if (take ('.')) {
      text += '.';
      digits (text);
    }
    if (at_ < end_ && (*at_ == 'e' || *at_ == 'E')) {
      next ();
      text += 'e';
      if (take ('-'))
        text += '-';
      else
        take ('+');
      digits (text);
    }
    value.kind_ = Json::Kind::NUMBER;
    value.number_ = strtod (text.c_str (), nullptr);
    if (!std::isfinite (value.number_))
      value.fail ("the number is too large");
  }

  std::shared_ptr<const std::string> file_;
  const char *at_, *end_;
  int line_ = 1, column_ = 1;
};

Json
Json::parse (const std::string &file, const std::string &text)
{
  return JsonParser (file, text).document ();
}

void
Json::fail (const std::string &what) const
{
  throw PlanError (*file_ + ":" + std::to_string (line_) + ":" + std::to_string (column_) + ": error: " + what);
}

void
Json::expect (Kind kind) const
{
  static const char *const names[] = { "null", "true or false", "a number", "text", "a list", "an object" };
  if (kind_ != kind)
    fail (std::string ("expected ") + names[(int) kind] + "; got " + names[(int) kind_]);
}

const std::vector<Json> &
Json::items () const
{
  expect (Kind::ARRAY);
  return items_;
}

const std::vector<std::pair<std::string, Json>> &
Json::members () const
{
  expect (Kind::OBJECT);
  return members_;
}

const Json *
Json::find (const char *key) const
{
  expect (Kind::OBJECT);
  for (const auto &member : members_)
    if (member.first == key)
      return &member.second;
  return nullptr;
}

const Json &
Json::at (const char *key) const
{
  const Json *found = find (key);
  if (!found)
    fail (std::string ("missing key \"") + key + "\"");
  return *found;
}

const std::string &
Json::text () const
{
  expect (Kind::STRING);
  return text_;
}

bool
Json::boolean () const
{
  expect (Kind::BOOL);
  return bool_;
}

double
Json::number () const
{
  expect (Kind::NUMBER);
  return number_;
}

uint64_t
Json::count (uint64_t most) const
{
  double value = number ();
  if (value < 0 || value != std::floor (value) || value > (double) most || value > 9007199254740991.0)
    fail ("expected a whole number from 0 to " + std::to_string (most));
  return (uint64_t) value;
}

/* A decimal number and one of the units, in multiples of the smallest; exact or refused. */
static uint64_t
quantity_of (const Json &value, const std::vector<std::pair<const char *, uint64_t>> &units, const char *what)
{
  const std::string &text = value.text ();
  size_t n_digits = text.find_first_not_of ("0123456789.");
  std::string number = text.substr (0, n_digits), unit = n_digits == std::string::npos ? "" : text.substr (n_digits);
  unit.erase (0, unit.find_first_not_of (' '));
  size_t point = number.find ('.');
  bool is_number = !number.empty () && number.find ('.', point == std::string::npos ? point : point + 1) == std::string::npos
    && point != 0 && point != number.size () - 1;
  for (const auto &u : units) {
    if (!is_number || unit != u.first)
      continue;
    double amount = strtod (number.c_str (), nullptr) * (double) u.second;
    if (amount <= 9007199254740992.0 && amount == std::floor (amount))
      return (uint64_t) amount;
    value.fail (std::string ("expected ") + what + " in whole units, at most 2^53; got \"" + text + "\"");
  }
  value.fail (std::string ("expected ") + what + "; got \"" + text + "\"");
}

uint64_t
bytes_of (const Json &value)
{
  static const std::vector<std::pair<const char *, uint64_t>> units = {
    { "B", 1 },           { "kB", 1000 },       { "KB", 1000 },        { "MB", 1000000 },      { "GB", 1000000000 },
    { "TB", 1000000000000 }, { "KiB", 1ull << 10 }, { "MiB", 1ull << 20 }, { "GiB", 1ull << 30 }, { "TiB", 1ull << 40 },
  };
  return quantity_of (value, units, "a size such as \"64MiB\"");
}

uint64_t
picoseconds_of (const Json &value)
{
  static const std::vector<std::pair<const char *, uint64_t>> units = {
    { "ps", 1 }, { "ns", 1000 }, { "us", 1000000 }, { "ms", 1000000000 }, { "s", 1000000000000 },
  };
  return quantity_of (value, units, "a time such as \"2us\"");
}

/* ---- files as a whole ---- */

std::string
read_text_file (const std::string &path)
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
    throw PlanError (path + ": error: cannot be read");
  return text;
}

void
write_text_file (const std::string &path, const std::string &text)
{
  std::string beside = path + ".part";
  FILE *file = fopen (beside.c_str (), "wb");
  bool is_written = file && fwrite (text.data (), 1, text.size (), file) == text.size ();
  if (file)
    is_written = fclose (file) == 0 && is_written;
  if (is_written && rename (beside.c_str (), path.c_str ()) == 0)
    return;
  remove (beside.c_str ());
  throw PlanError (path + ": error: cannot be written");
}

}
