/* Pins what comes of loops that are left early, of lines with several statements, of what parameters usually are
 * and of names of the file in functions, as CPython 3.11 has it. */
#include "python_check.h"

static void
loops_are_left (void)
{
  check_python (
      "def f():\n  a = []\n  for i in [1, 2, 3]:\n    if i == 2: continue\n    a.append(i)\n  return a, i\n",
      "[[1,3],3]");
  check_python (
      "def f():\n  a = []\n  for i in [1, 2, 3]:\n    for j in [4, 5]:\n      if j == 5:\n        break\n"
      "      a.append((i, j))\n    else:\n      a.append(0)\n    if i == 2: break\n  else:\n    a = 1\n  return a\n",
      "[[1,4],[2,4]]");
  check_python ("def f():\n  a = 1\n  for i in []:\n    a = 2\n  else:\n    a = 3\n  return a\n", "3");
  check_python ("def f():\n  n = 1000\n  while n % 2 == 0:\n    n //= 2\n  else:\n    m = n\n  return n, m\n",
                "[125,125]");
  check_python ("def f():\n  n = 0\n  while True:\n    n += 1\n    if n >= 5:\n      return n\n", "5");
  check_python (
      "def f():\n  a = 0\n  for i in [1, 2]:\n    try:\n      if i == 2: break\n    except E:\n      pass\n    a = i\n  return a\n",
      "1");
}

/* Rounds of what does not end are bounded, and so is what they make. */
static void
loops_without_end_are_told (void)
{
  check_python ("def f():\n  a = 0\n  while True:\n    a += 1\n  return a\n", "\"<while True>\"+1");
  check_python (
      "def f():\n  a, b = 0, 7\n  while a < 1000000:\n    a += sum([1] * 20)\n    b = 8\n  return a, b, 9\n",
      "[\"<while a < 1000000>\",\"<while a < 1000000>\",9]+1");
  check_python (
      "def f():\n  a = 0\n  while True:\n    while True:\n      a += 1\n      if a > 5000: break\n  return a\n",
      "\"<while True>\"+2");
  check_python ("def f():\n  a = [1]\n  while u:\n    b = a.pop()\n  return a\n", "\"<while u>\"+1");
  check_python ("def g(a):\n  a.x = 2\ndef f():\n  a, b = A(x=1), A(x=1)\n  if u:\n    g(a)\n  return a, b\n",
                "[\"<if u>\",{\"()\":\"A\",\"x\":1}]+1");
  g_autoptr (GString) deep = g_string_new ("def f():\n");
  for (guint i = 1; i < 300; i++)
    g_string_append_printf (deep, "%*swhile a:\n", (int) i, "");
  g_string_append_printf (deep, "%*sa = 1\n  return 1\n", 300, "");
  g_autofree char *got = python_of (deep->str, NULL);
  LS_CHECK (strstr (got, "returns nothing") || strstr (got, "nested"));
}

static void
lines_have_several_statements (void)
{
  check_python (
      "def f():\n  a = 1; b = 2;\n  if a: b = 3; c = 4\n  else: c = 5\n  for d in [1, 2]: a += d; b = a\n  return a, b, c\n",
      "[4,4,4]");
  check_python ("def g(n): n += 1; return n\ndef f(): return g(2)\n", "3");
  check_python ("def f():\n  a = 1 + \\\n    2\n  with a as b, \\\n      c:\n    d = 4\n  return a, d\n",
                "[3,4]");
  check_python ("def f():\n  return '\\x41\\u00e9\\101\\d\\'\\n', r'\\x41', 'a\\\nb'\n",
                "[\"A\u00e9A\\\\d'\\n\",\"\\\\x41\",\"ab\"]");
  check_python ("def f():\n  if (n := 4) > 3:\n    return n, [m := 5, m]\n", "[4,[5,5]]");
  check_python (
      "def f():\n  with (A(n=1) as a, b() as c.d,):\n    x = 1\n  with (a):\n    y = 2\n  with a as (b, c):\n    y = 3\n  return x, y\n",
      "[1,\"<with A(n=1) as a as (b, c)>\"]+2");
}

