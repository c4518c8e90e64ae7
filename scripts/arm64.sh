# SPDX-License-Identifier: Apache-2.0
# Installs what cross-compiles for 64-bit ARM and runs the results: the compiler, QEMU, and the arm64 packages of the
# libraries.  To be sourced in the repository's folder.  Needs root or sudo only if a package is missing.
packages=(
  g++-aarch64-linux-gnu qemu-user
  libjpeg-dev:arm64 libpng-dev:arm64 libwebp-dev:arm64 libgif-dev:arm64 libtiff-dev:arm64
  zlib1g-dev:arm64 libutf8proc-dev:arm64 libfmt-dev:arm64 libgtest-dev:arm64
)
as_root=()
if [ "$(id -u)" -ne 0 ]; then as_root=(sudo); fi
if ! dpkg-query --show "${packages[@]}" >/dev/null 2>&1; then
  echo "arm64: installing ${packages[*]}"
  "${as_root[@]}" dpkg --add-architecture arm64
  "${as_root[@]}" apt-get update -q
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
    apt-get install -q -y --no-install-recommends "${packages[@]}" </dev/null
fi
