# SPDX-License-Identifier: Apache-2.0
# What .ci/run and scripts/nightly share: the settings of a checkout, and stages with their times.  To be sourced in the
# repository's folder after `timings`, the file of the times, is set.
export CCACHE_BASEDIR=$PWD CCACHE_NOHASHDIR=1  # checkouts share compiled files, whatever their paths
jobs=$(nproc)
mkdir -p build
: >"$timings"

stage() {  # name, command…: returns its status
  local name=$1 began=$SECONDS status=0
  shift
  echo "=== $name"
  "$@" </dev/null || status=$?
  printf '%-12s %5d s%s\n' "$name" $((SECONDS - began)) "$([ $status -eq 0 ] || echo '  FAILED')" >>"$timings"
  return $status
}

# Here a warning is an error.
test_suite() {
  cmake --preset release -D CMAKE_COMPILE_WARNING_AS_ERROR=ON >/dev/null && scripts/test 2>&1 | tee build/test.log
}

summary() {
  printf '%-12s %5d s\n' together "$SECONDS" >>"$timings"
  cat "$timings"
  [ ! -f build/test.log ] || sed -n '/tests passed, .* tests failed out of/,$p' build/test.log
}
