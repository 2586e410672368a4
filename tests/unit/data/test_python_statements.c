/* Pins what statements of Python change that are followed, and what is open behind those that are not. */
#include "python_check.h"

/* Items under keys, of what is known and of what is not; what is set under a key that is not known may be any. */
static void
items_are_set (void)
{
  check_python (
      "def f():\n  d = {'a': {'b': 1}, 'e': 0}\n  d['a']['b'] = 2\n  d['c'] = 3\n  d['a', 8] = 4\n  d['e'] = 5\n"
      "  return d\n",
      "{\"a\":{\"b\":2},\"e\":5,\"c\":3,\"(\\\"a\\\",8)\":4}");
  check_python (
      "def f():\n  c = A(x={'a': 1})\n  c.x['b'] = 2\n  c.y['z'] = 3\n  k = 'w'\n  c.y[k].v = 4\n  return c, 'q' in c.y\n",
      "[{\"()\":\"A\",\"x\":{\"a\":1,\"b\":2},\"y\":{\"()\":\"<c.y['z'] = 3>\",\"z\":3,\"w\":{\"v\":4}}},\"<'q' in c.y>\"]");
  check_python ("def f():\n  d = {'a': 1}\n  e = d\n  d[k] = 2\n  return d, e\n",
                "[\"<d[k] = 2>\",\"<d[k] = 2>\"]+1");
  check_python ("def f():\n  a = [1, 2]\n  a[0] = 3\n  return a\n", "[3,2]");
  check_python ("D = {'a': 1}\ndef f():\n  D['a'] = 2\n  return D\n", "{\"a\":2}");
  check_python ("def f():\n  d = {'a': 1}\n  d['d'] = d\n  return d\n", "\"<d['d'] = d>\"+1");
}

/* "+=" and methods that change what they are called of. */
static void
what_is_set_is_changed (void)
{
  check_python (
      "def f():\n  a, b, c = 1, [1], A(n=2)\n  a += 2\n  a *= 4\n  a -= 1\n  a //= 2\n  b += [2]\n  c.n += a\n"
      "  c.d = {'k': 'x'}\n  c.d['k'] += 'y'\n  a |= 1\n  return a, b, c\n",
      "[\"<a |= 1>\",[1,2],{\"()\":\"A\",\"n\":7,\"d\":{\"k\":\"xy\"}}]");
  check_python (
      "def f():\n  a = []\n  b = a\n  a.append([1])\n  a.extend([2, 3])\n  a += (4,)\n  b.append(5)\n  a = a + [6]\n  b.append(7)\n"
      "  return a, b\n",
      "[[[1],2,3,4,5,6],[[1],2,3,4,5,7]]");
  check_python ("def f():\n  a = [1]\n  b = a\n  a.extend(c)\n  return a, b\n",
                "[\"<a.extend(c)>\",\"<a.extend(c)>\"]+1");
  check_python ("def f():\n  a = [1]\n  a.append(1, 2)\n  b = [1]\n  b.sort()\n  return a, b\n",
                "[\"<a.append(1, 2)>\",\"<b.sort()>\"]+2");
  check_python (
      "def f():\n  d = {'a': 1, 'b': 2}\n  d.update({'b': 3, 'c': 4})\n  d.update(e=5)\n  d.setdefault('a', 6)\n"
      "  d.setdefault('g', 7)\n  d.setdefault('h')\n  return d\n",
      "{\"a\":1,\"b\":3,\"c\":4,\"e\":5,\"g\":7,\"h\":null}");
  check_python (
      "def f():\n  c = A()\n  c.d.update({'x': 1})\n  c.d.setdefault('x', 2)\n  c.d.setdefault('y', 3)\n  c.e.update(z)\n"
      "  return c\n",
      "{\"()\":\"A\",\"d\":{\"()\":\"<c.d.update({'x': 1})>\",\"x\":1,\"y\":\"<c.d.setdefault('y', 3)>\"},"
      "\"e\":\"<c.e.update(z)>\"}+2");
  check_python ("def f():\n  d = {'a': 1, 'b': 2}\n  x = d.pop('a')\n  return d, x\n",
                "[\"<d.pop('a')>\",\"<d.pop('a')>\"]+1");
}

