#include "rows.h"

#include <algorithm>
#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstring>

#include <fcntl.h>
#include <unistd.h>

namespace kb {

std::string
format (const char *pattern, ...)
{
  char text[1024];
  va_list args;
  va_start (args, pattern);
  vsnprintf (text, sizeof text, pattern, args);
  va_end (args);
  return text;
}

/* The q-quantile of sorted values, between the two nearest. */
static double
quantile (const std::vector<double> &sorted, double q)
{
  double at = q * (double) (sorted.size () - 1);
  size_t below = (size_t) at, above = std::min (below + 1, sorted.size () - 1);
  return sorted[below] + (at - (double) below) * (sorted[above] - sorted[below]);
}

Timing
summarise (std::vector<double> us)
{
  if (us.empty ())
    return { 0, 0 };
  std::sort (us.begin (), us.end ());
  double median = quantile (us, 0.5);
  return { median, median > 0 ? 100 * (quantile (us, 0.9) - quantile (us, 0.1)) / median : 0 };
}

std::string
conditions_note (const Conditions &c)
{
  return format ("sm_mhz=%u power_w=%.0f temperature_c=%u", c.sm_mhz, c.power_w, c.temperature_c);
}

/* nvmlClocksEventReasons of the NVML API reference. */
static const struct {
  uint64_t bit;
  const char *word;
} disturbances[] = {
  { 0x08, "hw-slowdown" }, { 0x10, "sync-boost" }, { 0x20, "heat" }, { 0x40, "hw-heat" }, { 0x80, "power-brake" },
};

std::string
disturbance_of (const Conditions &c)
{
  std::string words = c.others > 0 ? "other-process" : "";
  for (const auto &d : disturbances)
    if (c.throttle & d.bit)
      words += std::string (words.empty () ? "" : "+") + d.word;
  return words;
}

const char row_columns[] = "group,name,shape,dtype,bytes,flops,time_us,spread_pct,rate,note";

std::string
row_csv (const Row &row)
{
  std::string text = format ("%s,%s,%s,%s,%.0f,%.0f,", row.group.c_str (), row.name.c_str (), row.shape.c_str (),
                             row.dtype.c_str (), row.bytes, row.flops);
  std::string note = row.note;
  if (!row.disturbance.empty ())
    note += (note.empty () ? "" : " ") + std::string ("disturbed=") + row.disturbance;
  if (row.time.us <= 0)
    return text + ",,," + note;
  return text + format ("%.3f,%.2f,%.2f,", row.time.us, row.time.spread_pct, row.rate ()) + note;
}

std::string
quoted (const std::string &text)
{
  std::string out = "\"";
  for (unsigned char c : text)
    if (c == '"' || c == '\\')
      out += { '\\', (char) c };
    else if (c < 0x20)
      out += format ("\\u%04x", c);
    else
      out += (char) c;
  return out + "\"";
}

static std::string
conditions_members (const Conditions &c)
{
  return format ("\"sm_mhz\": %u, \"sm_mhz_min\": %u, \"memory_mhz\": %u, \"power_w\": %.0f, \"temperature_c\": %u, "
                 "\"throttle\": %llu, \"others\": %u",
                 c.sm_mhz, c.sm_mhz_min, c.memory_mhz, c.power_w, c.temperature_c, (unsigned long long) c.throttle, c.others);
}

std::string
row_members (const Row &row)
{
  std::string text = "\"group\": " + quoted (row.group) + ", \"name\": " + quoted (row.name) + ", \"shape\": "
                     + quoted (row.shape) + ", \"dtype\": " + quoted (row.dtype);
  text += format (", \"bytes\": %.0f, \"flops\": %.0f, \"time_us\": %.3f, \"spread_pct\": %.2f, \"rate\": %.2f, ", row.bytes,
                  row.flops, row.time.us, row.time.spread_pct, row.rate ());
  text += "\"note\": " + quoted (row.note) + ", \"implementation\": " + quoted (row.implementation);
  text += ", " + conditions_members (row.conditions);
  if (!row.disturbance.empty ())
    text += ", \"disturbed\": " + quoted (row.disturbance);
  return text;
}

static unsigned
count_at (const Json &object, const char *key)
{
  return (unsigned) object.at (key).count (4294967295u);
}

static Conditions
conditions_from (const Json &o)
{
  Conditions c;
  c.sm_mhz = count_at (o, "sm_mhz");
  c.sm_mhz_min = count_at (o, "sm_mhz_min");
  c.memory_mhz = count_at (o, "memory_mhz");
  c.power_w = o.at ("power_w").number ();
  c.temperature_c = count_at (o, "temperature_c");
  c.throttle = o.at ("throttle").count (1ull << 53);
  c.others = count_at (o, "others");
  return c;
}

Row
row_from (const Json &o)
{
  Row row { o.at ("group").text (), o.at ("name").text (), o.at ("shape").text (), o.at ("dtype").text () };
  row.bytes = o.at ("bytes").number ();
  row.flops = o.at ("flops").number ();
  row.time = { o.at ("time_us").number (), o.at ("spread_pct").number () };
  row.note = o.at ("note").text ();
  row.implementation = o.at ("implementation").text ();
  row.conditions = conditions_from (o);
  if (const Json *disturbed = o.find ("disturbed"))
    row.disturbance = disturbed->text ();
  return row;
}

/* ---- the file ---- */

static const char schema[] = "lockstep.kernelbench-rows/1";

std::string
machine_members (const Machine &m)
{
  std::string text = "\"gpu\": " + quoted (m.gpu) + ", \"uuid\": " + quoted (m.uuid) + ", \"n_sms\": "
                     + std::to_string (m.n_sms) + ", \"l2_bytes\": " + std::to_string (m.l2_bytes)
                     + ", \"memory_bytes\": " + std::to_string (m.memory_bytes);
  text += ", \"driver\": " + quoted (m.driver) + ", \"cuda\": " + quoted (m.cuda) + ", \"cublaslt\": "
          + std::to_string (m.cublaslt) + ", \"date\": " + quoted (m.date);
  auto flag = [&] (const char *key, bool value) { text += std::string (", \"") + key + "\": " + (value ? "true" : "false"); };
  flag ("mig", m.is_mig);
  flag ("host", m.is_host);
  flag ("checked", m.is_checked);
  return text;
}

static Machine
machine_from (const Json &o)
{
  Machine m;
  m.gpu = o.at ("gpu").text ();
  m.uuid = o.at ("uuid").text ();
  m.n_sms = (unsigned) o.at ("n_sms").count (65536);
  m.l2_bytes = o.at ("l2_bytes").count (1ull << 53);
  m.memory_bytes = o.at ("memory_bytes").count (1ull << 53);
  m.driver = o.at ("driver").text ();
  m.cuda = o.at ("cuda").text ();
  m.cublaslt = o.at ("cublaslt").count (1ull << 53);
  m.date = o.at ("date").text ();
  m.is_mig = o.at ("mig").boolean ();
  m.is_host = o.at ("host").boolean ();
  m.is_checked = o.at ("checked").boolean ();
  return m;
}

/* Of one profile, all rows are of one GPU and one software. */
static bool
is_same (const Machine &a, const Machine &b)
{
  return a.gpu == b.gpu && a.uuid == b.uuid && a.n_sms == b.n_sms && a.driver == b.driver && a.cuda == b.cuda
         && a.cublaslt == b.cublaslt && a.is_mig == b.is_mig && a.is_host == b.is_host && a.is_checked == b.is_checked;
}

Journal::Journal (Journal &&other) noexcept
  : machine_ (std::move (other.machine_)), path_ (std::move (other.path_)), file_ (std::exchange (other.file_, -1)),
    rows_ (std::move (other.rows_)), done_ (std::move (other.done_)), why_ (std::move (other.why_)),
    order_ (std::move (other.order_)), begun_ (std::move (other.begun_)), pending_ (std::move (other.pending_)),
    whole_bytes_ (other.whole_bytes_) {}

Journal::~Journal ()
{
  if (file_ >= 0)
    close (file_);
}

[[noreturn]] static void
fail_file (const std::string &path, const std::string &why)
{
  throw PlanError (path + ": error: " + why);
}

void
Journal::note_failure (const std::string &what, const std::string &why)
{
  if (!why_.count (what))
    order_.push_back (what);
  why_[what] = why;
}

void
Journal::read_line (const Json &line)
{
  if (const Json *begin = line.find ("begin")) {
    begun_[begin->text ()]++;
    pending_.clear ();
    return;
  }
  const std::string &what = line.at ("case").text ();
  begun_.erase (what);
  if (const Json *failed = line.find ("failed"))
    return note_failure (what, failed->text ());
  pending_.push_back (row_from (line.at ("row")));
  if (!line.at ("last").boolean ())
    return;
  done_[what] = { rows_.size (), pending_.size () };
  rows_.insert (rows_.end (), pending_.begin (), pending_.end ());
  pending_.clear ();
}

/* Only whole lines count: the last one may have been cut off. */
void
Journal::read (const std::string &path, const std::string &text)
{
  size_t n_lines = 0;
  for (size_t at = 0, end; (end = text.find ('\n', at)) != std::string::npos; at = end + 1) {
    std::string name = path + ":" + std::to_string (++n_lines);
    Json line = Json::parse (name, text.substr (at, end - at));
    if (n_lines == 1 && (!line.find ("schema") || line.at ("schema").text () != schema))
      fail_file (path, std::string ("no rows of kernelbench: the first line must have \"schema\": \"") + schema + "\"");
    if (n_lines == 1)
      machine_ = machine_from (line.at ("machine"));
    else
      read_line (line);
    whole_bytes_ = end + 1;
  }
  pending_.clear ();
  for (const auto &begun : begun_)
    if (begun.second >= 2)
      note_failure (begun.first, "was begun twice and never ended");
}

Journal
Journal::load (const std::string &path)
{
  Journal journal { Machine () };
  journal.read (path, read_text_file (path));
  if (journal.whole_bytes_ == 0)
    fail_file (path, "holds no rows");
  return journal;
}

Journal
Journal::open (const std::string &path, const Machine &machine, bool resume)
{
  Journal journal (machine);
  journal.path_ = path;
  bool exists = access (path.c_str (), F_OK) == 0;
  std::string text = exists ? read_text_file (path) : "";
  if (!text.empty () && !resume)
    fail_file (path, "is there already; --resume goes on behind its rows, or remove it");
  journal.read (path, text);
  bool is_new = journal.whole_bytes_ == 0;
  if (!is_new && !is_same (journal.machine_, machine))
    fail_file (path, "its rows are of another GPU, driver, toolkit or choice of checks; begin a new file");
  journal.file_ = ::open (path.c_str (), O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
  if (journal.file_ < 0 || ftruncate (journal.file_, (off_t) journal.whole_bytes_) != 0
      || lseek (journal.file_, 0, SEEK_END) < 0)
    fail_file (path, strerror (errno));
  if (is_new)
    journal.append (std::string ("{\"schema\": \"") + schema + "\", \"machine\": {" + machine_members (machine) + "}}");
  return journal;
}

void
Journal::append (const std::string &line)
{
  if (file_ < 0)
    return;
  std::string text = line + "\n";
  for (size_t at = 0; at < text.size ();) {
    ssize_t n = write (file_, text.data () + at, text.size () - at);
    if (n < 0 && errno != EINTR)
      fail_file (path_, strerror (errno));
    at += n > 0 ? (size_t) n : 0;
  }
}

std::vector<Row>
Journal::rows_of (const std::string &what) const
{
  auto found = done_.find (what);
  if (found == done_.end ())
    return {};
  auto first = rows_.begin () + (ptrdiff_t) found->second.first;
  return std::vector<Row> (first, first + (ptrdiff_t) found->second.second);
}

std::vector<Journal::Failed>
Journal::failed () const
{
  std::vector<Failed> all;
  for (const std::string &what : order_)
    if (!done_.count (what))
      all.push_back ({ what, why_.at (what) });
  return all;
}

void
Journal::begin (const std::string &what)
{
  append ("{\"begin\": " + quoted (what) + "}");
}

void
Journal::end (const std::string &what, const std::vector<Row> &rows)
{
  for (const Row &row : rows)
    append ("{\"case\": " + quoted (what) + ", \"last\": " + (&row == &rows.back () ? "true" : "false") + ", \"row\": {"
            + row_members (row) + "}}");
  done_[what] = { rows_.size (), rows.size () };
  rows_.insert (rows_.end (), rows.begin (), rows.end ());
}

void
Journal::fail (const std::string &what, const std::string &why)
{
  note_failure (what, why);
  append ("{\"case\": " + quoted (what) + ", \"failed\": " + quoted (why) + "}");
}

/* --- the profile, assembled from the rows --- */

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
