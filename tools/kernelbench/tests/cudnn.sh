#!/usr/bin/env bash
# Attention of cuDNN without a GPU (test_cudnn.cpp): on a made-up library that computes the graphs, one that is old, one that lacks a
# function, and none; or NVIDIA's own, which compiles them, with a made-up driver.
#
# Usage: cudnn.sh TEST FAKE-CUDNN FAKE-CUDNN-WITHOUT-EXECUTE
#        cudnn.sh TEST FAKE-CUDA-DRIVER FOLDER-OF-CUDNN
set -u
test=$(realpath "$1") library=$(realpath "$2") other=$(realpath "$3")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/library" "$work/other"
unset LD_LIBRARY_PATH

if [ -d "$other" ]; then
  ln -s "$library" "$work/library/libcuda.so.1"
  export ASAN_OPTIONS=detect_leaks=0 # in NVIDIA's libraries
  LD_LIBRARY_PATH=$work/library:$other "$test" real
  exit
fi

ln -s "$library" "$work/library/libcudnn.so.9"
ln -s "$other" "$work/other/libcudnn.so.9"
n_failed=0
run () { "$@" || n_failed=$((n_failed + 1)); }
run env LD_LIBRARY_PATH="$work/library" "$test" fake
run env LD_LIBRARY_PATH="$work/library" KB_CUDNN=old "$test" refused "cuDNN 8.9.2 is too old: attention needs 9.0"
run env LD_LIBRARY_PATH="$work/other" "$test" refused "libcudnn.so.9 has no cudnnBackendExecute"
ldconfig -p 2> /dev/null | grep -q 'libcudnn' || run "$test" refused "libcudnn.so.9 is not found: install cuDNN 9"
[ $n_failed = 0 ] && echo ok
exit $((n_failed > 0))