/* A name and a member, or two names, may be one object. */
static void
what_is_shared_is_changed_together (void)
{
  check_python (
      "def f():\n  a = A()\n  c = C()\n  c.a = a\n  a.n = 1\n  c.a.m = 2\n  c.b = [a]\n  a.k = 3\n  return c, a\n",
      "[{\"()\":\"C\",\"a\":{\"()\":\"A\",\"n\":1,\"m\":2,\"k\":3},\"b\":[{\"()\":\"A\",\"n\":1,\"m\":2,\"k\":3}]},"
      "{\"()\":\"A\",\"n\":1,\"m\":2,\"k\":3}]");
  check_python (
      "def g(x, y):\n  y.n = x\n  return y\ndef f():\n  a = A()\n  b = g(1, a)\n  a = A(m=2)\n  b.k = 3\n  return a, b\n",
      "[{\"()\":\"A\",\"m\":2},{\"()\":\"A\",\"n\":1,\"k\":3}]");
  check_python (
      "def f():\n  a = other(1)[0]\n  b = a\n  b.n = 1\n  c = replace(A(m=1), n=2)\n  d = replace(c, n=3)\n  d.k = 4\n"
      "  return a, c\n",
      "[{\"()\":\"<other(1)[0]>\",\"n\":1},{\"()\":\"A\",\"m\":1,\"n\":2}]");
  check_python ("def f():\n  d = {}\n  a = [d] * 900\n  d['a'] = [1] * 900\n  return d\n",
                "4:0: error: it makes too much");
  check_python ("def f():\n  a = [1]\n  b = list(a)\n  b.append(2)\n  return a, b, [1, 2] * 2\n",
                "[[1],[1,2],[1,2,1,2]]");
}

/* Over lists, tuples, ranges and dictionaries that are known. */
static void
loops_of_python_are_followed (void)
{
  check_python (
      "def f():\n  a = []\n  for i in range(3):\n    n = 2 * i\n    if i == 1:\n      n += 10\n    a.append(n)\n  return a, i\n",
      "[[0,12,4],2]");
  check_python (
      "def f():\n  d, a = {'x': 1, 'y': [2]}, []\n  for k, v in d.items():\n    a.append((k, v))\n  for k in d:\n    a += [k]\n"
      "  for v in d.values():\n    for _ in (1, 2):\n      a.append(v)\n  for k in d.keys(): pass\n  return a\n",
      "[[\"x\",1],[\"y\",[2]],\"x\",\"y\",1,1,[2],[2]]");
  check_python (
      "def f():\n  c = A(l=[B(n=1), B(n=2)])\n  for b in c.l:\n    b.n += 5\n  for i in range(5, 0, -2):\n    c.i = i\n"
      "  for c.j in ():\n    c.i = 9\n  return c\n",
      "{\"()\":\"A\",\"l\":[{\"()\":\"B\",\"n\":6},{\"()\":\"B\",\"n\":7}],\"i\":1}");
  check_python ("def f():\n  for a in [1, 2, 3]:\n    if a == 2:\n      return a\n  return 4\n", "2");
  check_python (
      "def f():\n  a, b = divmod(7, 2)\n  c = []\n  for i in range(b + 1):\n    c.append(['x'] * (a + int(i < b)))\n  return c, len(c)\n",
      "[[[\"x\",\"x\",\"x\",\"x\"],[\"x\",\"x\",\"x\"]],2]");
  check_of ("x = {}\nfor i, k in [(1, 'a'), (2, 'b')]:\n  x[k] = i\n", "x", "{\"a\":1,\"b\":2}");
}

