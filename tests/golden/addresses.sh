#!/bin/sh
# With fewer addresses than the heap would begin with, the program works as it does with all. Sanitizers need
# more than that.
# usage: addresses.sh LOCKSTEP
set -eu
ulimit -v 400000
"$1" --version > /dev/null
