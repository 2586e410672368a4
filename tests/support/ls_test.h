/* tests/support/ls_test.h — a CUnit runner whose failures show both values.
 *
 *     static void two_flows_share_one_link (void) { LS_CHECK_DOUBLE (a, ==, 5.0); }
 *     LS_TEST_SUITE (LS_TEST (two_flows_share_one_link), LS_TEST (...))
 *
 * A file is a suite: test_maxmin.c is "maxmin". The suites of a room are one program (ls_test_main.c).
 *
 * CUnit's FATAL asserts leave by longjmp and skip cleanup: not used here. Write
 * `if (!LS_CHECK (p != NULL)) return;` instead. */
#ifndef LS_TEST_H
#define LS_TEST_H

#include <CUnit/CUnit.h>
#include <glib.h>
#include <stdbool.h>

#include <lockstep/units.h>

typedef struct {
  const char *name;
  void (*run) (void);
} LsTestCase;

/* What a file of tests says of itself; all of it lives as long as the program. */
typedef struct LsTestSuite LsTestSuite;
struct LsTestSuite {
  const char *file;      /* .../test_NAME.c */
  void (*before) (void); /* ahead of the first test and behind the last, or NULL */
  void (*after) (void);
  const LsTestCase *cases;
  size_t n_cases;
  LsTestSuite *next;
};

/* Before main: the program has this suite. */
void ls_test_add_suite (LsTestSuite *suite);

/* Runs and reports: EXIT_SUCCESS if each check held. */
int ls_test_run (const char *suite, const LsTestCase *cases, size_t n_cases);

bool ls_check_impl (bool ok, const char *file, int line, const char *format, ...) G_GNUC_PRINTF (4, 5);

#define LS_TEST(fn)                                                                                          \
  {                                                                                                          \
#fn, fn                                                                                                  \
  }
#define LS_TEST_SUITE(...) LS_TEST_SUITE_WITH (NULL, NULL, __VA_ARGS__)
#define LS_TEST_SUITE_WITH(before, after, ...)                                                               \
  __attribute__ ((constructor)) static void ls_test_add_this_suite (void)                                    \
  {                                                                                                          \
    static const LsTestCase cases[] = { __VA_ARGS__ };                                                       \
    static LsTestSuite suite = { __FILE__, before, after, cases, G_N_ELEMENTS (cases), NULL };               \
    ls_test_add_suite (&suite);                                                                              \
  }

#define LS_CHECK(cond) ls_check_impl ((cond), __FILE__, __LINE__, "%s", #cond)
#define LS_CHECK_INT(a, op, b)                                                                               \
  ({                                                                                                         \
    gint64 a_ = (gint64) (a), b_ = (gint64) (b);                                                             \
    ls_check_impl (a_ op b_, __FILE__, __LINE__, "%s %s %s: %" G_GINT64_FORMAT " vs %" G_GINT64_FORMAT, #a,  \
                   #op, #b, a_, b_);                                                                         \
  })
#define LS_CHECK_DOUBLE(a, op, b)                                                                            \
  ({                                                                                                         \
    double a_ = (a), b_ = (b);                                                                               \
    ls_check_impl (a_ op b_, __FILE__, __LINE__, "%s %s %s: %.17g vs %.17g", #a, #op, #b, a_, b_);           \
  })
/* |a - b| <= rel * |b| */
#define LS_CHECK_NEAR(a, b, rel)                                                                             \
  ({                                                                                                         \
    double a_ = (a), b_ = (b), r_ = (rel), d_ = a_ > b_ ? a_ - b_ : b_ - a_;                                 \
    ls_check_impl (d_ <= r_ * (b_ < 0 ? -b_ : b_), __FILE__, __LINE__,                                       \
                   "%s near %s: %.17g vs %.17g (allowed %g)", #a, #b, a_, b_, r_);                           \
  })
#define LS_CHECK_STR(a, b)                                                                                   \
  ({                                                                                                         \
    const char *a_ = (a), *b_ = (b);                                                                         \
    ls_check_impl (g_strcmp0 (a_, b_) == 0, __FILE__, __LINE__, "%s is \"%s\", not \"%s\"", #a, a_, b_);     \
  })
#define LS_CHECK_NO_ERROR(error)                                                                             \
  ls_check_impl ((error) == NULL, __FILE__, __LINE__, "unexpected error: %s", (error) ? (error)->message : "")

/* Whether tests/unit/meson.build's slow_tests are asked for in full (LS_ALL_CASES=1). */
bool ls_test_has_all_cases (void);

/* Cases of a random test: as LS_CASES says, or few, or all of them. */
guint ls_test_cases (guint few, guint all);

/* Folder of the data that does not ship (the measured runs); NULL, after saying
 * so, where it is absent. */
const char *ls_test_shared_data (void);

/* LS_DATA_DIR becomes tests/golden/data, below what it was: the made-up models and clusters. */
void ls_test_golden_data (void);

/* Holds a text against section NAME of tests/FILE, which has expected texts of several tests:
 *
 *     === NAME
 *     the text, line by line; it has no line that begins with "=== "
 *
 * LS_UPDATE_GOLDEN=1 writes a text anew, in its place. */
void ls_check_section (const char *file, const char *name, const char *text);

#endif