/* What a parameter usually is, is one object, made where the function is defined. */
static void
usual_values_are_made_once (void)
{
  check_python (
      "def g(a, b=[]):\n  b.append(a)\n  return b\ndef f():\n  c = g(1)\n  d = g(2)\n  return c, d, g(3, [])\n",
      "[[1,2],[1,2],[3]]");
  check_python ("N = 1\ndef g(n=N):\n  return n\nN = 2\ndef f():\n  return g(), N\n", "[1,2]");
  check_python (
      "def g(c={}):\n  c['n'] = c.get('n', 0) + 1\n  return c['n']\ndef f():\n  return g(), g(), g({})\n",
      "[1,2,1]");
  check_python ("def g(n=..., m=3):\n  return m\ndef f():\n  return g(1), g()\n", "[3,3]");
  check_python ("def g(c):\n  c = A(n=2)\n  return 1\ndef f():\n  c = A(n=1)\n  g(c)\n  return c\n",
                "{\"()\":\"A\",\"n\":1}");
}

static void
names_of_the_file_are_set (void)
{
  check_python (
      "X = 1\ndef g(n):\n  global X, Y\n  X += n\n  Y = [X]\ndef f():\n  g(3)\n  Y.append(5)\n  return X\n",
      "4");
  check_python ("L = []\ndef g(n):\n  L.append(n)\n  return n\ndef f():\n  return g(3), L\n", "[3,[3]]");
  check_of ("c = A(n=1)\ndef g(c):\n  c.n = 2\ng(c)\nx = c\n", "x", "{\"()\":\"A\",\"n\":2}");
}

/* Against CPython 3.11, of random arguments, once; here one of each. */
static void
methods_of_texts_are_known (void)
{
  check_python (
      "def f():\n  t = ' a,b '\n  return [t.split(','), 'a  b'.split(), 'a,b,c'.rsplit(',', 1), '-'.join(['a', 'b']), t.replace('a', 'c'),"
      " t.lstrip(), 'xax'.strip('x'), 'ab'.startswith(('b', 'a')), 'ab'.endswith('c'), 'a=b'.partition('='), 'ab'.removeprefix('a'),"
      " '7'.zfill(3), 'ab'.find('b'), 'aa'.count('a'), 'a b'.title(), '12'.isdigit(), 'é'.lower(), 'a'.join([b]), 'a'.split(b)]\n",
      "[[\" a\",\"b \"],[\"a\",\"b\"],[\"a,b\",\"c\"],\"a-b\",\" c,b \",\"a,b \",\"a\",true,false,[\"a\",\"=\",\"b\"],\"b\",\"007\",1,2,"
      "\"A B\",true,\"<'  '.lower()>\",\"<'a'.join([b])>\",\"<'a'.split(b)>\"]");
  check_python (
      "def f():\n  return ['{}-{}'.format(1, 'a'), '{1}{0}{x:03d}'.format(1, 2, x=7), '{{}}'.format(), '{.a}'.format(1), f'{0.5:.2f}|{7:>3}|{1e6:,}|{\"a\":<3}|',"
      " '%s-%02d%%' % ('a', 3), '%d' % 7, '%x' % 7, str(1e16), str(0.1), str(1/3), str(-0.0), f'{True}', f'{None}']\n",
      "[\"1-a\",\"21007\",\"{}\",\"<'{.a}'.format(1)>\",\"0.50|  7|1,000,000.0|a  |\",\"a-03%\",\"7\",\"<'%x' % 7>\",\"1e+16\",\"0.1\","
      "\"0.3333333333333333\",\"-0.0\",\"True\",\"None\"]");
}

LS_TEST_SUITE (LS_TEST (loops_are_left), LS_TEST (loops_without_end_are_told),
               LS_TEST (lines_have_several_statements), LS_TEST (usual_values_are_made_once),
               LS_TEST (names_of_the_file_are_set), LS_TEST (methods_of_texts_are_known))