/* What they set is not known behind them: over what is not known, too long, or left early. */
static void
loops_that_are_not_followed_are_open (void)
{
  static const char *const heads[]
      = { "for i in g:", "for i in range(100000000):", "for i, j in zip(d, e):", "while True:" };
  for (guint i = 0; i < G_N_ELEMENTS (heads); i++) {
    g_autofree char *text
        = g_strdup_printf (
            "def f():\n  a, c = [1], A(x=1, y=2, d={'k': 1})\n  %s\n    a.append(2)\n    c.x = 3\n"
            "    if c.y:\n      c.d['k'] = 4\n      z = c.z = 5\n  return a, c, z\n",
            heads[i]),
        *hole = g_strdup_printf ("\"<%.*s>\"", (int) strlen (heads[i]) - 1, heads[i]),
        *expected = g_strdup_printf ("[%s,{\"()\":\"A\",\"y\":2,\"d\":{\"k\":%s},\"x\":%s,\"z\":%s},%s]+1",
                                     hole, hole, hole, hole, hole);
    check_python (text, expected);
  }
  static const char *const ends[] = { "    if g:\n      break\n", "    if g: continue\n" };
  for (guint i = 0; i < G_N_ELEMENTS (ends); i++) {
    g_autofree char *text = g_strconcat ("def f():\n  a = b = 0\n  for i in [1, 2]:\n    a += i\n", ends[i],
                                         "  else:\n    b = 5\n  return a, b\n", NULL);
    check_python (text, "[\"<for i in [1, 2]>\",\"<for i in [1, 2]>\"]+2");
  }
  check_python (
      "def f():\n  a = 0\n  for i in range(600):\n    a += 1\n  for i in range(600):\n    a += 1\n  return a\n",
      "\"<for i in range(600)>\"+1");
  check_python ("def g(n):\n  for i in h:\n    if i: return 1\n  return A(n=n)\ndef f():\n  return g(2)\n",
                "{\"()\":\"g\",\"0\":2}");
  check_python ("def g(n):\n  for i in h:\n    x = i\n  return A(n=n, x=x)\ndef f():\n  return g(2)\n",
                "{\"()\":\"A\",\"n\":2,\"x\":\"<for i in h>\"}+1");
}

/* What a block may set that is not followed; nothing of it where it only imports or refuses. */
static void
blocks_that_are_not_followed_are_open (void)
{
  check_python (
      "def f():\n  c = A(x=1)\n  if a:\n    c.x = 2\n  elif b:\n    c.y = 3\n  else:\n    c.z = 4\n  return c\n",
      "{\"()\":\"A\",\"x\":\"<if a>\",\"y\":\"<if a>\",\"z\":\"<if a>\"}+1");
  check_python (
      "def f():\n  c = A(x=1, l=[1])\n  m = c.l\n  if a: c.x += 2; b = 1\n  while d:\n    def g():\n      c.y = 1\n    c.l.append(2)\n"
      "    del c.w\n  return c, m\n",
      "[{\"()\":\"A\",\"l\":\"<while d>\",\"x\":\"<if a>\",\"w\":\"<while d>\"},\"<while d>\"]+2");
  check_python (
      "def g(n):\n  if n > k:\n    raise E('a')\n  if t:\n    import u\n  return A(n=n)\ndef f():\n  return g(2)\n",
      "{\"()\":\"A\",\"n\":2}");
  check_python (
      "def f():\n  c = A()\n  if hasattr(c, 'x') and c.x:\n    c.x = False\n  if c.y:\n    c.y = None\n  return c\n",
      "{\"()\":\"A\",\"x\":false,\"y\":null}");
  check_python (
      "def f():\n  c = A()\n  if hasattr(c, 'z') and c.x:\n    c.x = False\n  if c.y:\n    c.y = 2\n  if c.w and c.v:\n    c.v = False\n  return c\n",
      "{\"()\":\"A\",\"x\":\"<if hasattr(c, 'z') and c.x>\",\"y\":\"<if c.y>\",\"v\":\"<if c.w and c.v>\"}+3");
}

