/* Pins what values of Python are taken for: nothing that is not known decides, and what differs in Python is not taken for
 * the same. */
#include "python_check.h"

#define F(body) "def f():\n  return " body "\n"

/* A name of another file, and what a function of one returns, may be anything; a class makes something that is true. */
static void
what_is_not_known_decides_nothing (void)
{
  check_python (
      "def f():\n  x, y, r = g(), m.N, []\n  if x: r += [1]\n  if y: r += [2]\n  if x == 8: r += [3]\n  return r\n",
      "\"<if x == 8>\"+3");
  check_python ("def f():\n  x = g()\n  return x is None, not x, x in [1], x or 2, isinstance(x, str)\n",
                "[\"<x is None>\",\"<not x>\",\"<x in [1]>\",\"<x or 2>\",false]");
  check_python (
      "def f():\n  y = m.N\n  return y == 1, y.lower(), str(y), y + 'a', y in ('a', 'b'), [y] == [1], y is None\n",
      "[\"<m.N == 1>\",\"<m.N.lower()>\",\"<str(m.N)>\",\"<m.N + 'a'>\",\"<m.N in ('a', 'b')>\","
      "\"<[m.N] == [1]>\",false]");
  check_python (
      "def f():\n  y, z = m.N, m.M\n  return y == m.N, y == z, y in [z, y], y == n.M, bool(A(x=1)), 'x' in A(x=1)\n",
      "[\"<m.N == m.N>\",false,true,\"<m.N == n.M>\",true,\"<'x' in A(x=1)>\"]");
}

/* Numbers with a point, truths, tuples and texts. */
static void
what_differs_in_python_differs (void)
{
  check_python (F ("[str(8 / 2), str(1e3), str(8 // 2), str(float(3)), str(2 * 4), str(max(1, 2))]"),
                "[\"<str(8 / 2)>\",\"<str(1e3)>\",\"4\",\"<str(float(3))>\",\"8\",\"2\"]");
  check_python (
      F ("[True == 1, 1 in [True], 1.0 == 1, (1,) == [1], (1, 2) == (1, 2), 'b' in 'abc', 3 in {3: 1}]"),
      "[true,true,true,false,true,true,true]");
  check_python (F ("[2 ** 10, 2 ** 3 ** 2, -2 ** 2, 2 ** -1, 2 ** 70]"), "[1024,512,-4,0.5,\"<2 ** 70>\"]");
}

LS_TEST_SUITE (LS_TEST (what_is_not_known_decides_nothing), LS_TEST (what_differs_in_python_differs))
