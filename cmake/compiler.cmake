# SPDX-License-Identifier: Apache-2.0
# Language standard, warnings, hardening, sanitizers and compiler cache for all targets.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release)
endif()

# -ffp-contract=off: the compiler does not fuse a multiplication and an addition; kernels use FMA explicitly.  Exact
# agreement with Pillow's resize and with the scalar kernels depends on it.
# -Werror=switch: a switch over an enum without default must name every enumerator.
add_compile_options(-Wall -Wextra -Werror=switch -ffp-contract=off)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  add_compile_options(-Wno-restrict)  # g++ 12 has false positives in std::string
endif()

# Hardening of release builds: stack protection, control flow protection, checked calls of the C library, bounds checks
# of the C++ library, and relocations that are read-only before main.  tools/check_hardening.py checks the program.
set(VITRAIL_RELEASE $<CONFIG:Release>)
add_compile_options(
  "$<${VITRAIL_RELEASE}:-fstack-protector-strong;-U_FORTIFY_SOURCE;-D_FORTIFY_SOURCE=2;-D_GLIBCXX_ASSERTIONS>")
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  add_compile_options($<${VITRAIL_RELEASE}:-fcf-protection>)
elseif(CMAKE_SYSTEM_PROCESSOR MATCHES "aarch64|arm64")
  add_compile_options($<${VITRAIL_RELEASE}:-mbranch-protection=standard>)
endif()
add_link_options(-Wl,-z,relro -Wl,-z,now)

# For targets without hot loops (tests, the program), because less optimization compiles faster.
set(VITRAIL_LIGHT_OPTIMIZATION $<IF:${VITRAIL_RELEASE},-Og,-O0>)

if(VITRAIL_SANITIZE)
  add_compile_options(-fsanitize=${VITRAIL_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${VITRAIL_SANITIZE})
  include(CheckLinkerFlag)
  check_linker_flag(CXX LINKER:-z,pack-relative-relocs VITRAIL_PACKED_RELOCATIONS)
  if(VITRAIL_PACKED_RELOCATIONS)  # an instrumented program starts with a million of them
    add_link_options(LINKER:-z,pack-relative-relocs)
  endif()
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    add_compile_options(-Wno-maybe-uninitialized)  # g++ 12 has false positives in instrumented code
  endif()
endif()

find_program(CCACHE ccache)
if(CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CCACHE})
endif()