/* Members and items by names that are computed; a name that is not known may be any. */
static void
members_are_set_by_name (void)
{
  check_python (
      "def f():\n  c = A(n=1)\n  setattr(c, 'n', 2)\n  for k, v in {'p': 3, 'm': 4}.items():\n    setattr(c, k, v)\n"
      "  setattr(c.z, 'y', 1)\n  return c, getattr(c, 'n')\n",
      "[{\"()\":\"A\",\"n\":2,\"p\":3,\"m\":4,\"z\":{\"y\":1}},2]");
  check_python ("def f():\n  c = A(n=1)\n  setattr(c, k, 2)\n  return c\n", "\"<setattr(c, k, 2)>\"+1");
  check_python (
      "def f():\n  c, d = A(n=1, m=2), A(n=1)\n  if u:\n    setattr(c, 'n', 2)\n  for k in u:\n    setattr(d, k, 2)\n  return c, d\n",
      "[{\"()\":\"A\",\"m\":2,\"n\":\"<if u>\"},\"<for k in u>\"]+2");
  check_python (
      "def f():\n  a = [1, [3], {'x': 1}, A(n=1)]\n  b = a\n  a[0] = 3\n  a[-3][0] = 5\n  a[2]['x'] = 6\n  a[3].n = 7\n  a[0] += 1\n"
      "  b[1].append(9)\n  c = [1]\n  c[5] = 1\n  d = [1, 2]\n  d[0:1] = [3]\n  return a, b, c, d\n",
      "[[4,[5,9],{\"x\":6},{\"()\":\"A\",\"n\":7}],[4,[5,9],{\"x\":6},{\"()\":\"A\",\"n\":7}],\"<c[5] = 1>\",\"<d[0:1] = [3]>\"]+2");
  check_python (
      "def f():\n  d = {'a': 1}\n  d.update({'c': 1}, d=4)\n  e = {'a': 1}\n  e.update([('x', 1)])\n  return d, e\n",
      "[{\"a\":1,\"c\":1,\"d\":4},\"<e.update([('x', 1)])>\"]+1");
}

/* What is set in the environment is so from there on. */
static void
the_environment_is_set (void)
{
  check_of (
      "import os\nos.environ['A'] = '8'\nos.environ.setdefault('A', '9')\nos.environ.setdefault('Q', '7')\nos.environ.update(R='1')\n"
      "x = [os.environ['A'], os.environ.get('Q'), os.getenv('R'), 'R' in os.environ, os.environ.get('T', 5)]\n",
      "x", "[\"8\",\"7\",\"1\",true,5]");
  check_of (
      "import os\nif u:\n  os.environ['A'] = '8'\nos.environ['C'] = v\nx = [os.environ['A'], os.environ['B'], os.environ.get('C')]\n",
      "x", "[\"<os.environ['A']>\",\"\",\"<os.environ.get('C')>\"]+1");
  check_of ("import os\nos.environ[k] = '8'\nx = [os.environ['A'], 'D' in os.environ]\n", "x",
            "[\"<os.environ['A']>\",\"<'D' in os.environ>\"]+1");
  check_python ("def f():\n  os.environ.setdefault('A', '1')\n  return 1\n",
                "1"); /* of which nothing is known */
  check_of ("import os\ndel os.environ['A']\nx = os.getenv('A', 1)\n", "x", "\"<os.getenv('A', 1)>\"+1");
}

/* "+=" changes a list in all its names, and makes another tuple; what is not known of it is open in all. */
static void
operators_change_in_place (void)
{
  check_python (
      "def f():\n  a = [1]\n  b = a\n  a += {'k': 1}\n  c = (1,)\n  d = c\n  d += c\n  return a, b, c, d\n",
      "[[1,\"k\"],[1,\"k\"],[1],[1,1]]");
  check_python (
      "def f():\n  a, c = [1], {'k': 1}\n  b, d = a, c\n  a *= 2\n  c |= {'m': 2}\n  return a, b, c, d\n",
      "[\"<a *= 2>\",\"<a *= 2>\",\"<c |= {'m': 2}>\",\"<c |= {'m': 2}>\"]");
  check_python ("def f():\n  d = 'x'\n  for i in a:\n    b = 1\n    d[-1] = c\n  return d\n",
                "\"<for i in a>\"+1");
}

/* The body of "with" is run once. */
static void
with_is_followed (void)
{
  check_python (
      "def f():\n  c = A(n=1)\n  with d() as h, e(1):\n    c.n = 2\n  with g: c.m = 3\n  return c, h\n",
      "[{\"()\":\"A\",\"n\":2,\"m\":3},\"<d() as h>\"]");
  check_python ("def f():\n  n = 1\n  with (a as b, c as d):\n    n = 2\n  return n\n", "2");
}

