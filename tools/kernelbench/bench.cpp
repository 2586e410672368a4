#include "bench.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <ctime>
#include <thread>

namespace kb {

/* ---- which GPU, whether it can run this program, and what it is ---- */

static constexpr size_t enough_bytes = 16ull << 30; /* for all groups */

static void
require_driver (int index)
{
  int n = 0;
  cudaError_t status = cudaGetDeviceCount (&n);
  if (status != cudaSuccess)
    throw Failure (std::string ("no GPU can be used: ") + cudaGetErrorString (status));
  if (index >= n)
    throw Failure (format ("--device %d: there %s %d, from 0", index, n == 1 ? "is" : "are", n));
}

static void
require_code (const cudaDeviceProp &props)
{
  cudaError_t status = find_code ();
  cudaGetLastError ();
  if (status != cudaSuccess)
    throw Failure (format ("this program has no code for %s (compute capability %d.%d): %s. Build it with a toolkit that "
                           "nvcc --list-gpu-code shows to know sm_%d%d",
                           props.name, props.major, props.minor, cudaGetErrorString (status), props.major, props.minor));
}

static void
note_memory (const char *name)
{
  size_t free_bytes = 0, all_bytes = 0;
  KB_CHECK (cudaMemGetInfo (&free_bytes, &all_bytes));
  fprintf (stderr, "%s: %.1f of %.1f GB free\n", name, 1e-9 * (double) free_bytes, 1e-9 * (double) all_bytes);
  if (free_bytes < enough_bytes)
    fprintf (stderr, "note: less than %.0f GB are free; what finds no room fails, and the others go on\n", 1e-9 * (double) enough_bytes);
}

Device::Device (int index) : index_ (index)
{
  char bus_id[32] = "";
  require_driver (index);
  KB_CHECK (cudaSetDevice (index));
  KB_CHECK (cudaGetDeviceProperties (&props_, index));
  require_code (props_);
  KB_CHECK (cudaDeviceGetPCIBusId (bus_id, sizeof bus_id, index));
  nvml_ = std::make_unique<Nvml> (bus_id);
  note_memory (props_.name);
  Conditions now = nvml_->read ();
  if (nvml_->is_mig ())
    fprintf (stderr, "note: this is an instance of a GPU that is divided (MIG), with %d SMs: its profile is of the instance\n",
             props_.multiProcessorCount);
  if (now.others > 0)
    fprintf (stderr, "note: %u other processes compute on this GPU; rows that they may disturb are marked\n", now.others);
}

static std::string
utc_now ()
{
  char text[32];
  time_t now = time (nullptr);
  strftime (text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", gmtime (&now));
  return text;
}

static std::string
uuid_of (const cudaDeviceProp &props)
{
  std::string text;
  for (char byte : props.uuid.bytes)
    text += format ("%02x", (unsigned char) byte);
  return text;
}

Machine
Device::machine () const
{
  Machine m;
  m.gpu = props_.name;
  m.uuid = uuid_of (props_);
  m.driver = nvml_->driver_version ();
  m.date = utc_now ();
  m.n_sms = (unsigned) props_.multiProcessorCount;
  m.l2_bytes = (uint64_t) props_.l2CacheSize;
  m.memory_bytes = props_.totalGlobalMem;
  m.is_mig = nvml_->is_mig ();
  describe_software (&m);
  return m;
}

/* ---- the three ways of timing ---- */

static constexpr int n_warm_up = 3;
static constexpr int n_groups = 15;           /* of back-to-back launches, in steady () */
static constexpr double group_us = 5e3;
static constexpr double batch_us = 20e3;      /* between two marks of sustained ()      */
static constexpr double last_us = 1e6;        /* the part of sustained () that counts   */
static constexpr double wake_up_s = 0.3;

void
Bench::flush_l2 ()
{
  read_all (stream_, flush_.get (), flush_.size (), 8 * n_sms ());
}

void
Bench::wake_up ()
{
  if (is_dry ())
    return;
  double until = elapsed_s () + wake_up_s;
  while (elapsed_s () < until) {
    for (int i = 0; i < 20; i++)
      flush_l2 ();
    KB_CHECK (cudaStreamSynchronize (stream_));
  }
}

Timing
Bench::isolated (const std::function<void ()> &launch, int n)
{
  std::vector<Event> start (n_warm_up + n), stop (n_warm_up + n);
  for (size_t i = 0; i < start.size (); i++) {
    flush_l2 ();
    start[i].record (stream_);
    launch ();
    stop[i].record (stream_);
    if (i == 0) /* loads modules, chooses algorithms: nothing may queue behind that */
      KB_CHECK (cudaStreamSynchronize (stream_));
  }
  KB_CHECK (cudaStreamSynchronize (stream_));

  std::vector<double> us;
  for (size_t i = n_warm_up; i < start.size (); i++)
    us.push_back (stop[i].us_since (start[i]));
  return summarise (us);
}

double
Bench::estimate_us (const Launch &launch)
{
  Event start, stop;
  launch (0);
  KB_CHECK (cudaStreamSynchronize (stream_));
  start.record (stream_);
  for (int i = 0; i < n_warm_up; i++)
    launch (i);
  stop.record (stream_);
  stop.wait ();
  return stop.us_since (start) / n_warm_up;
}

static int
launches_in (double us, double launch_us)
{
  return (int) std::min (1000.0, std::max (1.0, std::ceil (us / launch_us)));
}

Timing
Bench::steady (const Launch &launch)
{
  int per_group = launches_in (group_us, estimate_us (launch));
  std::vector<Event> marks (n_groups + 1);
  int set = 0;
  for (int i = 0; i < per_group; i++)
    launch (set++);
  for (Event &mark : marks) {
    mark.record (stream_);
    for (int i = 0; i < per_group && &mark != &marks.back (); i++)
      launch (set++);
  }
  KB_CHECK (cudaStreamSynchronize (stream_));

  std::vector<double> us;
  for (int i = 0; i < n_groups; i++)
    us.push_back (marks[i + 1].us_since (marks[i]) / per_group);
  return summarise (us);
}

/* At most two batches are queued ahead, so that the clocks, read when the last one
 * has been queued, are those under load. */
Timing
Bench::sustained (const Launch &launch, double seconds, Conditions *ret_conditions)
{
  int per_batch = launches_in (batch_us, estimate_us (launch));
  std::vector<Event> marks (1);
  int set = 0;
  marks[0].record (stream_);
  for (double until = elapsed_s () + seconds; elapsed_s () < until;) {
    for (int i = 0; i < per_batch; i++)
      launch (set++);
    marks.emplace_back ();
    marks.back ().record (stream_);
    if (marks.size () > 3)
      marks[marks.size () - 3].wait ();
  }
  *ret_conditions = device_->nvml ().read ();
  KB_CHECK (cudaStreamSynchronize (stream_));

  std::vector<double> us;
  double counted = 0;
  for (size_t i = marks.size () - 1; i > 0 && counted < last_us; i--) {
    double batch = marks[i].us_since (marks[i - 1]);
    counted += batch;
    us.push_back (batch / per_batch);
  }
  Timing time = summarise (us);
  time.us = counted / ((double) us.size () * per_batch); /* the rate of the whole second */
  return time;
}

/* ---- rows and cases ---- */

static constexpr size_t flush_per_l2 = 4;
static constexpr int n_tries = 3;
static constexpr auto rest = std::chrono::seconds (1); /* before a disturbed row is measured again */

Bench::Bench (const Options &options, FILE *out)
  : options_ (options), out_ (out), has_chosen_ (options.only.size ()), start_ (std::chrono::steady_clock::now ())
{
  if (out_)
    fprintf (out_, "%s\n", row_columns);
  if (options.dry_run)
    return;
  device_ = std::make_unique<Device> (options.device);
  Machine machine = device_->machine ();
  machine.is_checked = !options.skips_checks;
  journal_ = std::make_unique<Journal> (options.rows_file.empty () ? Journal (machine)
                                                                   : Journal::open (options.rows_file, machine, options.resume));
  KB_CHECK (cudaStreamCreateWithFlags (&stream_, cudaStreamNonBlocking));
  flush_ = Buffer<unsigned> (flush_per_l2 * l2_bytes () / sizeof (unsigned));
  KB_CHECK (cudaMemset (flush_.get (), 0x5a, flush_.size () * sizeof (unsigned)));
}

Bench::~Bench ()
{
  if (stream_)
    cudaStreamDestroy (stream_);
}

double
Bench::elapsed_s () const
{
  return std::chrono::duration<double> (std::chrono::steady_clock::now () - start_).count ();
}

void
Bench::print (const Row &row) const
{
  if (!out_)
    return;
  fprintf (out_, "%s\n", row_csv (row).c_str ());
  fflush (out_);
}

bool
Bench::wants (const Row &row)
{
  bool is_chosen = options_.only.empty ();
  for (size_t i = 0; i < options_.only.size (); i++)
    if (chooses (options_.only[i], row.group, row.name, row.shape))
      is_chosen = has_chosen_[i] = true;
  return is_chosen;
}

std::vector<std::string>
Bench::without_row () const
{
  std::vector<std::string> texts;
  for (size_t i = 0; i < options_.only.size (); i++)
    if (!has_chosen_[i])
      texts.push_back (options_.only[i].text);
  return texts;
}

/* What the rows file calls it. */
static std::string
case_of (const Row &row)
{
  return row.group + " " + row.name + " " + row.shape + " " + row.dtype + (row.note.empty () ? "" : " " + row.note);
}

void
Bench::fail (const std::string &what, const std::string &why)
{
  fprintf (stderr, "failed: %s: %s\n", what.c_str (), why.c_str ());
  journal_->fail (what, why);
}

void
Bench::leave_out (const Row &row, const std::string &why)
{
  if (!wants (row))
    return;
  if (is_dry ())
    print (row);
  else if (!journal_->has (case_of (row)))
    fail (case_of (row), why);
}

bool
Bench::passes_over (const Row &row, const std::string &what, double seconds)
{
  if (journal_->has (what)) {
    std::vector<Row> known = journal_->rows_of (what);
    for (const Row &row_known : known)
      print (row_known);
    n_resumed_ += known.size ();
    return true;
  }
  std::string objection = checks_.objection (row);
  if (!objection.empty ()) {
    fail (what, objection);
    return true;
  }
  if (elapsed_s () + seconds <= options_.seconds)
    return false;
  fprintf (stderr, "note: no time left for %s\n", what.c_str ());
  n_skipped_++;
  return true;
}

/* Once, under watch. */
std::vector<Row>
Bench::try_case (const std::function<std::vector<Row> ()> &time)
{
  Watch watch (device_->nvml ());
  std::vector<Row> rows = time ();
  KB_CHECK (cudaStreamSynchronize (stream_));
  Conditions seen = watch.end ();
  for (Row &row : rows) {
    row.conditions = seen;
    row.disturbance = disturbance_of (seen);
  }
  return rows;
}

std::vector<Row>
Bench::settle (const std::string &what, const std::function<std::vector<Row> ()> &time)
{
  std::vector<Row> rows = try_case (time);
  for (int i = 1; i < n_tries && !rows.empty () && !rows[0].disturbance.empty (); i++) {
    fprintf (stderr, "note: %s: disturbed (%s), measured again\n", what.c_str (), rows[0].disturbance.c_str ());
    std::this_thread::sleep_for (rest);
    rows = try_case (time);
  }
  return rows;
}

std::vector<Row>
Bench::measure_case (const Row &row, double seconds, const std::function<std::vector<Row> ()> &time)
{
  std::string what = case_of (row);
  if (!wants (row))
    return {};
  if (is_dry ())
    print (row);
  if (is_dry () || passes_over (row, what, seconds))
    return is_dry () ? std::vector<Row> () : journal_->rows_of (what);
  journal_->begin (what);
  try {
    std::vector<Row> rows = settle (what, time);
    journal_->end (what, rows);
    for (const Row &measured : rows)
      print (measured);
    return rows;
  } catch (const Failure &failure) {
    fail (what, failure.what ());
    require_device (what.c_str ());
    return {};
  }
}

std::vector<Row>
Bench::measure (const Row &row, double seconds, const std::function<Timing (Row &)> &time)
{
  return measure_case (row, seconds, [&] {
    Row measured = row;
    measured.time = time (measured);
    return std::vector<Row> { measured };
  });
}

void
Bench::run_group (const Group &group)
{
  if (!wants_group (options_, group.name))
    return;
  if (!is_dry ())
    fprintf (stderr, "%6.1f s %s: %s\n", elapsed_s (), group.name, conditions_note (device_->nvml ().read ()).c_str ());
  try {
    group.run (*this);
  } catch (const Failure &failure) {
    fail (std::string (group.name) + ", all that is missing", failure.what ());
    require_device (group.name);
  }
}

void
Bench::check_kernels ()
{
  if (is_dry () || options_.skips_checks)
    return;
  check_all (checks_, stream_, capability ());
  if (checks_.n_failed () > 0)
    fprintf (stderr, "note: %zu checks failed; the rows of these kernels fail with them\n", checks_.n_failed ());
}

void
Bench::finish () const
{
  if (is_dry ())
    return;
  if (!options_.json_file.empty ())
    write_profile (options_.json_file, *journal_, n_skipped_);
  fprintf (stderr, "%.1f s; %zu rows, %zu of an earlier run; %zu failed; %zu left out for lack of time\n", elapsed_s (),
           journal_->rows ().size (), n_resumed_, journal_->failed ().size (), n_skipped_);
}

}
