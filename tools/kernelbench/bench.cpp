#include "bench.h"

#include <cstdio>
#include <thread>

namespace kb {

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
