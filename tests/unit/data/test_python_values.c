/* Pins what values of Python are taken for: nothing that is not known decides, and what differs in Python is not taken for
 * the same; and what comes of statements, as CPython 3.11 has it. */
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
                "[\"4.0\",\"1000.0\",\"4\",\"3.0\",\"8\",\"2\"]");
  check_python (
      F ("[True == 1, 1 in [True], 1.0 == 1, (1,) == [1], (1, 2) == (1, 2), 'b' in 'abc', 3 in {3: 1}]"),
      "[true,true,true,false,true,true,true]");
  check_python (F ("[2 ** 10, 2 ** 3 ** 2, -2 ** 2, 2 ** -1, 2 ** 70]"), "[1024,512,-4,0.5,\"<2 ** 70>\"]");
}

/* zip, enumerate, sorted and others, of what is known; a set has no order. */
static void
sequences_are_known (void)
{
  check_python (
      "def f():\n  a, r = [1, 2], []\n  for i, (x, y) in enumerate(zip(a, (3, 4, 5)), start=1):\n    r.append(i * x * y)\n"
      "  for i in range(10, 0, -3):\n    r.append(i)\n  return r\n",
      "[3,16,10,7,4,1]");
  check_python (
      F ("[sorted([3, 1, 2]), sorted(['b', 'a'], reverse=True), sorted([1, 'a']), list(reversed((1, 2))), sum([1, 2]), "
         "sum([1, a]), any([0, 1]), all([1, a]), all([0, a]), abs(-3), list({'a': 1}), list(zip([1], a))]"),
      "[[1,2,3],[\"b\",\"a\"],\"<sorted([1, 'a'])>\",[2,1],3,\"<sum([1, a])>\",true,\"<all([1, a])>\",false,3,[\"a\"],"
      "\"<list(zip([1], a))>\"]");
  check_python (
      F ("[1 in {1, 2, 1}, len({1, 1}), {*[1, 2]}, {1} == {1}, sorted({3, 1}), list({1, 2}), {1, a}, {'a'}]"),
      "[true,1,[1,2],\"<{1} == {1}>\",[1,3],\"<list({1, 2})>\",\"<{1, a}>\",[\"a\"]]");
  check_python (F ("[dict(n=1), dict({'n': 1, 'm': 2}, n=5), dict([('a', 1)]), dict(), dict(a, n=1)]"),
                "[{\"n\":1},{\"n\":5,\"m\":2},{\"a\":1},{},\"<dict(a, n=1)>\"]");
  check_python (
      "def f():\n  a = A(m=C(k=1))\n  b = copy.deepcopy(a)\n  b.m.k = 2\n  c = copy.copy(a)\n  c.n = 5\n  c.m.k = 7\n"
      "  d = {'x': 1}\n  e = d.copy()\n  e['z'] = 1\n  return a, b, c, d, e\n",
      "[{\"()\":\"A\",\"m\":{\"()\":\"C\",\"k\":7}},{\"()\":\"A\",\"m\":{\"()\":\"C\",\"k\":2}},"
      "{\"()\":\"A\",\"m\":{\"()\":\"C\",\"k\":7},\"n\":5},{\"x\":1},{\"x\":1,\"z\":1}]");
}

static void
slices_are_taken (void)
{
  check_python (
      "def f():\n  a = [1, 2, 3, 4]\n  return a[1:3], a[:2], a[-2:], a[::2], a[::-1], a[5:], a[-9:2], a[3:0:-2], 'abc'[1:]\n",
      "[[2,3],[1,2],[3,4],[1,3],[4,3,2,1],[],[1,2],[4,2],\"bc\"]");
  check_python (F ("[[1, 2][a:], [1][::0], {1, 2}[:1], b[1:], [1][0.5:]]"),
                "[\"<[1, 2][a:]>\",\"<[1][::0]>\",\"<{1, 2}[:1]>\",\"<b[1:]>\",\"<[1][0.5:]>\"]");
}