/* Objects that functions may change which are not here, within others, or of the whole file. */
static void
what_others_may_change_is_told (void)
{
  check_python ("def f():\n  c = A(n=1)\n  x = other(c)\n  return c\n", "{\"()\":\"A\",\"n\":1}+1");
  check_python (
      "def f():\n  c, d = A(n=1), [1]\n  x = [B(c), m.C(d), len(d), print(c), other(c.n), other([1])]\n  return c\n",
      "{\"()\":\"A\",\"n\":1}");
  check_python ("X = 1\ndef g():\n  global X\n  X = 2\n  return 1\ndef f():\n  y = g()\n  return X\n", "2");
  check_python (
      "def f():\n  c, d = A(n=1), A(n=1)\n  def g(d):\n    c.n = 2\n    d.n = 3\n  def h():\n    d.n = 4\n  y = g(3)\n  return c, d\n",
      "[{\"()\":\"A\",\"n\":\"<def g(d)>\"},{\"()\":\"A\",\"n\":1}]");
  check_python ("def g(k, c):\n  c.n = k\ndef f():\n  a = A(n=1)\n  g(3, a)\n  g(c=a, k=4)\n  return a\n",
                "{\"()\":\"A\",\"n\":4}");
}

/* Where it is known whether it raises. */
static void
exceptions_of_python_are_followed (void)
{
  check_python ("def f():\n  try:\n    a, b = divmod(7, 2)\n  except E:\n    a = 2\n  return a, b\n",
                "[3,1]");
#define RAISES                                                                                               \
  "def g(n):\n  if n > 2:\n    raise ValueError('x')\n  return n\ndef f():\n  c = A(x=0)\n  try:\n"
  check_python (RAISES "    c.x = g(1)\n  except ValueError:\n    c.x = 5\n  return c\n",
                "{\"()\":\"A\",\"x\":1}");
  check_python (RAISES "    c.x = g(3)\n    c.y = 1\n  except ValueError as e:\n    c.z = 5\n  return c\n",
                "{\"()\":\"A\",\"x\":0,\"z\":5}");
  check_python (RAISES "    c.x += g(3)\n  except KeyError:\n    c.z = 5\n  return c\n",
                "{\"()\":\"A\",\"x\":\"<try>\",\"z\":\"<except KeyError>\"}+2");
  check_python (RAISES "    c.x = g(3)\n  except KeyError:\n    c.z = 5\n  return c\n",
                "{\"()\":\"A\",\"x\":\"<try>\",\"z\":\"<except KeyError>\"}+2");
  check_python (RAISES "    c.x += g(3)\n  except Exception:\n    c.z = 5\n  return c\n",
                "{\"()\":\"A\",\"x\":0,\"z\":5}");
  check_python (RAISES "    c.x = g(h)\n  except ValueError:\n    c.z = 5\n  return c\n",
                "{\"()\":\"A\",\"x\":\"<try>\",\"z\":\"<except ValueError>\"}+2");
  check_python ("def f():\n  try:\n    import h\n    a = 1\n  except ImportError:\n    a = 2\n  return a\n",
                "\"<except ImportError>\"+2");
  check_python ("def f():\n  try:\n    a = 1\n  except E:\n    a = 2\n  finally:\n    a = 3\n  return a\n",
                "\"<finally>\"+3");
}

LS_TEST_SUITE (LS_TEST (items_are_set), LS_TEST (what_is_set_is_changed),
               LS_TEST (what_is_shared_is_changed_together), LS_TEST (loops_of_python_are_followed),
               LS_TEST (loops_that_are_not_followed_are_open),
               LS_TEST (blocks_that_are_not_followed_are_open), LS_TEST (exceptions_of_python_are_followed),
               LS_TEST (members_are_set_by_name), LS_TEST (the_environment_is_set),
               LS_TEST (operators_change_in_place), LS_TEST (with_is_followed),
               LS_TEST (what_others_may_change_is_told))