/* With conditions, of several, of dictionaries; a name means again what it meant before. */
static void
comprehensions_are_made (void)
{
  check_python (
      "def f():\n  n = 7\n  return [n * 2 for n in range(3) if n != 1], [x + y for x, (y,) in [(1, (2,))]], "
      "[x for y in [[1], [2]] for x in y], n\n",
      "[[0,4],[3],[1,2],7]");
  check_python (
      "def f():\n  d = {'a': 1, 'b': 2}\n  return {k: v * 2 for k, v in d.items() if k != 'a'}, {k: 1 for k in d}, "
      "sum(v for v in d.values()), {x for x in [1, 1]}\n",
      "[{\"b\":4},{\"a\":1,\"b\":1},3,[1]]");
  check_python (
      F ("[[x for x in a if x], [x for x in [1, 2] if a], {k: 1 for k in a}, [x for x, y in [1]], [x for x in {1, 2}]]"),
      "[\"<[x for x in a if x]>\",\"<[x for x in [1, 2] if a]>\",\"<{k: 1 for k in a}>\",\"<[x for x, y in [1]]>\","
      "\"<[x for x in {1, 2}]>\"]");
}

/* What stands in f"{a}", of texts and whole numbers; how Python prints others is left open. */
static void
formatted_texts_are_known (void)
{
  check_python (
      "def f():\n  n, d = 8, {'a': 3}\n  return f'{n}b', f\"a{ n }_{'x'}\", f'{n:03d}', f'p', f'{{n}}', f\"{d['a']}-{n + 1}\" 'x' f'{n}', "
      "f'\\n{n if n > 3 else 0}', rf'\\n{n}', f'{None}{n == 8}', f''\n",
      "[\"8b\",\"a8_x\",\"008\",\"p\",\"{n}\",\"3-9x8\",\"\\n8\",\"\\\\n8\",\"NoneTrue\",\"\"]");
  check_python (
      "def f():\n  n = 8\n  return f'{n / 2}', f'{n!r}', f'{n:,}', f'{a}', f'{n=}', f'{n:{n}}', f'{n', f'{-n:03d}', f'{}', f'a}'\n",
      "[\"4.0\",\"<f'{n!r}'>\",\"8\",\"<f'{a}'>\",\"<f'{n=}'>\",\"<f'{n:{n}}'>\",\"<f'{n'>\",\"-08\",\"<f'{}'>\",\"<f'a}'>\"]");
}

/* What the bodies of classes set; of one that has a constructor it is not known. */
static void
classes_have_members (void)
{
  check_python (
      "class D:\n  n = 3\n  m = 4\nclass E(D):\n  m = 5\ndef f():\n  return D.n, E.m, E.n, D().n, E(n=9).n, D.z, [D.z == 1]\n",
      "[3,5,3,3,9,\"D.z\",[\"<D.z == 1>\"]]");
  check_python (
      "@dataclass\nclass D(Base):\n  'doc'\n  q: int\n  n: int = 3\n  l: list = field(default_factory=list)\n"
      "  k: int = field(default=7)\n  def h(self):\n    return 1\ndef f():\n  d = D(q=1)\n  d.n += 1\n  return d, D(1, 2)\n",
      "[{\"()\":\"D\",\"q\":1,\"k\":7,\"l\":\"<class D>\",\"n\":4},{\"()\":\"D\",\"0\":1,\"1\":2}]");
  check_python (
      "class B:\n  a = 1\n  b = 2\n  def __post_init__(self):\n    if self.a > 1:\n      self.b = 5\nclass D(B):\n  c = 3\n"
      "class G:\n  a = 1\n  def __init__(self):\n    self.a = 2\ndef f():\n  return D(a=4), G(), G.a\n",
      "[{\"()\":\"D\",\"a\":4,\"b\":\"<class B>\",\"c\":3},{\"()\":\"G\"},\"G.a\"]");
  check_python (
      "class D:\n  a = field(default_factory=lambda: D())\n  b = D.a\ndef f():\n  return len([D()])\n", "1");
}

/* --- what is followed: loops that are left early, lines with several statements, usual values --- */

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

LS_TEST_SUITE (LS_TEST (what_is_not_known_decides_nothing), LS_TEST (what_differs_in_python_differs),
               LS_TEST (sequences_are_known), LS_TEST (slices_are_taken), LS_TEST (comprehensions_are_made),
               LS_TEST (formatted_texts_are_known), LS_TEST (classes_have_members), LS_TEST (loops_are_left),
               LS_TEST (loops_without_end_are_told), LS_TEST (lines_have_several_statements),
               LS_TEST (usual_values_are_made_once), LS_TEST (names_of_the_file_are_set),
               LS_TEST (methods_of_texts_are_known))
